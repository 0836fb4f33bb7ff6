"""How fast attention over drawn tokens converges."""

from attractor.papers import Paper

PAPER = Paper(
    "token-sample-complexity",
    "Token Sample Complexity of Attention",
    "Bohbot, L{\\'e}a and Letrouit, Cyril and Peyr{\\'e}, Gabriel and "
    "Vialard, Fran{\\c c}ois-Xavier",
    2025,
    "2512.10656",
)

"""Attention over features that occur with given probabilities, and its training."""

from attractor.papers import Paper

PAPER = Paper(
    "in-context-convergence",
    "In-Context Convergence of Transformers",
    "Huang, Yu and Cheng, Yuan and Liang, Yingbin",
    2023,
    "2310.05249",
)

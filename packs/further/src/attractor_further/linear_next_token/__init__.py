"""Linear decoders trained on soft labels: a margin solution, and odds within supports."""

from attractor.papers import Paper

PAPER = Paper(
    "linear-next-token",
    "Implicit Optimization Bias of Next-token Prediction in Linear Models",
    "Thrampoulidis, Christos",
    2024,
    "2402.18551",
)

"""Muon on stored associations."""

from attractor.papers import Paper

PAPER = Paper(
    "associative-memory",
    "Muon in Associative Memory Learning: Training Dynamics and Scaling Laws",
    "Wang, Kaifei and Li, Binghui and Zhong, Han and Lu, Pinyan and Wang, Liwei",
    2026,
    "2602.05725",
)

"""Attention over Gaussian mixtures: classes with labels, clusters seen with noise."""

from attractor.papers import Paper

PAPER = Paper(
    "gaussian-mixtures",
    "Softmax attention on Gaussian mixtures: linear when it can, selective when it must",
    "Gabet and Boursier, Etienne and Boyer, Claire",
    2026,
    "",
)

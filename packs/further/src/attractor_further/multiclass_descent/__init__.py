"""Steepest descent in several norms on multiclass data, and the margin that it ends at."""

from attractor.papers import Paper

PAPER = Paper(
    "multiclass-descent",
    "Implicit Bias of Spectral Descent and Muon on Multiclass Separable Data",
    "Fan, Chen and Schmidt, Mark and Thrampoulidis, Christos",
    2025,
    "2502.04664",
)

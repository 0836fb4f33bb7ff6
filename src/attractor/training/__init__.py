"""The training room: the loop, ``train``, optimizers, and the trajectory they leave."""

from attractor.training.optimizers import (
    Optimizer,
    declare,
    gradient_descent,
    normalized_gradient_descent,
)
from attractor.training.train import train
from attractor.training.trajectory import Trajectory

__all__ = [
    "Optimizer",
    "Trajectory",
    "declare",
    "gradient_descent",
    "normalized_gradient_descent",
    "train",
]

"""The training room: the loop, ``train``, optimizers, and the trajectory they leave."""

from attractor.training.optimizers import (
    Optimizer,
    RegisteredOptimizer,
    declare,
    get_optimizer,
    gradient_descent,
    greedy_coordinate_descent,
    mirror_descent,
    normalized_gradient_descent,
    polyak_step,
    register_optimizer,
    registered_optimizers,
    schatten_mirror_descent,
    sign_descent,
    spectral_descent,
    steepest_descent,
)
from attractor.training.train import train
from attractor.training.trajectory import Trajectory

__all__ = [
    "Optimizer",
    "RegisteredOptimizer",
    "Trajectory",
    "declare",
    "get_optimizer",
    "gradient_descent",
    "greedy_coordinate_descent",
    "mirror_descent",
    "normalized_gradient_descent",
    "polyak_step",
    "register_optimizer",
    "registered_optimizers",
    "schatten_mirror_descent",
    "sign_descent",
    "spectral_descent",
    "steepest_descent",
    "train",
]

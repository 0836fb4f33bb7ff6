"""Training: the loop, ``train``, flows, paths, optimizers, and their trajectories."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.training._train import train
    from attractor.training.compilation import release_compiled
    from attractor.training.flow._gradient_flow import gradient_flow
    from attractor.training.optimizers import (
        Optimizer,
        RegisteredOptimizer,
        adam,
        declare,
        get_optimizer,
        gradient_descent,
        greedy_coordinate_descent,
        in_moving_gauge,
        lion,
        mirror_descent,
        momentum,
        muon,
        normalized_gradient_descent,
        normalized_momentum,
        polyak_step,
        register_optimizer,
        registered_optimizers,
        schatten_mirror_descent,
        sign_descent,
        sign_momentum,
        spectral_descent,
        steepest_descent,
    )
    from attractor.training.paths._local_path import local_path
    from attractor.training.paths._regularization_path import regularization_path
    from attractor.training.trajectory import Trajectory

__all__ = [
    "Optimizer",
    "RegisteredOptimizer",
    "Trajectory",
    "adam",
    "declare",
    "get_optimizer",
    "gradient_descent",
    "gradient_flow",
    "greedy_coordinate_descent",
    "in_moving_gauge",
    "lion",
    "local_path",
    "mirror_descent",
    "momentum",
    "muon",
    "normalized_gradient_descent",
    "normalized_momentum",
    "polyak_step",
    "register_optimizer",
    "registered_optimizers",
    "regularization_path",
    "release_compiled",
    "schatten_mirror_descent",
    "sign_descent",
    "sign_momentum",
    "spectral_descent",
    "steepest_descent",
    "train",
]

import_on_first_use(__name__)

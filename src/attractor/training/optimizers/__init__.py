"""Optimizers: optax transformations that declare their geometry."""

from typing import Any

from attractor.first_use import by_former_name
from attractor.training.optimizers._adam import adam
from attractor.training.optimizers._gradient_descent import (
    gradient_descent,
    normalized_gradient_descent,
)
from attractor.training.optimizers._mirror_descent import mirror_descent, schatten_mirror_descent
from attractor.training.optimizers._momentum import (
    lion,
    momentum,
    normalized_momentum,
    sign_momentum,
)
from attractor.training.optimizers._muon import muon
from attractor.training.optimizers._steepest_descent import (
    greedy_coordinate_descent,
    sign_descent,
    spectral_descent,
    steepest_descent,
)
from attractor.training.optimizers.moving_gauge import with_rescaled_state
from attractor.training.optimizers.optimizer import Optimizer, declare
from attractor.training.optimizers.polyak import polyak_step
from attractor.training.optimizers.registry import (
    RegisteredOptimizer,
    get_optimizer,
    named_optimizer,
    register_optimizer,
    registered_optimizers,
)

__all__ = [
    "Optimizer",
    "RegisteredOptimizer",
    "adam",
    "declare",
    "get_optimizer",
    "gradient_descent",
    "greedy_coordinate_descent",
    "lion",
    "mirror_descent",
    "momentum",
    "muon",
    "named_optimizer",
    "normalized_gradient_descent",
    "normalized_momentum",
    "polyak_step",
    "register_optimizer",
    "registered_optimizers",
    "schatten_mirror_descent",
    "sign_descent",
    "sign_momentum",
    "spectral_descent",
    "steepest_descent",
    "with_rescaled_state",
]


def __getattr__(name: str) -> Any:
    """Gives what has another name now, with a warning."""
    if name == "in_moving_gauge":
        return by_former_name(__name__, name, "with_rescaled_state")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Optimizers: optax transformations that declare their geometry."""

from attractor.support.first_use import import_on_first_use
from attractor.training.optimizers.algorithms.composed_descent import composed_spectral_descent
from attractor.training.optimizers.algorithms.gradient_descent import (
    gradient_descent,
    normalized_gradient_descent,
    polyak_step,
)
from attractor.training.optimizers.algorithms.mirror_descent import (
    mirror_descent,
    schatten_mirror_descent,
)
from attractor.training.optimizers.algorithms.moments import (
    adam,
    lion,
    momentum,
    normalized_momentum,
    sign_momentum,
)
from attractor.training.optimizers.algorithms.muon import muon
from attractor.training.optimizers.algorithms.steepest_descent import (
    greedy_coordinate_descent,
    sign_descent,
    spectral_descent,
    steepest_descent,
)
from attractor.training.optimizers.declared import declare, with_rescaled_state
from attractor.training.optimizers.hybrid import by_parameter
from attractor.training.optimizers.joined_heads import joined
from attractor.training.optimizers.newton_schulz import newton_schulz_values
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.schedules import Schedule, power_decay, until
from attractor.training.optimizers.table import (
    RegisteredOptimizer,
    get_optimizer,
    named_optimizer,
    register_optimizer,
    registered_optimizers,
)

__all__ = [
    "Optimizer",
    "RegisteredOptimizer",
    "Schedule",
    "adam",
    "by_parameter",
    "composed_spectral_descent",
    "declare",
    "get_optimizer",
    "gradient_descent",
    "greedy_coordinate_descent",
    "joined",
    "lion",
    "mirror_descent",
    "momentum",
    "muon",
    "named_optimizer",
    "newton_schulz_values",
    "normalized_gradient_descent",
    "normalized_momentum",
    "polyak_step",
    "power_decay",
    "register_optimizer",
    "registered_optimizers",
    "schatten_mirror_descent",
    "sign_descent",
    "sign_momentum",
    "spectral_descent",
    "steepest_descent",
    "until",
    "with_rescaled_state",
]

# Optimizers are imported at once, as they register themselves.
import_on_first_use(__name__)

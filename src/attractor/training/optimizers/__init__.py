"""Optimizers: optax transformations that declare their geometry."""

from attractor.training.optimizers.gradient_descent import (
    gradient_descent,
    normalized_gradient_descent,
)
from attractor.training.optimizers.optimizer import Optimizer, declare

__all__ = ["Optimizer", "declare", "gradient_descent", "normalized_gradient_descent"]

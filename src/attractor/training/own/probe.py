"""What an optimizer does where the gradient is zero or tiny, which margins cannot show."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from attractor.attention import Parameterization
from attractor.support.precision import double_precision
from attractor.support.randomness import seeded
from attractor.training import Optimizer
from attractor.training.own.bridges import ForeignOptimizer

_SAME = 0.05
"""Steps whose lengths differ by less, relatively, count as equally long."""
_SMALLEST = -300.0
"""Power of ten of the smallest gradient tried."""
_TRIED = "an optimizer at a zero gradient"

_Flat = Float[np.ndarray, "entry"]


class Probe(NamedTuple):
    """How a fresh optimizer moves random weights of norm one.

    Attributes:
        moves_without_gradient: Whether a step moves them where the gradient is zero, as weight
            decay does.
        least_gradient: Norm of a gradient at which a step is half as long as at one of norm one,
            as by an eps; 0 where steps do not depend on the size of the gradient, or follow it at
            every size.
    """

    moves_without_gradient: bool = False
    least_gradient: float = 0.0


@seeded(purpose=_TRIED)
def probe(optimizer: Optimizer | ForeignOptimizer, layer: Parameterization) -> Probe:
    """Tries an optimizer on random weights at gradients of several sizes.

    Args:
        optimizer: The optimizer.
        layer: What it trains.

    Returns:
        What it does; nothing of an optimizer that needs more than a gradient, or cannot be tried.
    """
    random = np.random.default_rng(0)
    with double_precision():
        example = layer.initial(jax.random.key(0), 4, 3)
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(example)]
        size = sum(array.size for array in arrays)
        weights, slope = (one / np.linalg.norm(one) for one in random.normal(size=(2, size)))

        def length(gradient: _Flat) -> float:
            with np.errstate(all="ignore"):
                return float(np.linalg.norm(step(weights, gradient) - weights))

        step = _stepper(optimizer, arrays, jax.tree.structure(example))
        try:
            rest = length(np.zeros(size))
            return Probe(0 < rest < math.inf, _least_gradient(length, slope, rest))
        except Exception:  # a user's optimizer can raise anything, and has been tried before
            return Probe()


def _least_gradient(length: Callable[[_Flat], float], slope: _Flat, rest: float) -> float:
    """Where steps become half as long, to a factor of two, by bisection of the exponent."""
    usual = length(slope) - rest

    def whole(power: float) -> bool:
        return length(slope * 10.0**power) - rest > usual / 2

    if abs(length(4 * slope) - rest - usual) > _SAME * usual or whole(_SMALLEST):
        return 0.0
    low, high = _SMALLEST, 0.0
    while high - low > math.log10(2):
        middle = (low + high) / 2
        low, high = (low, middle) if whole(middle) else (middle, high)
    return 10.0**high


def _stepper(
    optimizer: Optimizer | ForeignOptimizer,
    arrays: list[np.ndarray],
    structure: Any,
) -> Callable[[_Flat, _Flat], _Flat]:
    """The first step of an optimizer, from weights and gradient as one vector each."""
    ends = np.cumsum([array.size for array in arrays])[:-1]

    def split(flat: _Flat) -> list[np.ndarray]:
        parts = np.split(flat, ends)
        return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]

    if isinstance(optimizer, Optimizer):
        first = jax.jit(lambda slope, at: optimizer.update(slope, optimizer.init(at), at)[0])

        def step(weights: _Flat, gradient: _Flat) -> _Flat:
            slope, at = (structure.unflatten(split(one)) for one in (gradient, weights))
            updates = jax.tree.leaves(first(slope, at))
            return weights + np.concatenate([np.ravel(update) for update in updates])

        return step

    def foreign_step(weights: _Flat, gradient: _Flat) -> _Flat:
        return np.concatenate(
            [one.ravel() for one in optimizer.step(split(weights), split(gradient))]
        )

    return foreign_step

"""Gradient flow as a differential equation that floating point can follow to any time.

Gradients fall like exp(-norm), so that time runs to exp(10^4) while the parameters move a little.
A point therefore holds the parameters ``u`` in units of their own and ``l = log(1 + t / t_0)``,
and moves along a clock of its own. With ``g = -du/dt`` and ``r = |du/dl| = (t + t_0) |g|``,

    path clock:      du/ds = -r / sqrt(1 + r^2) g / |g|,           dl/ds = 1 / sqrt(1 + r^2)
    fixed clock:     du/ds = -(t + t_0) g / sqrt(1 + r_0^2),       dl/ds = 1 / sqrt(1 + r_0^2)

with ``r_0`` taken at the beginning of each step. The first is the arc length of the curve
``(u, log t)``: its steps are as long in a sudden change of the selection as in the calm between
two of them. The second is linear in directions that have converged, which implicit steps need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from attractor.attention import KeyQuery, Parameterization
from attractor.attention.parameterization import Parameters, attention_layer
from attractor.attention.rows import Rows
from attractor.attention.scaled import direction, log_norm
from attractor.geometry import lengths
from attractor.training.attention_training import AttentionData, AttentionTraining

_RESOLVED = 1e-4
"""Relative change of a gradient, by rounding the parameters, up to which it can be followed."""


@dataclass(frozen=True)
class Motion:
    """The flow of one trial.

    Attributes:
        training: What is trained.
        data: On what.
        unit: Natural length of every parameter.
        like: Parameters of the right shapes.
    """

    training: AttentionTraining
    data: AttentionData
    unit: Float[Array, "parameter"]
    like: Parameters

    def parameters(self, point: Float[Array, "parameter+1"]) -> Parameters:
        """The parameters at a point."""
        return ravel_pytree(self.like)[1](point[:-1] * self.unit)

    def slope(
        self, point: Float[Array, "parameter+1"]
    ) -> tuple[Float[Array, "parameter"], Float[Array, ""]]:
        """Velocity ``gradient / unit``, as a unit vector and the logarithm of its length.

        An exactly zero gradient has a zero vector and a length of minus infinity.
        """
        gradient = self.training.recorder.gradient(
            self.parameters(point), self.data.head, self.data.rows
        )
        flat = ravel_pytree(direction(gradient))[0]
        lost = log_norm(gradient) - _log_length(flat)  # what the direction leaves out
        moved = flat / self.unit
        length = _log_length(moved)
        zero = jnp.isneginf(length)
        return moved * jnp.exp(-jnp.where(zero, 0, length)), jnp.where(zero, length, length + lost)

    def along_path(
        self, _: Any, point: Float[Array, "parameter+1"], log_unit_time: Float[Array, ""]
    ) -> Float[Array, "parameter+1"]:
        """Velocity on the path clock."""
        unit_vector, log_length = self.slope(point)
        log_ratio = log_length + log_unit_time + point[-1]
        moved = jnp.sqrt(jax.nn.sigmoid(2 * log_ratio))
        return jnp.append(-moved * unit_vector, jnp.sqrt(jax.nn.sigmoid(-2 * log_ratio)))

    def along_time(
        self,
        _: Any,
        point: Float[Array, "parameter+1"],
        clock: tuple[Float[Array, ""], Float[Array, ""]],
    ) -> Float[Array, "parameter+1"]:
        """Velocity on a fixed clock, of a unit of time and a rate, both as logarithms."""
        log_unit_time, log_rate = clock
        unit_vector, log_length = self.slope(point)
        speed = jnp.exp(log_length + log_unit_time + point[-1] + log_rate)
        return jnp.append(-speed * unit_vector, jnp.exp(log_rate))

    def unresolved(
        self, point: Float[Array, "parameter+1"], slope: tuple[Array, Array]
    ) -> Bool[Array, ""]:
        """Whether rounding the parameters turns the gradient: its direction means nothing then."""
        signs = jax.random.rademacher(jax.random.key(0), (len(point) - 1,), point.dtype)
        rounded = point.at[:-1].multiply(1 + signs * jnp.finfo(point.dtype).eps)
        (here, length), (there, other) = slope, self.slope(rounded)
        change = jnp.linalg.norm(there * jnp.exp(other - length) - here)
        return jnp.isfinite(length) & ~(change < _RESOLVED)


def _log_length(vector: Float[Array, "n"]) -> Float[Array, ""]:
    """Logarithm of the Euclidean length of numbers whose squares may underflow."""
    largest = jnp.abs(vector).max()
    unit = jnp.where(largest > 0, largest, 1)
    squares = ((vector / unit) ** 2).sum()
    some = jnp.where(largest > 0, squares, 1)
    return jnp.where(largest > 0, jnp.log(unit) + jnp.log(some) / 2, -jnp.inf)


def natural_units(
    parameterization: Parameterization, parameters: Parameters, rows: Rows
) -> Float[np.ndarray, "parameter"]:
    """The size at which each parameter of one trial changes scores, or predictions, by about one.

    They are powers of two, so that changing to them and back is exact.
    """
    admitted = np.any(rows.mask, axis=-2)[..., None]
    keys, values = (np.where(admitted, array, 0) for array in (rows.keys, rows.values))
    reach = _longest(keys) * _longest(rows.queries)
    factors = isinstance(attention_layer(parameterization), KeyQuery)
    unit = _power_of_two(reach**-0.5 if factors else reach**-1)
    head_unit = _power_of_two(_longest(values) ** -1)
    attention, head = parameters
    filled = Parameters(
        jax.tree.map(lambda leaf: np.full(np.shape(leaf), unit), attention),
        jax.tree.map(lambda leaf: np.full(np.shape(leaf), head_unit), head),
    )
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(filled)])


def _longest(vectors: Any) -> float:
    longest = float(lengths(np.asarray(vectors)).max())
    return longest if longest > 0 else 1.0


def _power_of_two(value: float) -> float:
    return 2.0 ** np.rint(np.log2(value))

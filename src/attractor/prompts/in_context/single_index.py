"""The law of pairs ``(x, y)`` whose label depends on one direction of a Gaussian input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from attractor.prompts.measures import Measure
from attractor.prompts.measures.arithmetic.arrays import checked
from attractor.prompts.measures.contract import as_numpy
from attractor.support.checks import check_choice

_NODES, _REACH = 193, 9.0
"""Of the trapezoidal rule. Its error for labels with poles ``p`` away from the real line is about
``exp(-2 pi p / (|w| h))`` for a step ``h``: 1e-9 for ``tanh`` and ``|w| = 5``."""


def _tanh(c: Array, u: Array) -> Array:
    return c * jnp.tanh(u)


def _binary(c: Array, u: Array) -> Array:
    return jnp.logaddexp(c + jax.nn.log_sigmoid(u), -c + jax.nn.log_sigmoid(-u))


LABELS: dict[str, Callable[[Array, Array], Array]] = {"tanh": _tanh, "binary": _binary}
"""``log E[exp(c y) | w.x = u]`` by kind of label: ``y = tanh(w.x)``, and ``y = +-1`` with
``P(y = 1) = sigmoid(w.x)``."""


class SingleIndex(Measure):
    """Tokens ``(x, y)`` with ``x ~ N(0, I)`` and a label that depends on ``w.x`` alone.

    ``Lambda(a, c) = |a|^2 / 2 + log E M(c, w.a + |w| g)`` with ``M(c, u) = E[exp(c y) | w.x = u]``
    and a standard normal ``g``: one integral, by the trapezoidal rule with 193 nodes.

    Attributes:
        weights: ``w``.
        label: ``"tanh"`` or ``"binary"``, see ``LABELS``.
    """

    weights: Float[Any, "d"]
    label: str = eqx.field(static=True)

    def __init__(self, weights: Float[Any, "d"] | Any, label: str) -> None:
        """Checks and stores the direction and the kind of label.

        Raises:
            InvalidInputError: If the weights are no vector of finite numbers, or the kind of label
                is not known.
        """
        self.weights = checked("weights", weights, ("d",))
        self.label = check_choice("label", label, LABELS)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.weights.shape[-1] + 1

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        a, c = direction[..., :-1], direction[..., -1]
        w = jnp.asarray(self.weights)
        nodes = np.linspace(-_REACH, _REACH, _NODES)
        masses = np.exp(-(nodes**2) / 2)
        # At w = 0 the norm has no derivative; its square does.
        norm = jnp.sqrt(jnp.where(w @ w > 0, w @ w, 1)) * (w @ w > 0)
        points = (a @ w)[..., None] + norm * nodes
        exponents = LABELS[self.label](c[..., None], points) + np.log(masses / masses.sum())
        return (a**2).sum(-1) / 2 + logsumexp(exponents, axis=-1)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return jax.grad(lambda a: self._log_normalizer(a).sum())(direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        flat = direction.reshape(-1, self.dimension)
        found = jax.vmap(jax.hessian(self._log_normalizer))(flat)
        return found.reshape(*direction.shape, self.dimension)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        w = as_numpy(self.weights)
        inputs = random.standard_normal((count, len(w)))
        return np.column_stack([inputs, draw_labels(self.label, inputs @ w, random)])


def draw_labels(
    label: str, index: Float[np.ndarray, "*batch"], random: np.random.Generator
) -> Float[np.ndarray, "*batch"]:
    """Labels of inputs whose product with the weights is given."""
    if label == "tanh":
        return np.tanh(index)
    return np.where(random.random(index.shape) < 1 / (1 + np.exp(-index)), 1.0, -1.0)

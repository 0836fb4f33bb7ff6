"""Mixtures: attention is a gated sum of attention over each component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Complex, Float

from attractor.attention.softmax import softmax_attention
from attractor.prompts.measures.arithmetic import (
    Generated,
    ScoreLine,
    checked_weights,
    mixed,
    numpy_in_double,
    traced,
)
from attractor.prompts.measures.contract import Measure, as_numpy, bounded_proxy
from attractor.prompts.measures.empirical import softmax_covariance
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.checks import check_items
from attractor.support.errors import InvalidInputError


class Mixture(Measure):
    """The mixture ``sum_k pi_k mu_k``.

    Tilted, it is the mixture of the tilted components with the weights

        r_k(a) = pi_k Z_k(a) / sum_j pi_j Z_j(a),        Z_k(a) = E_k exp(a^T X).

    Its tilted mean is ``sum_k r_k m_k(a)``, its tilted covariance the mean of the components' plus
    the covariance of their means. Source: *Softmax attention on Gaussian mixtures: linear when it
    can, selective when it must* (Gabet, Boursier, Boyer 2026), attention over a mixture.

    Attributes:
        weights: Relative weights ``pi``, ``(K,)``.
        components: The measures ``mu_k``.
    """

    weights: Float[Any, "component"]
    components: tuple[Measure, ...]

    def __init__(
        self, weights: Float[Any, "component"] | Any, components: Sequence[Measure]
    ) -> None:
        """Checks and stores weights and components.

        Args:
            weights: Relative weights above zero, ``(K,)``; they are divided by their sum.
            components: As many measures of one dimension.

        Raises:
            InvalidInputError: If counts or dimensions differ, or a weight is not a positive number.
        """
        self.components = tuple(check_items("components", components, Measure))
        self.weights = checked_weights("weights", weights, ("component",))
        count = len(self.components)
        if self.weights.shape != (count,):
            shape = self.weights.shape
            raise InvalidInputError("weights", f"the shape is {shape}", f"Give ({count},)")
        if not traced(self.weights) and not (self.weights > 0).all():
            raise InvalidInputError(
                "weights", "one of them is zero", "Leave out components of weight zero"
            )
        dimensions = sorted({component.dimension for component in self.components})
        if len(dimensions) > 1:
            raise InvalidInputError(
                "components", f"the dimensions are {dimensions}", "Give measures of one dimension"
            )

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.components[0].dimension

    def responsibilities(
        self, direction: Float[Any, "*batch d"] | Any
    ) -> Float[Any, "*rows component"]:
        """The weights ``r_k(a)`` of the components under the tilt: the gates of attention.

        For Gaussian components they are the softmax of
        ``log pi_k + m_k^T a + a^T Gamma_k a / 2``. Scores are measured from the first component
        before anything is summed: what the quadratic terms share, all of it where covariances are
        equal, never enters.

        Raises:
            InvalidInputError: As ``tilt``.
        """
        return _responsibilities(self, self.admissible(direction))

    def with_noise(self, variance: Float[Any, ""] | Any) -> Mixture:
        """The mixture of the components with noise; see ``Measure.with_noise``."""
        return Mixture(self.weights, [one.with_noise(variance) for one in self.components])

    def pushforward(
        self, matrix: Float[Any, "k d"] | Any, shift: Float[Any, "k"] | Any | None = None
    ) -> Mixture:
        """The mixture of the components' images; see ``Measure.pushforward``."""
        return Mixture(self.weights, [one.pushforward(matrix, shift) for one in self.components])

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        total = logsumexp(self._log_gates(direction), axis=-1)
        total = total - jnp.log(jnp.asarray(self.weights).sum())
        if self._gaussian() is None:
            return total
        return total + self.components[0]._log_normalizer(direction)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return softmax_attention(self._log_gates(direction), self._component_means(direction))

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        gates = self._log_gates(direction)
        within = [component._tilted_covariance(direction) for component in self.components]
        shape = (*gates.shape, self.dimension**2)
        flat = jnp.stack(within, axis=-3).reshape(shape)
        mean_within = softmax_attention(gates, flat).reshape(*shape[:-2], *within[0].shape[-2:])
        everywhere = jnp.ones(gates.shape, dtype=bool)
        return mean_within + softmax_covariance(gates, self._component_means(direction), everywhere)

    def _log_gates(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows component"]:
        """Logarithms of the gates, less that of the first normalizer where all are Gaussian."""
        prior = jnp.log(jnp.asarray(self.weights))
        moments = self._gaussian()
        if moments is None:
            logs = [component._log_normalizer(direction) for component in self.components]
            return prior + jnp.stack(logs, axis=-1)
        means, covariances = (moment - moment[:1] for moment in moments)
        quadratic = jnp.einsum("kij,...j,...i->...k", covariances, direction, direction)
        return prior + direction @ means.T + quadratic / 2

    def _component_means(
        self, direction: Float[Array, "*batch d"]
    ) -> Float[Array, "*rows component d"]:
        moments = self._gaussian()
        if moments is None:
            means = [component._tilted_mean(direction) for component in self.components]
            return jnp.stack(means, axis=-2)
        return moments[0] + jnp.einsum("kij,...j->...ki", moments[1], direction)

    def _gaussian(self) -> tuple[Float[Array, "component d"], Float[Array, "component d d"]] | None:
        """Means and covariances of the components, where all are Gaussian."""
        gaussian = [one for one in self.components if isinstance(one, Gaussian)]
        if len(gaussian) < len(self.components):
            return None
        means = jnp.stack([jnp.asarray(one.mean) for one in gaussian])
        return means, jnp.stack([jnp.asarray(one.covariance) for one in gaussian])

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        found = [component._exists(direction) for component in self.components]
        return jnp.stack(found).all(0)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        refusals = (component._refusal(direction) for component in self.components)
        return next((refusal for refusal in refusals if refusal is not None), None)

    def _generated(
        self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
    ) -> Generated | None:
        parts = [component._generated(line, q) for component in self.components]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        weights = as_numpy(self.weights)
        return mixed(weights / weights.sum(), known)

    def _variance_proxy(self) -> float:
        # About their means components are as wide as the widest; the means are finitely many.
        widest = max(component._variance_proxy() for component in self.components)
        means = np.stack([as_numpy(component.mean) for component in self.components])
        return widest + bounded_proxy(means, as_numpy(self.weights), as_numpy(self.mean))

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        parts = [component._norm_moments(direction) for component in self.components]
        return np.asarray(self.responsibilities(direction)) @ np.stack(parts)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        weights = as_numpy(self.weights)
        chosen = random.choice(len(weights), size=count, p=weights / weights.sum())
        drawn = np.empty((count, self.dimension))
        for number, component in enumerate(self.components):
            here = chosen == number
            drawn[here] = component._draw(int(here.sum()), random)
        return drawn


@numpy_in_double
def _responsibilities(mixture: Mixture, direction: Any) -> Any:
    gates = mixture._log_gates(jnp.asarray(direction))
    return softmax_attention(gates, jnp.eye(gates.shape[-1], dtype=gates.dtype))

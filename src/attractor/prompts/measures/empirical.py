"""A finite prompt: the measure on its tokens, under which the operator is softmax attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Complex, Float

from attractor.attention.softmax import softmax_attention, softmax_row
from attractor.prompts.measures.arithmetic import (
    Generated,
    ScoreLine,
    checked,
    checked_map,
    checked_weights,
    traced,
)
from attractor.prompts.measures.contract import Measure, as_numpy, bounded_proxy
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_plain, check_broadcast

_ENTRIES_AT_ONCE = 2**24
"""Numbers that tokens measured from leaders may take up: 134 MB in float64."""


class Empirical(Measure):
    """The tokens of a prompt, each with its weight: ``sum_l w_l delta_{x_l}``.

    The tilted mean is ``attractor.softmax_attention`` of the scores ``a^T x_l + log w_l`` over the
    tokens, so that its JAX derivatives are exact at every gap between scores. Leading axes of the
    points are prompts; they broadcast against those of the direction, one direction a prompt.

    Attributes:
        points: The tokens, ``(*prompts, L, d)``; zero where masked.
        weights: Relative weights of the tokens, zero where masked, or None where all are equal.
    """

    points: Float[Any, "*prompts token d"]
    weights: Float[Any, "*prompts token"] | None

    def __init__(
        self,
        points: Float[Any, "*prompts token d"] | Any,
        weights: Float[Any, "*#prompts token"] | Any | None = None,
        mask: Bool[Any, "*#prompts token"] | Any | None = None,
    ) -> None:
        """Checks and stores the tokens.

        Args:
            points: The tokens, ``(L, d)`` or ``(*prompts, L, d)``.
            weights: Relative weights, ``(L,)`` or ``(*prompts, L)``; they are divided by their sum.
            mask: True where there is a token. Entries in masked places are never used.

        Raises:
            InvalidInputError: If shapes do not fit, an entry in use is not finite, a weight is
                negative, or a prompt has no token of positive weight.
        """
        if mask is not None:
            points, weights = _masked(points, weights, mask)
        self.points = checked("points", points, ("token", "d"), batched=True)
        if weights is None:
            self.weights = None
            return
        relative = checked_weights("weights", weights, ("token",))
        shape = self.points.shape[:-1]
        if relative.shape[-1] != shape[-1] or relative.ndim > len(shape):
            raise InvalidInputError("weights", f"the shape is {relative.shape}", f"Give {shape}")
        fits = all(n in (1, m) for n, m in zip(relative.shape[::-1], shape[::-1], strict=False))
        if not fits:
            raise InvalidInputError("weights", f"the shape is {relative.shape}", f"Give {shape}")
        self.weights = relative * np.ones(shape, dtype=relative.dtype)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.points.shape[-1]

    def pushforward(
        self, matrix: Float[Any, "k d"] | Any, shift: Float[Any, "k"] | Any | None = None
    ) -> Empirical:
        """The prompt of the tokens ``A x_l + b``; see ``Measure.pushforward``."""
        matrix, shift = checked_map(self.dimension, matrix, shift)
        return Empirical(self.points @ matrix.T + shift, self.weights)

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        if self.weights is None:
            return logsumexp(self._scores(direction), axis=-1) - np.log(self.points.shape[-2])
        scores = jnp.where(self._mask(), self._scores(direction), -jnp.inf)
        return logsumexp(scores, axis=-1) - jnp.log(jnp.asarray(self.weights).sum(-1))

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        def mean(direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
            return softmax_attention(self._scores(direction), self.points, self._mask())

        return self._in_blocks(mean, direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        points, mask = jnp.asarray(self.points), jnp.asarray(self._mask())

        def covariance(direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
            return softmax_covariance(self._scores(direction), points, mask)

        return self._in_blocks(covariance, direction)

    def _in_blocks(
        self, function: Callable[[Array], Array], direction: Float[Array, "*batch d"]
    ) -> Float[Array, "..."]:
        """The function of every direction, in blocks where one prompt has many queries.

        Each query measures all tokens from a leader of its own, an array of the size of the prompt.
        """
        rows = max(1, _ENTRIES_AT_ONCE // self.points.size)
        if self.points.ndim > 2 or direction.ndim == 1 or direction[..., 0].size <= rows:
            return function(direction)
        flat = jax.lax.map(function, direction.reshape(-1, self.dimension), batch_size=rows)
        return flat.reshape(*direction.shape[:-1], *flat.shape[1:])

    def _scores(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows token"]:
        scores = jnp.einsum("...td,...d->...t", self.points, direction)
        if self.weights is None:
            return scores
        return scores + jnp.log(jnp.where(self._mask(), self.weights, 1))

    def _mask(self) -> Any:
        if self.weights is None:
            return np.ones(self.points.shape[-2], dtype=bool)
        return self.weights > 0

    def _generated(
        self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
    ) -> Generated | None:
        if self.points.ndim > 2:
            return None
        weights = np.ones(len(self.points)) if self.weights is None else as_numpy(self.weights)
        used = weights > 0
        offsets = as_numpy(self.points)[used] - line.center
        scores, features = offsets @ line.direction, offsets @ line.projection.T
        rows = np.column_stack([np.ones(len(scores)), features, (features**2).sum(-1)])
        logs = np.real(q)[:, :1] * scores + np.log(weights[used] / weights.sum())
        log_scale = logs.max(-1)
        shares = np.exp(logs - log_scale[:, None])
        # One slope in a row, one frequency in a column: a product of matrices, in blocks of tokens.
        found = np.zeros((rows.shape[1], *q.shape), dtype=complex)
        size = max(1, _ENTRIES_AT_ONCE // (8 * q.shape[1]))
        for start in range(0, len(scores), size):
            part = slice(start, start + size)
            phases = np.multiply.outer(scores[part], np.imag(q)[0])
            weighted = (shares[:, part] * rows.T[:, None, part]).reshape(-1, len(phases))
            sums = weighted @ np.cos(phases) + 1j * (weighted @ np.sin(phases))
            found += sums.reshape(found.shape)
        return Generated(log_scale, found[0], found[1:-1], found[-1])

    def _variance_proxy(self) -> float:
        if self.points.ndim > 2:
            return math.inf
        weights = np.ones(len(self.points)) if self.weights is None else as_numpy(self.weights)
        used = weights > 0
        points, mean = as_numpy(self.points)[used], as_numpy(self.mean)
        return bounded_proxy(points, weights[used], mean)

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        if self.points.ndim > 2:
            return super()._norm_moments(direction)
        points = as_numpy(self.points)
        weights = np.ones(len(points)) if self.weights is None else as_numpy(self.weights)
        scores = points @ direction
        used = weights > 0
        points, scores = points[used], scores[used]
        shares = weights[used] * np.exp(scores - scores.max())
        return shares @ (points**2).sum(-1)[:, None] ** np.arange(5) / shares.sum()

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        points, tokens = as_numpy(self.points), self.points.shape[-2]
        weights = np.ones(tokens) if self.weights is None else as_numpy(self.weights)
        weights = np.broadcast_to(weights, points.shape[:-1]).reshape(-1, tokens)
        drawn = [
            prompt[random.choice(tokens, size=count, p=weight / weight.sum())]
            for prompt, weight in zip(
                points.reshape(-1, tokens, self.dimension), weights, strict=True
            )
        ]
        return np.stack(drawn).reshape(*points.shape[:-2], count, self.dimension)


def softmax_covariance(
    scores: Float[Array, "*batch token"],
    values: Float[Array, "*#batch token v"],
    mask: Bool[Array, "*#batch token"],
) -> Float[Array, "*batch v v"]:
    """Covariance of the values under ``softmax(scores)``, without cancellation at any gap.

    Values are measured from the leading token and centered there, as ``softmax_attention`` does:
    its own deviation is then a sum of small terms, not the difference of two large ones.
    """
    row = softmax_row(scores, jnp.broadcast_to(mask, scores.shape))
    lead = jnp.where(row.leader[..., None], values, 0).sum(-2, keepdims=True)
    displacement = jnp.where((row.mask & ~row.leader)[..., None], values - lead, 0)
    weighted = row.probabilities[..., None] * displacement
    centered = displacement - weighted.sum(-2, keepdims=True)
    weighted = row.probabilities[..., None] * centered
    return jnp.einsum("...ti,...tj->...ij", weighted, centered)


def _masked(points: Any, weights: Any, mask: Any) -> tuple[Any, Any]:
    """Points and weights with zeros where there is no token."""
    if not traced(mask) and (given := as_plain("mask", mask)).dtype != bool:
        raise InvalidInputError("mask", f"the data type is {given.dtype}", "Give booleans")
    if not isinstance(points, jax.Array):
        points = as_float64("points", points, finite=False)
    if weights is not None and not isinstance(weights, jax.Array):
        weights = as_float64("weights", weights, finite=False)
    shape = np.shape(points)[:-1]
    if not shape:
        raise InvalidInputError("points", f"the shape is {np.shape(points)}", "Give (..., T, d)")
    if weights is not None:
        check_broadcast("weights", np.shape(weights), shape)
    if np.shape(mask)[-1:] != shape[-1:] or np.ndim(mask) > len(shape):
        raise InvalidInputError("mask", f"the shape is {np.shape(mask)}", f"Give {shape}")
    xp = jnp if any(isinstance(array, jax.Array) for array in (points, weights, mask)) else np
    whole = xp.broadcast_to(xp.asarray(mask), shape)
    weights = xp.where(whole, 1.0 if weights is None else weights, 0.0)
    return xp.where(whole[..., None], points, 0.0), weights

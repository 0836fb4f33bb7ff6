"""Independent coordinates, and independent blocks of them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Bool, Complex, Float

from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.generating import Generated, ScoreLine, from_cumulants
from attractor.prompts.measures.sub_gaussian import of_independent_parts
from attractor.support.checks import check_items
from attractor.support.errors import InvalidInputError

Continued = tuple[
    Complex[np.ndarray, "..."], Complex[np.ndarray, "..."], Complex[np.ndarray, "..."]
]
"""A log moment generating function and its first two derivatives at complex slopes."""


class IndependentCoordinates(Measure):
    """Coordinates that are independent and alike: a scale times a standard law on the line.

    A subclass gives the derivatives of order 0, 1 and 2 of the standard law's log moment generating
    function, elementwise; the first two have to have the next one as their JAX derivative, which
    ``with_derivative`` arranges.
    """

    if TYPE_CHECKING:
        _dimension: int  # a field of the subclasses, where its place among the others is theirs

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._dimension

    @property
    @abc.abstractmethod
    def _scale(self) -> Float[Any, ""]:
        """The scale of the standard law."""

    @abc.abstractmethod
    def _cumulant(self, order: int, slope: Float[Array, "..."]) -> Float[Array, "..."]:
        """Derivative of an order of ``log E exp(slope X)`` for the standard law."""

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return self._cumulant(0, self._scale * direction).sum(-1)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self._scale * self._cumulant(1, self._scale * direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        return self._variances(direction)[..., None] * jnp.eye(self.dimension)

    def _covariance_product(
        self, direction: Float[Array, "*batch d"], vector: Float[Array, "*batch d"]
    ) -> Float[Array, "*rows d"]:
        return self._variances(direction) * vector

    @abc.abstractmethod
    def _continued(self, z: Complex[np.ndarray, "..."]) -> Continued:
        """The derivatives of order 0, 1 and 2 at complex slopes, the first up to ``2 pi i``."""

    def _generated(self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]) -> Generated:
        scale, P = float(self._scale), line.projection
        log_value, mean, trace = -q * (line.direction @ line.center), -(P @ line.center), 0j * q
        mean = np.broadcast_to(mean[:, None, None], (len(P), *q.shape)).astype(complex)
        for a, column in zip(line.direction, P.T, strict=True):
            value, slope, curvature = self._continued(scale * a * q)
            log_value = log_value + value
            mean += scale * np.multiply.outer(column, slope)
            trace += scale**2 * (column @ column) * curvature
        return from_cumulants(log_value, mean, trace)

    def _coordinate_moments(self, slope: float) -> Float[np.ndarray, "5"]:
        """``E x^(2 j)`` for ``j`` up to 4 of the standard law tilted by ``exp(slope x)``."""
        return np.array([1.0, *[np.inf] * 4])

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        scale = float(self._scale)
        own = [self._coordinate_moments(scale * float(a)) for a in direction]
        return of_independent_parts(scale ** (2.0 * np.arange(5)) * moments for moments in own)

    def _variances(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self._scale**2 * self._cumulant(2, self._scale * direction)


def with_derivative(
    function: Callable[[Array], Array], derivative: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """The elementwise function with the other one as its JAX derivative."""
    wrapped = jax.custom_jvp(function)

    @wrapped.defjvp
    def _jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        return wrapped(*primals), derivative(*primals) * tangents[0]

    return wrapped


def rightward(
    z: Complex[np.ndarray, "..."],
) -> tuple[Complex[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """``z`` or ``-z``, whichever has a real part above zero, and the sign taken.

    For laws that are even: exponentials are then computed where they do not grow.
    """
    sign = np.where(np.real(z) < 0, -1.0, 1.0)
    return sign * z, sign


class Product(Measure):
    """Independent blocks of coordinates, each with a law of its own.

    Attributes:
        factors: The laws, in the order of their coordinates.
    """

    factors: tuple[Measure, ...]

    def __init__(self, factors: Sequence[Measure]) -> None:
        """Stores the laws.

        Raises:
            InvalidInputError: If there is none.
        """
        self.factors = tuple(check_items("factors", factors, Measure, 1))

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return sum(factor.dimension for factor in self.factors)

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        logs = [one._log_normalizer(part) for one, part in self._blocks(direction)]
        return jnp.stack(logs).sum(0)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        means = [one._tilted_mean(part) for one, part in self._blocks(direction)]
        return jnp.concatenate(means, axis=-1)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        blocks = [one._tilted_covariance(part) for one, part in self._blocks(direction)]
        lead, d = blocks[0].shape[:-2], self.dimension
        whole = jax.vmap(block_diag)(*(block.reshape(-1, *block.shape[-2:]) for block in blocks))
        return whole.reshape(*lead, d, d)

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return jnp.stack([one._exists(part) for one, part in self._blocks(direction)]).all(0)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        refusals = (one._refusal(part) for one, part in self._blocks(direction))
        return next((refusal for refusal in refusals if refusal is not None), None)

    def _generated(
        self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
    ) -> Generated | None:
        parts = zip(
            self._blocks(line.direction), self._blocks(line.projection), self._blocks(line.center),
            strict=True,
        )  # fmt: skip
        whole = None
        for (factor, a), (_, P), (_, c) in parts:
            found = factor._generated(ScoreLine(a, P, c), q)
            if found is None:
                return None
            whole = found if whole is None else whole.plus_independent(found)
        return whole

    def _variance_proxy(self) -> float:
        return max(factor._variance_proxy() for factor in self.factors)

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        return of_independent_parts(
            one._norm_moments(part) for one, part in self._blocks(direction)
        )

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        return np.concatenate([one._draw(count, random) for one in self.factors], axis=-1)

    def _blocks(self, direction: Any) -> Iterator[tuple[Measure, Any]]:
        """Each factor with its coordinates of the direction."""
        start = 0
        for factor in self.factors:
            yield factor, direction[..., start : start + factor.dimension]
            start += factor.dimension

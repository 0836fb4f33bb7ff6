"""Independent coordinates, and independent blocks of them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Bool, Float

from attractor.checks import check_items
from attractor.errors import InvalidInputError
from attractor.prompt.measures.contract import Measure


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

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        return np.concatenate([one._draw(count, random) for one in self.factors], axis=-1)

    def _blocks(self, direction: Any) -> Iterator[tuple[Measure, Any]]:
        """Each factor with its coordinates of the direction."""
        start = 0
        for factor in self.factors:
            yield factor, direction[..., start : start + factor.dimension]
            start += factor.dimension

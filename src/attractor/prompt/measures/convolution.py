"""Sums of independent tokens."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.checks import check_kinds
from attractor.errors import InvalidInputError
from attractor.prompt.measures.contract import Measure


class Convolution(Measure):
    """The law of ``X + Y`` for independent ``X`` and ``Y``: normalizers add up, and so do tilts.

    Attributes:
        first: The law of ``X``.
        second: The law of ``Y``.
    """

    first: Measure
    second: Measure

    def __init__(self, first: Measure, second: Measure) -> None:
        """Stores the two laws.

        Raises:
            InvalidInputError: If their dimensions differ.
        """
        check_kinds(first=(first, Measure), second=(second, Measure))
        if first.dimension != second.dimension:
            raise InvalidInputError(
                "second", f"the dimension is {second.dimension}", f"Give {first.dimension}"
            )
        self.first, self.second = first, second

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.first.dimension

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return self.first._log_normalizer(direction) + self.second._log_normalizer(direction)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self.first._tilted_mean(direction) + self.second._tilted_mean(direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        return self.first._tilted_covariance(direction) + self.second._tilted_covariance(direction)

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return jnp.logical_and(self.first._exists(direction), self.second._exists(direction))

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        return self.first._refusal(direction) or self.second._refusal(direction)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        return self.first._draw(count, random) + self.second._draw(count, random)

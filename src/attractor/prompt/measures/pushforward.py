"""Images of tokens under an affine map."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.checks import check_kinds
from attractor.errors import InvalidInputError
from attractor.prompt.measures.arrays import checked_map
from attractor.prompt.measures.contract import Measure, as_numpy


class Pushforward(Measure):
    """The law of ``A X + b``, with ``Lambda(a) = b^T a + Lambda_X(A^T a)``.

    Tilted, it has mean ``A m + b`` and covariance ``A C A^T``, where ``m`` and ``C`` are those that
    ``X`` has at ``A^T a``.

    Attributes:
        source: The law of ``X``.
        matrix: ``A``, ``(k, d)``.
        shift: ``b``, ``(k,)``.
    """

    source: Measure
    matrix: Float[Any, "k d"]
    shift: Float[Any, "k"]

    def __init__(
        self,
        source: Measure,
        matrix: Float[Any, "k d"] | Any,
        shift: Float[Any, "k"] | Any | None = None,
    ) -> None:
        """Checks and stores the law and the map.

        Raises:
            InvalidInputError: If shapes do not fit, or an entry is not finite.
        """
        check_kinds(source=(source, Measure))
        self.source = source
        self.matrix, self.shift = checked_map(source.dimension, matrix, shift)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.matrix.shape[-2]

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return direction @ self.shift + self.source._log_normalizer(direction @ self.matrix)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self.source._tilted_mean(direction @ self.matrix) @ self.matrix.T + self.shift

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        inner = self.source._tilted_covariance(direction @ self.matrix)
        return jnp.asarray(self.matrix) @ inner @ self.matrix.T

    def _exists(self, direction: Float[Array, "*batch d"]) -> Bool[Array, "*batch"]:
        return self.source._exists(direction @ self.matrix)

    def _refusal(self, direction: Float[np.ndarray, "*batch d"]) -> InvalidInputError | None:
        return self.source._refusal(direction @ as_numpy(self.matrix))

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "..."]:
        drawn = self.source._draw(count, random)
        return drawn @ as_numpy(self.matrix).T + as_numpy(self.shift)

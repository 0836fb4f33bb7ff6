"""The prompt vector as what is trained, with the key weights fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Array, Float

from attractor.attention.parameterization.contract import Parameterization
from attractor.attention.rows import Rows
from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius, Geometry, Schatten
from attractor.precision import as_float64, as_shaped
from attractor.tokens import Tokens


@dataclass(frozen=True)
class PromptVector(Parameterization):
    """A prompt vector ``p`` is trained and the key weights are fixed: scores ``X weights p``.

    It is one query for all sequences; the queries of the tokens are not used. The effective
    matrix is the column ``p``, for keys ``X weights`` and the number one as query. Source:
    *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596).

    Attributes:
        weights: The fixed weights, ``(d, d')``; None for the identity.
    """

    name: ClassVar[str] = "p"
    # They end in the tokens, so that prompts with different weights share compiled code.
    weights: Float[np.ndarray, "d m"] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Casts the weights.

        Raises:
            InvalidInputError: If they are no matrix of finite numbers.
        """
        if self.weights is not None:
            object.__setattr__(self, "weights", as_shaped("weights", self.weights, ("d", "m")))

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """``p``."""
        return {"p": (d,)}

    def from_arrays(self, arrays: Mapping[str, Any]) -> Float[Any, "*trials d"]:
        """``p``."""
        return arrays["p"]

    def to_arrays(self, parameters: Float[Any, "*trials d"]) -> dict[str, Any]:
        """``p``."""
        return {"p": parameters}

    def scores(
        self, parameters: Float[Array, "d"], rows: Rows
    ) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T p``, with the weights in the keys already."""
        return (rows.keys @ parameters)[:, None, :]

    def effective_matrix(self, parameters: Float[Array, "d"]) -> Float[Array, "d 1"]:
        """The column ``p``."""
        return parameters[:, None]

    def from_matrix(self, W: Float[Any, "*trials d 1"]) -> Float[Any, "*trials d"]:
        """The column as a vector."""
        return W[..., 0]

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """The geometry itself; of a single column every Schatten norm is the Euclidean one."""
        return Frobenius() if isinstance(geometry, Schatten) else geometry

    def prepare(self, tokens: Tokens) -> Tokens:
        """Tokens with keys ``X weights`` and the number one as query.

        Raises:
            InvalidInputError: If there are several queries a sequence, or the weights do not fit.
        """
        if tokens.queries_per_sequence != 1:
            raise InvalidInputError(
                "tokens",
                f"each sequence has {tokens.queries_per_sequence} queries, but a prompt is one",
                "Give tokens with one query and one label a sequence",
            )
        keys = tokens.keys
        if self.weights is not None:
            weights = as_float64("weights", self.weights)
            if weights.ndim != 2 or weights.shape[0] != tokens.key_dimension:
                raise InvalidInputError(
                    "weights",
                    f"the shape is {weights.shape}",
                    f"Give ({tokens.key_dimension}, m): it multiplies tokens from the right",
                )
            keys = keys @ weights
        return Tokens(
            keys,
            np.ones((*tokens.queries.shape[:-1], 1)),
            tokens.labels,
            tokens.mask,
            tokens.values,
            weights=tokens.weights,
            instance_numbers=tokens.instance_numbers,
        )

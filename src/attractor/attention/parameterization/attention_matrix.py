"""The attention matrix itself as what is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attractor.attention.parameterization.contract import Parameterization
from attractor.attention.rows import Rows
from attractor.geometry import Geometry


@dataclass(frozen=True)
class AttentionMatrix(Parameterization):
    """The matrix ``W`` itself is trained."""

    name: ClassVar[str] = "W"

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """``W`` alone."""
        return {"W": (d, e)}

    def from_arrays(self, arrays: Mapping[str, Any]) -> Float[Any, "*trials d e"]:
        """``W``."""
        return arrays["W"]

    def to_arrays(self, parameters: Float[Any, "*trials d e"]) -> dict[str, Any]:
        """``W``."""
        return {"W": parameters}

    def scores(
        self, parameters: Float[Array, "d e"], rows: Rows
    ) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T W z``."""
        return jnp.einsum("ntd,nkd->nkt", rows.keys, rows.queries @ parameters.T)

    def effective_matrix(self, parameters: Float[Array, "d e"]) -> Float[Array, "d e"]:
        """``W``."""
        return parameters

    def from_matrix(self, W: Float[Any, "*trials d e"]) -> Float[Any, "*trials d e"]:
        """``W``."""
        return W

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """The geometry itself."""
        return geometry

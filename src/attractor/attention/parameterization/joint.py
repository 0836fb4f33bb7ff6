"""Attention and head trained together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float, PyTree

from attractor.attention.parameterization.contract import Parameterization
from attractor.attention.rows import Rows
from attractor.checks import check_flags, check_kinds
from attractor.geometry import Geometry
from attractor.tokens import Tokens


@dataclass(frozen=True)
class Joint(Parameterization):
    """The head is trained beside the attention layer: ``(v, W)``, ``(v, p)``, ``(v, (K, Q))``.

    The head given to ``train`` is where its training starts. Source: *Max-Margin Token Selection
    in Attention Mechanism* (arXiv 2306.13596), joint training of the prompt and the head.

    Attributes:
        attention: How the attention layer is parameterized.
    """

    attention: Parameterization
    trains_head: bool = True

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            InvalidInputError: If one is of another kind.
        """
        check_kinds(attention=(self.attention, Parameterization))
        check_flags(trains_head=self.trains_head)

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """``v`` and the name of the attention parameters."""
        return f"v, {self.attention.name}"

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """Those of the attention layer: the head has its own."""
        return self.attention.shapes(d, e)

    def from_arrays(self, arrays: Mapping[str, Any]) -> PyTree:
        """The attention parameters."""
        return self.attention.from_arrays(arrays)

    def to_arrays(self, parameters: PyTree) -> dict[str, Any]:
        """The arrays of the attention layer."""
        return self.attention.to_arrays(parameters)

    def scores(self, parameters: PyTree, rows: Rows) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T W z``."""
        return self.attention.scores(parameters, rows)

    def effective_matrix(self, parameters: PyTree) -> Float[Array, "d e"]:
        """The attention matrix."""
        return self.attention.effective_matrix(parameters)

    def from_matrix(self, W: Float[Any, "*trials d e"]) -> PyTree:
        """Attention parameters that stand for given matrices."""
        return self.attention.from_matrix(W)

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """That of the attention layer."""
        return self.attention.effective_geometry(geometry)

    def check_initial(self, arrays: Mapping[str, Any]) -> None:
        """As the attention layer checks them.

        Raises:
            InvalidInputError: If training could not leave them.
        """
        self.attention.check_initial(arrays)

    def prepare(self, tokens: Tokens) -> Tokens:
        """The tokens that the attention layer speaks of.

        Raises:
            InvalidInputError: If the tokens do not suit it.
        """
        return self.attention.prepare(tokens)

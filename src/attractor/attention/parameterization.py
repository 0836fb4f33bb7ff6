"""Parameterizations: which numbers are trained, and the effective matrix they stand for."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.rows import Rows
from attractor.errors import InvalidInputError
from attractor.geometry import Geometry


class Parameterization(abc.ABC):
    """How trained parameters make up the attention matrix ``W``.

    Attributes:
        name: What a user calls it.
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def scores(self, parameters: PyTree, rows: Rows) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T W z`` of every token for every query of one data set."""

    @abc.abstractmethod
    def effective_matrix(self, parameters: PyTree) -> Float[Array, "d e"]:
        """The attention matrix ``W`` that the parameters stand for."""

    @abc.abstractmethod
    def from_matrix(self, W: Float[Any, "*trials d e"]) -> PyTree:
        """Parameters that stand for given matrices."""

    @abc.abstractmethod
    def effective_geometry(self, geometry: Geometry) -> Geometry | None:
        """The norm of ``W`` that descending ``geometry`` in the parameters minimizes, if known."""


@dataclass(frozen=True)
class AttentionMatrix(Parameterization):
    """The matrix ``W`` itself is trained."""

    name: ClassVar[str] = "W"

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

    def effective_geometry(self, geometry: Geometry) -> Geometry | None:
        """The geometry itself."""
        return geometry


_PARAMETERIZATIONS: dict[str, Parameterization] = {AttentionMatrix.name: AttentionMatrix()}


def get_parameterization(parameterization: str | Parameterization) -> Parameterization:
    """Returns the parameterization with a name; an instance is returned as it is.

    Raises:
        InvalidInputError: If there is no such parameterization.
    """
    if isinstance(parameterization, Parameterization):
        return parameterization
    if parameterization not in _PARAMETERIZATIONS:
        raise InvalidInputError(
            "parameterization",
            f"there is none named {parameterization!r}",
            f"Known: {', '.join(_PARAMETERIZATIONS)}",
        )
    return _PARAMETERIZATIONS[parameterization]

"""The subspace of matrices that separate tokens of one component."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.corpora.embedded.embeddings import check_embeddings
from attractor.corpora.mechanics._graph_problem import component_pairs
from attractor.corpora.structures.graphs import QueryGraphs
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_shaped

_ROUNDING = 1e-12
"""Singular values of a span, relative to the largest, that are rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class CyclicSubspace:
    """``span{ (e_i - e_j) e_k^T : i and j in one component of the graph of query k }``.

    Attributes:
        basis: Orthonormal matrices that span it; none where no graph has a cycle.
    """

    basis: Float[np.ndarray, "r d d"]

    @property
    def dimension(self) -> int:
        """Its dimension r."""
        return len(self.basis)

    def coordinates(self, W: Float[np.ndarray, "*batch d d"]) -> Float[np.ndarray, "*batch r"]:
        """``<B_r, W>`` for every matrix of the basis."""
        W = as_shaped("W", W, ("...", *self.basis.shape[1:]))
        return np.einsum("rce,...ce->...r", self.basis, W)

    def embed(self, coordinates: Float[np.ndarray, "*batch r"]) -> Float[np.ndarray, "*batch d d"]:
        """The matrix with these coordinates."""
        coordinates = as_float64("coordinates", coordinates)
        if coordinates.shape[-1:] != (self.dimension,):
            raise InvalidInputError(
                "coordinates", f"the shape is {coordinates.shape}", f"Give (..., {self.dimension})"
            )
        return np.einsum("...r,rce->...ce", coordinates, self.basis)

    def project(self, W: Float[np.ndarray, "*batch d d"]) -> Float[np.ndarray, "*batch d d"]:
        """The nearest matrix of the subspace."""
        return self.embed(self.coordinates(W))

    def __repr__(self) -> str:
        d = self.basis.shape[-1]
        return f"CyclicSubspace(dimension {self.dimension} of {d} x {d} matrices)"


def cyclic_subspace(graphs: QueryGraphs, embeddings: Float[np.ndarray, "K d"]) -> CyclicSubspace:
    """The cyclic subspace of token-priority graphs.

    Source: *Mechanics of Next Token Prediction with Self-Attention*
    (arXiv 2403.08081), the cyclic subspace.

    Args:
        graphs: The graphs.
        embeddings: The vector of every token.
    """
    check_kinds(graphs=(graphs, QueryGraphs))
    embeddings = check_embeddings(as_float64("embeddings", embeddings), graphs.size)
    query, token, other = component_pairs(graphs).T
    return CyclicSubspace(product_span(embeddings[token] - embeddings[other], embeddings[query]))


def product_span(
    left: Float[np.ndarray, "m d"],
    right: Float[np.ndarray, "m e"],
    without: Float[np.ndarray, "r d e"] | None = None,
) -> Float[np.ndarray, "s d e"]:
    """Orthonormal matrices that span products ``a_j b_j^T``.

    They are found in orthonormal bases of both factors, where the products are short.

    Args:
        left: The ``a_j``.
        right: The ``b_j``.
        without: Orthonormal matrices whose span is removed from the products first.
    """
    U, V = row_span(left), row_span(right)
    products = np.einsum("mp,mq->mpq", left @ U, right @ V)
    shape = products.shape[1:]
    flat = products.reshape(len(left), -1) if len(left) else np.zeros((0, np.prod(shape)))
    if without is not None:
        own = (U.T @ without @ V).reshape(len(without), flat.shape[1])
        flat = flat - flat @ own.T @ own
    inner = row_span(flat)
    return U @ inner.T.reshape(inner.shape[1], *shape) @ V.T


def row_span(rows: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "k r"]:
    """Orthonormal columns that span some rows; none where all rows are zero."""
    if not rows.any():
        return np.zeros((rows.shape[-1], 0))
    _, values, V = np.linalg.svd(rows, full_matrices=False)
    return V[values > _ROUNDING * values[0]].T

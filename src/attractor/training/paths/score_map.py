"""Attention scores as a linear map of few coordinates of W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius, Geometry

_ROUNDING = 1e-13
"""Singular values of a span, relative to the largest, that are rounding."""


@dataclass(frozen=True)
class ScoreMap:
    """Scores of one data set, for W of norm one, in coordinates that keep the norm.

    Replacing W by its projection on the spans of token differences and of queries changes no
    difference of scores, and raises no unitarily invariant norm; in the Frobenius norm the span
    of the products will do. Other norms keep all entries of W.

    Attributes:
        matrix: Scores, measured from a token of the row, of every unit coordinate matrix.
        shape: Shape of the coordinate matrices.
        basis: Products multiplied by the coordinates, ``(d e, k)``, where these are no matrix.
        left: Orthonormal columns spanning token differences.
        right: Orthonormal columns spanning queries.
    """

    matrix: Float[np.ndarray, "sequence query token k"]
    shape: tuple[int, int]
    basis: Float[np.ndarray, "m k"] | None
    left: Float[np.ndarray, "d p"]
    right: Float[np.ndarray, "e q"]

    def embed(self, C: Float[np.ndarray, "p q"]) -> Float[np.ndarray, "d e"]:
        """The matrix of coordinates."""
        inner = (self.left.shape[1], self.right.shape[1])
        matrix = C if self.basis is None else (self.basis @ C.ravel()).reshape(inner)
        return self.left @ matrix @ self.right.T

    def project(self, W: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "p q"]:
        """Coordinates of a matrix, or of the nearest one that has any."""
        inner = self.left.T @ W @ self.right
        return inner if self.basis is None else (self.basis.T @ inner.ravel())[:, None]


def score_map(
    keys: Float[Any, "sequence token d"],
    queries: Float[Any, "sequence query e"],
    mask: Bool[Any, "sequence query token"],
    geometry: Geometry,
) -> ScoreMap:
    """The scores of one data set in the coordinates that suit a norm."""
    first = mask.argmax(-1)
    reference = np.take_along_axis(keys[:, None], first[..., None, None], axis=2)
    differences = np.where(mask[..., None], keys[:, None] - reference, 0)
    d, e = keys.shape[-1], queries.shape[-1]
    left, right = np.eye(d), np.eye(e)
    if geometry.unitarily_invariant:
        left, right = _span(differences.reshape(-1, d)), _span(queries.reshape(-1, e))
    matrix = np.einsum("nktp,nkq->nktpq", differences @ left, queries @ right)
    shape = matrix.shape[-2:]
    flat = matrix.reshape(*matrix.shape[:3], -1)
    basis = None
    if geometry == Frobenius() and min(shape) > 1:
        rows = flat.reshape(-1, flat.shape[-1])
        basis = _span(rows[(rows != 0).any(-1)])
        flat, shape = flat @ basis, (basis.shape[1], 1)
    return ScoreMap(flat, shape, basis, left, right)


def _span(rows: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "k r"]:
    """Orthonormal columns that span some rows; one column where all are zero."""
    size = rows.shape[-1]
    if not rows.any():
        return np.eye(size)[:, :1]
    if len(rows) > 2 * size:  # a triangle spans the same
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    _, values, V = np.linalg.svd(rows, full_matrices=False)
    return V[values > _ROUNDING * values[0]].T

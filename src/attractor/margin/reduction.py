"""Margin problems in the spans of their constraints: exact for unitarily invariant norms.

If ``||U W V|| = ||W||`` for orthogonal U and V, projecting W on ``span(a_j)`` and ``span(b_j)``
changes no margin and does not raise the norm (*Transformers as Support Vector Machines*, the
lemma on the rank of solutions). Entrywise norms have no such property.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from attractor.margin.scaling import ScaledConstraints

_ROUNDING = 1e-14
"""Singular values of the stacked vectors, relative to the largest, that are rounding."""


def reduce_to_spans(
    scaled: ScaledConstraints,
) -> tuple[
    ScaledConstraints, Float[np.ndarray, "instances d p"], Float[np.ndarray, "instances e q"]
]:
    """The constraints in coordinates of the spans, and orthonormal bases of the spans.

    A batch shares one p and one q: the largest rank of its instances. ``W = P w Q^T`` restores.
    """
    left, left_basis = _coordinates(scaled.left)
    right, right_basis = _coordinates(scaled.right)
    return dataclasses.replace(scaled, left=left, right=right), left_basis, right_basis


def _coordinates(
    rows: Float[np.ndarray, "instances m d"],
) -> tuple[Float[np.ndarray, "instances m p"], Float[np.ndarray, "instances d p"]]:
    """Coordinates of rows in an orthonormal basis of their span, and the basis."""
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        basis = np.broadcast_to(np.eye(rows.shape[2])[:, :1], (len(rows), rows.shape[2], 1))
        return rows @ basis, basis
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    rank = (values > _ROUNDING * values[:, :1]).sum(-1).max(initial=1)
    basis = np.swapaxes(basis[:, : max(int(rank), 1)], -1, -2)
    return rows @ basis, basis

"""Margin problems in the spans of their constraints: exact for unitarily invariant norms.

If ``||U W V|| = ||W||`` for orthogonal U and V, projecting W on ``span(a_j)`` and ``span(b_j)``
changes no margin and does not raise the norm (*Transformers as Support Vector Machines*, the
lemma on the rank of solutions). Entrywise norms have no such property.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from attractor.geometry import singular_value_decomposition
from attractor.margin.batching.scaling import ScaledConstraints

_ROUNDING = 1e-14
"""Singular values of the stacked vectors, relative to the largest, that are rounding."""


def reduce_to_spans(
    scaled: ScaledConstraints,
) -> Iterator[
    tuple[
        Int[np.ndarray, "k"],
        ScaledConstraints,
        Float[np.ndarray, "k d p"],
        Float[np.ndarray, "k e q"],
    ]
]:
    """The constraints in coordinates of their spans; ``W = P w Q^T`` restores.

    Instances are taken together only where both of their spans have the same dimensions: in larger
    ones, of the largest of others, an instance would be solved to other digits.

    Yields:
        Numbers of instances, their constraints, and orthonormal bases P and Q of their spans.
    """
    left, p = _bases(scaled.left)
    right, q = _bases(scaled.right)
    for dimensions in np.unique(np.stack([p, q], axis=-1), axis=0):
        places = np.flatnonzero((p == dimensions[0]) & (q == dimensions[1]))
        part = scaled if len(places) == len(p) else scaled.choose(places)
        P = np.swapaxes(left[places, : dimensions[0]], -1, -2)
        Q = np.swapaxes(right[places, : dimensions[1]], -1, -2)
        yield places, dataclasses.replace(part, left=part.left @ P, right=part.right @ Q), P, Q


def _bases(
    rows: Float[np.ndarray, "instances m d"],
) -> tuple[Float[np.ndarray, "instances s d"], Int[np.ndarray, "instances"]]:
    """Orthonormal rows, of which the first few span the given ones, and how many, at least one."""
    count, m, d = rows.shape
    if count == 0 or m == 0:
        return np.broadcast_to(np.eye(d)[:1], (count, 1, d)), np.ones(count, dtype=int)
    _, values, basis = singular_value_decomposition(rows)
    return basis, np.maximum((values > _ROUNDING * values[:, :1]).sum(-1), 1)

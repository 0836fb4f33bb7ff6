"""Null hypotheses on how a head pairs queries with keys: other heads that might as well be there.

A draw of a null is a map ``R`` of the queries: the head with the scores ``k^T (R u + q)``, where
``u`` is a query less the mean query ``q``. The part of scores without the query, ``k^T q``, stays:
where it is turned as well, draws select more by the query than the head does, and tests err.
Statistics of a draw are those of its own selections.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.heads.captured.captured import Word
from attractor.heads.captured.rows import HeadRows
from attractor.support.randomness import generator, random_rotation

_NEGLIGIBLE = 1e-10
"""Share of the largest variance below which a direction of keys or queries is not there."""


class Null(Word):
    """What a draw keeps of a head, and what it breaks.

    Each turns the queries of a head at random and leaves the part of scores without the query. Of a
    head with random weights ``ROTATION`` is exact but for the factor that keeps the spread: queries
    of independent Gaussian weights turned are queries of such weights.
    """

    ROTATION = (
        "rotation",
        "queries turned at random as the model keeps them, the spread of scores kept; exact for "
        "heads of random weights but for that spread, and the verdict rests on it",
    )
    PAIRING = (
        "pairing",
        "queries turned in coordinates in which keys and queries have one covariance, the spread "
        "not kept: it is largest for the head itself, so that heads of random weights exceed it",
    )
    SIGNS = (
        "signs",
        "signs of those coordinates at random, which keep the spectrum of scores and most of the "
        "pairing, so that few heads exceed it",
    )


def draw_maps(
    null: Null, rows: HeadRows, draws: int, key: tuple[int, int, int]
) -> Float[np.ndarray, "draws width width"]:
    """Draws of a null, as maps of the centered queries.

    Args:
        null: The null.
        rows: The rows of the head.
        draws: How many.
        key: Seed, layer and head, which name the draws: they do not depend on how many there are,
            or on other heads.
    """
    width = rows.queries.shape[1]
    generators = [generator(*key, draw, purpose=f"null {null}") for draw in range(draws)]
    if null is Null.ROTATION:
        maps = np.array([random_rotation(one, width) for one in generators])
        return maps * _kept_spread(rows, maps)[:, None, None]
    of_keys, of_queries = balanced_coordinates(rows)
    rank = len(of_keys)
    if null is Null.PAIRING:
        inner = np.array([random_rotation(one, rank) for one in generators])
    else:
        inner = np.array([np.diag(one.choice([-1.0, 1.0], rank)) for one in generators])
    return of_keys.T @ inner.reshape(draws, rank, rank) @ of_queries


def _kept_spread(
    rows: HeadRows, maps: Float[np.ndarray, "draws width width"]
) -> Float[np.ndarray, "draws"]:
    """The factor of each map that gives its scores the head's mean square."""
    turned = maps @ rows.query_covariance @ np.swapaxes(maps, -1, -2)
    squares = np.sum(rows.key_covariance * turned, axis=(-1, -2))
    own = rows.horizon**2
    return np.sqrt(np.divide(own, squares, out=np.zeros(len(maps)), where=squares > 0))


def balanced_coordinates(
    rows: HeadRows,
) -> tuple[Float[np.ndarray, "rank width"], Float[np.ndarray, "rank width"]]:
    """Maps ``A`` of keys and ``B`` of queries to coordinates of one diagonal covariance.

    Scores stay: ``(A k)^T (B u) = k^T u`` for centered keys and queries. With the symmetric roots
    of both covariances and ``C_k^(1/2) C_u^(1/2) = U S V^T``, the covariance of either is ``S``.
    The head in other factors, ``(G^-T k, G u)``, gives the same up to signs where no ``S`` tie.
    """
    root_k, inverse_k = _root(rows.key_covariance)
    root_u, inverse_u = _root(rows.query_covariance)
    left, spread, right = np.linalg.svd(root_k @ root_u)
    kept = spread > _NEGLIGIBLE * spread.max(initial=0.0)
    scale = np.sqrt(spread[kept])[:, None]
    return scale * (left[:, kept].T @ inverse_k), scale * (right[kept] @ inverse_u)


def _root(
    covariance: Float[np.ndarray, "width width"],
) -> tuple[Float[np.ndarray, "width width"], Float[np.ndarray, "width width"]]:
    """The symmetric square root of a covariance, and its inverse on directions that are there."""
    values, vectors = np.linalg.eigh(covariance)
    there = values > _NEGLIGIBLE * values.max(initial=0.0)
    roots = np.sqrt(np.where(there, values, 0.0))
    inverses = np.divide(1.0, roots, out=np.zeros_like(roots), where=there)
    return (vectors * roots) @ vectors.T, (vectors * inverses) @ vectors.T

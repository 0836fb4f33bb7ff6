"""Matrices that separate the best tokens from the others by a share of the largest margin."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attractor.files.case import Case
from attractor.papers.measurements.attended import margin_ratios

_TURNS = np.linspace(0.0, 4.0, 401)


def faint_length(case: Case) -> float:
    """A length at which a matrix of the largest margin leaves other tokens next to no weight.

        R = ||W*|| log(64 T S / g)

    with S the largest range of scores in a row, g the smallest advantage of a best token and T
    the most tokens of a row: the weight of all others of a row is at most ``g / (64 S)``, so that
    each of them scores lower than the row's average and is pushed down. A matrix of a margin
    ratio mu is as far at ``R / mu``.
    """
    mask, best = case.tokens.mask, case.optimal.mask
    rows = (mask & ~best).any(-1)
    highest = np.where(mask, case.scores, -np.inf).max(-1)[rows]
    others = np.where(mask & ~best, case.scores, -np.inf).max(-1)[rows]
    lowest = np.where(mask, case.scores, np.inf).min(-1)[rows]
    most = int(mask.sum(-1).max())
    logarithm = np.log(64 * most * (highest - lowest).max() / (highest - others).min())
    return float(case.solution(selection=case.optimal).value) * float(logarithm)


def separating_starts(
    case: Case, seed: int, ratio: float, count: int
) -> Float[np.ndarray, "start d e"]:
    """The axis of the cone of matrices with a margin ratio, and random matrices on its edge.

    All are long enough to leave other tokens next to no weight.

    Args:
        case: The data.
        seed: Names the random directions.
        ratio: The margin ratio, at most 1.
        count: Random matrices.
    """
    solution = case.solution(selection=case.optimal)
    axis = solution.W / np.linalg.norm(solution.W)
    turned = np.random.default_rng([seed, 53]).standard_normal((count, 1, *axis.shape))
    turned /= np.linalg.norm(turned, axis=(-1, -2), keepdims=True)
    along = axis + _TURNS[:, None, None] * turned
    inside = margin_ratios(along, solution) >= ratio
    farthest = inside.cumprod(-1).sum(-1) - 1
    edge = along[np.arange(count), farthest]
    edge /= np.linalg.norm(edge, axis=(-1, -2), keepdims=True)
    return faint_length(case) / ratio * np.concatenate([axis[None], edge])


def separates(
    case: Case, matrices: Float[np.ndarray, "start d e"], ratio: float
) -> Bool[np.ndarray, "start"]:
    """Mask of the matrices that are in that cone, and that long."""
    solution = case.solution(selection=case.optimal)
    lengths = np.linalg.norm(matrices, axis=(-1, -2))
    return (margin_ratios(matrices, solution) >= ratio) & (lengths >= faint_length(case) / ratio)

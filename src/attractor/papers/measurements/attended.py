"""Tokens that are attended to, and margins beside the largest."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from attractor.files.case import Case
from attractor.margin import Solution
from attractor.margin.selection import Selection


def scores_at(
    case: Case, W: Float[np.ndarray, "*run d e"]
) -> Float[np.ndarray, "*run sequence query token"]:
    """Attention scores at matrices; minus infinity where there is no token."""
    return np.where(case.tokens.mask, case.tokens.scores(W), -np.inf)


def keeping(case: Case, index: Int[np.ndarray, "*run sequence query"]) -> Selection:
    """The selection of one token for every query of every sequence."""
    mask = index[..., None] == np.arange(case.tokens.length)
    return Selection(mask, np.zeros(index.shape, bool))


def choosing(case: Case, index: ArrayLike, words: str) -> Case:
    """The case with one token of every row selected, of which ``about`` speaks in words."""
    chosen = Selection.from_index(case.tokens, index)
    return case.replace(chosen=chosen, about=f"{case.about}, {words}")


def attended(case: Case, W: Float[np.ndarray, "*run d e"]) -> Selection:
    """The token of highest attention score in every row, the first of several."""
    return keeping(case, scores_at(case, W).argmax(-1))


def margin_ratios(
    W: Float[np.ndarray, "*batch d e"], solution: Solution
) -> Float[np.ndarray, "*batch"]:
    """``min_j (a_j^T W b_j / c_j) ||W*|| / ||W||``: at most 1, and 1 on solutions only.

    NaN for a matrix of zeros.

    Args:
        W: Matrices.
        solution: That of a single problem without equalities, in the norm that counts.
    """
    problem = solution.problem
    least = (problem.margins(W) / problem.bounds).min(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return least * float(solution.value) / np.asarray(solution.geometry.norm(W))

"""Tokens that score the same as the selected ones, which exert no force on each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Geometry
from attractor.margin._solve import solve
from attractor.margin.selection import Selection, score_rounding, token_scores
from attractor.margin.selections.alternatives import problem_against_outsiders
from attractor.margin.solution import Solution
from attractor.margin.variants.several import solve_several
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


def tie_classes(tokens: Tokens, head: Callable[[Any], Any], selection: Selection) -> Selection:
    """The tokens of each row whose score equals that of the selected token, up to rounding.

    Training moves weight between such tokens only by what it does to others, so that it may end
    at any of them. The class replaces the token where ties are to do no harm:
    ``check_local_optimality(..., ties="class")``, and ``solve_several``.

    Args:
        tokens: The data set, with labels -1 and +1.
        head: Maps outputs to predictions.
        selection: One token for each row, or several that tie.

    Raises:
        InvalidInputError: If the selection does not fit, or keeps tokens of different scores in
            a row.
    """
    check_kinds(tokens=(tokens, Tokens), selection=(selection, Selection))
    scores = token_scores(tokens, head)
    selected = selection.mask
    if selected.shape != tokens.mask.shape or not (selected & tokens.mask).any(-1).all():
        raise InvalidInputError(
            "selection",
            f"its mask has shape {selected.shape}, or keeps no token of some row",
            f"Select among {tokens.mask.shape}, at least one token in every row",
        )
    rounding = score_rounding(tokens, head)[..., None]
    highest = np.where(selected, scores, -np.inf).max(-1, keepdims=True)
    lowest = np.where(selected, scores, np.inf).min(-1, keepdims=True)
    if (highest - lowest > rounding).any():
        row = tuple(int(i) for i in np.argwhere((highest - lowest > rounding)[..., 0])[0])
        raise InvalidInputError(
            "selection",
            f"row {row} keeps tokens of different scores, or masked ones",
            "Select one token for each row, or several that tie",
        )
    mask = tokens.mask & equal_scores(scores, rounding, selected)
    return Selection(mask, mask.sum(-1) > 1)


def equal_scores(
    scores: Float[np.ndarray, "*batch sequence query token"],
    rounding: Float[np.ndarray, "*batch sequence query 1"],
    selected: Bool[np.ndarray, "*batch sequence query token"],
) -> Bool[np.ndarray, "*batch sequence query token"]:
    """Tokens whose score is that of the selected ones of their row, up to rounding."""
    highest = np.where(selected, scores, -np.inf).max(-1, keepdims=True)
    lowest = np.where(selected, scores, np.inf).min(-1, keepdims=True)
    return (scores >= highest - rounding) & (scores <= lowest + rounding)


def solve_tie_classes(tokens: Tokens, classes: Selection, geometry: Geometry) -> Solution:
    """The smallest matrix that keeps one token of every class, for each instance.

    Args:
        tokens: One data set or instances of them.
        classes: One token or several in each row.
        geometry: The norm.
    """
    if tokens.instances is None:
        return solve_several(tokens, classes, geometry).solution
    kept = [
        solve_several(tokens[i], classes[i], geometry).selection for i in range(tokens.instances)
    ]
    chosen = Selection(np.stack([s.mask for s in kept]), np.stack([s.tied for s in kept]))
    return solve(problem_against_outsiders(tokens, chosen, classes), geometry)


def is_of_classes(solution: Solution, tokens: Tokens, classes: Selection) -> bool:
    """Whether a solution keeps one token of every class against all tokens outside."""
    chosen = solution.problem.selection
    if chosen is None or chosen.mask.shape != classes.mask.shape:
        return False
    if (chosen.mask & ~classes.mask).any() or (chosen.mask.sum(-1) != 1).any():
        return False
    wanted = problem_against_outsiders(tokens, chosen, classes)
    names = ("left", "right", "bounds", "present")
    return all(
        np.array_equal(getattr(solution.problem, name), getattr(wanted, name)) for name in names
    )

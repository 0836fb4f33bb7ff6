"""Whether a margin problem was built from given tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.trained import Trained
from attractor.errors import InvalidInputError
from attractor.margin import MarginProblem
from attractor.selection import Selection
from attractor.tokens import Tokens

_ROUNDINGS = 8
"""Roundings, relative to what a difference of keys is taken of, that rows may be off by."""


def check_about(problem: MarginProblem, tokens: Tokens, trained: Trained) -> None:
    """Checks that the rows of a problem are those of a data set.

    Each row names a sequence, a query and a token: it must be the difference of keys between the
    selected token and that one, and the query. Tokens that the selected one is to be ahead of may
    be missing only where their scores are equal, as between them there is no force.

    Args:
        problem: A single problem, with its selection.
        tokens: A single data set.
        trained: What was trained on it.

    Raises:
        InvalidInputError: If the rows do not name tokens, so that nothing can be held against
            these; one is not of these tokens; or one is missing.
    """
    selection = problem.selection
    assert selection is not None
    if problem.sequence is None or problem.query is None or problem.token is None:
        raise InvalidInputError(
            "solution",
            "the rows of its problem do not say which tokens they are about",
            "Build the problem with MarginProblem.from_selection, or give it sequence, query and "
            "token",
        )
    present = problem.present
    sequence, query, token = (
        np.asarray(array)[present] for array in (problem.sequence, problem.query, problem.token)
    )
    chosen = selection.mask.reshape(tokens.mask.shape)
    place = (sequence, query, token)
    shape = tokens.mask.shape
    inside = [(0 <= n) & (n < size) for n, size in zip(place, shape, strict=True)]
    if not np.all(inside):
        raise _other_data("its rows name tokens that these do not have")
    ahead = chosen.argmax(-1)[sequence, query]
    keys = tokens.keys[sequence]
    own = np.arange(len(keys))
    for rows, minuend, subtrahend in (
        (problem.left[present], keys[own, ahead], keys[own, token]),
        (problem.right[present], tokens.queries[sequence, query], 0.0),
    ):
        wrong = _differ(rows, minuend, subtrahend)
        if wrong.any():
            raise _other_data(_at(place, int(wrong.argmax()), "are other vectors"))
    masked = ~tokens.mask[place]
    if masked.any():
        raise _other_data(_at(place, int(masked.argmax()), "are about a token that is masked"))
    asked = chosen & (np.cumsum(chosen, -1) == 1)
    asked[place] = True
    missing = tokens.mask & ~asked
    if trained.scores is not None:
        missing &= ~trained.of_equal_score(Selection(chosen, selection.tied))
    if missing.any():
        at = tuple(np.argwhere(missing)[0])
        raise _other_data(f"it asks nothing about token {at[2]} of sequence {at[0]}, query {at[1]}")


def _differ(
    rows: Float[np.ndarray, "m c"],
    minuend: Float[np.ndarray, "m c"],
    subtrahend: Float[np.ndarray, "m c"] | float,
) -> Bool[np.ndarray, "m"]:
    """Rows that are not the difference, up to its rounding."""
    size = np.abs(minuend) + np.abs(subtrahend)
    allowed = _ROUNDINGS * np.finfo(np.float64).eps * size.max(-1, keepdims=True, initial=0.0)
    return (np.abs(rows - (minuend - subtrahend)) > allowed).any(-1)


def _at(place: tuple[Int[np.ndarray, "m"], ...], row: int, what: str) -> str:
    n, k, t = (int(numbers[row]) for numbers in place)
    return f"its rows {what} at sequence {n}, query {k}, token {t}"


def _other_data(problem: str) -> InvalidInputError:
    return InvalidInputError(
        "solution",
        f"it is one of other data than those of this run: {problem}",
        "Build its problem from trajectory.tokens",
    )

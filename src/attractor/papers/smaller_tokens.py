"""The smallest token sequences on which a claim still fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Bool

from attractor.attention import LinearHead, get_parameterization
from attractor.errors import InvalidInputError
from attractor.papers._examine import Finding
from attractor.papers.trial import Trial, drop
from attractor.selection import Selection
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.papers.case import Case

_DIGITS = (0, 1, 2, 3)


def smaller_tokens(case: Case, trial: Trial, first: Finding) -> Case:
    """A case less what a counterexample does not need; itself where nothing can go.

    Sequences go first, in halves and then smaller parts, then tokens, then digits of all numbers.

    Args:
        case: The counterexample.
        trial: Examines candidates.
        first: What was found on the case.
    """
    # Masks in place of smaller arrays let every trial use what is compiled for this shape. With a
    # head that is trained, rows without a choice still have labels, which count.
    joint = get_parameterization(case.parameterization).trains_head
    build = _packed if joint else _masked
    case = _with_start(case, first, trial)

    def fails(kept: Bool[np.ndarray, "sequence token"]) -> bool:
        return trial.fails(build(case, kept), reserve=len(_DIGITS) + 1)

    kept = start = np.asarray(case.tokens.mask.any(-2))
    before = -1
    while before != kept.sum():  # a token less may make room for a sequence less
        before = kept.sum()
        kept = drop(
            kept, [_places(_row(kept, i)) for i in range(len(kept)) if kept[i].any()], fails
        )
        kept = drop(kept, [[place] for place in _places(kept)], fails)
    found = case
    if (kept != start).any():
        packed = _packed(case, kept)
        found = packed if trial.fails(packed) else build(case, kept)
        assert found is not None  # it was found to fail
    return _rounded(found, trial)


def _with_start(case: Case, found: Finding, trial: Trial) -> Case:
    """The case with the start for which it fails, where its measurement names one."""
    assert found.measured is not None
    start = found.measured.details.get("start")
    if start is None or case.initial is not None or case.parameterization not in ("p", "W"):
        return case
    matrix = np.asarray(start, dtype=float)
    candidate = case.replace(initial=matrix[:, 0] if case.parameterization == "p" else matrix)
    return candidate if trial.fails(candidate) else case


def _row(kept: np.ndarray, number: int) -> np.ndarray:
    return kept & (np.arange(len(kept)) == number)[:, None]


def _places(chosen: Bool[np.ndarray, "sequence token"]) -> list[tuple[int, ...]]:
    return [(int(i), int(t)) for i, t in np.argwhere(chosen)]


def _masked(case: Case, kept: Bool[np.ndarray, "sequence token"]) -> Case | None:
    """The case with other tokens masked; a sequence without any keeps one, and so no choice."""
    tokens, selected = case.tokens, case.selection.mask
    alone = np.arange(tokens.length) == selected.argmax(-1)[..., None]
    rows = np.asarray(kept.any(-1))[:, None, None]
    mask = np.where(rows, tokens.mask & kept[:, None], alone)
    chosen = np.where(rows, selected, alone)
    return _replaced(case, tokens.keys, tokens.queries, tokens.labels, mask, tokens.values, chosen)


def _packed(case: Case, kept: Bool[np.ndarray, "sequence token"]) -> Case | None:
    """The case in arrays that hold nothing but what is kept."""
    tokens = case.tokens
    rows = np.asarray(kept.any(-1))
    order = np.argsort(~kept[rows], axis=-1, kind="stable")
    order = order[:, : int(kept.sum(-1).max())]
    along = order[:, None]
    mask = np.take_along_axis((tokens.mask & kept[:, None])[rows], along, -1)
    seen = np.asarray(mask.any(-2))[..., None]
    keys, values = (
        np.where(seen, np.take_along_axis(array[rows], order[..., None], 1), 0.0)
        for array in (tokens.keys, tokens.values)
    )
    chosen = np.take_along_axis(case.selection.mask[rows], along, -1)
    labels = None if tokens.labels is None else tokens.labels[rows]
    return _replaced(case, keys, tokens.queries[rows], labels, mask, values, chosen)


def _replaced(
    case: Case,
    keys: np.ndarray,
    queries: np.ndarray,
    labels: np.ndarray | None,
    mask: np.ndarray,
    values: np.ndarray,
    chosen: np.ndarray,
) -> Case | None:
    """A case with other tokens, or None where they are none or a chosen one is missing."""
    selection = None
    if case.chosen is not None:
        if (chosen & ~mask).any() or not chosen.any(-1).all():
            return None
        selection = Selection(chosen, np.zeros(chosen.shape[:-1], bool))
    try:
        tokens = Tokens(keys, queries, labels, mask, values)
    except InvalidInputError:
        return None
    return case.replace(tokens=tokens, chosen=selection)


def _rounded(case: Case, trial: Trial) -> Case:
    """The case with as few digits as will do."""
    tokens, chosen = case.tokens, case.selection.mask
    for digits in _DIGITS:

        def short(array: Any, digits: int = digits) -> np.ndarray:
            return _short(array, digits)

        keys, queries, values = (short(a) for a in (tokens.keys, tokens.queries, tokens.values))
        head, start = short(case.head.weight), jax.tree.map(short, case.initial)
        candidate = _replaced(case, keys, queries, tokens.labels, tokens.mask, values, chosen)
        if candidate is not None:
            candidate = candidate.replace(head=LinearHead(head), initial=start)
            if _same_numbers(case, candidate):
                return case
            if trial.fails(candidate):
                return candidate
    return case


def _short(array: Any, digits: int) -> np.ndarray:
    """An array rounded to a number of digits behind the first one of its largest entry."""
    array = np.asarray(array, dtype=float)
    largest = float(np.abs(array).max(initial=0.0))
    if largest == 0:
        return array
    return np.round(array, digits - int(np.floor(np.log10(largest)))) + 0.0  # no negative zeros


def _same_numbers(case: Case, other: Case) -> bool:
    return all(
        np.array_equal(one, two) for one, two in zip(_numbers(case), _numbers(other), strict=True)
    )


def _numbers(case: Case) -> list[Any]:
    tokens = case.tokens
    return [
        tokens.keys,
        tokens.queries,
        tokens.values,
        case.head.weight,
        *jax.tree.leaves(case.initial),
    ]

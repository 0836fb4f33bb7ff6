"""From a selection of tokens to the constraints it stands for."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from jaxtyping import Bool

from attractor.checks import check_choice, check_kind
from attractor.errors import DuplicateTokensWarning, InvalidInputError
from attractor.memory import require_memory
from attractor.selection import Selection
from attractor.tokens import Tokens

_PORTION = 4096
"""Constraints written at a time, so that temporary arrays stay small."""
_NAMED = 5
"""How many offending rows a message names before it counts the rest."""


def constraints_of(tokens: Tokens, selection: Selection, ties: str) -> dict[str, Any]:
    """Arguments of ``MarginProblem`` for ``MarginProblem.from_selection``, which describes them."""
    check_choice("ties", ties, ("refuse", "equal"))
    check_kind("tokens", tokens, Tokens, "Give Tokens(keys, queries, labels)")
    example = "Give one, such as Selection.from_index(tokens, index)"
    check_kind("selection", selection, Selection, example)
    if selection.mask.shape != tokens.mask.shape:
        raise InvalidInputError(
            "selection",
            f"its mask has shape {selection.mask.shape}",
            f"Select among {tokens.mask.shape}, the shape of tokens.mask",
        )
    batched = tokens.instances is not None
    lead = np.s_[:] if batched else np.s_[None]
    keys, queries, mask = tokens.keys[lead], tokens.queries[lead], tokens.mask[lead]
    selected, tied = selection.mask[lead], selection.tied[lead]
    _check(selected, tied, mask, ties, batched)

    representative = selected.argmax(-1)  # (instance, sequence, query)
    constrained = mask & (np.arange(mask.shape[-1]) != representative[..., None])
    instance, sequence, query, token = np.nonzero(constrained)
    counts = constrained.sum((1, 2, 3))
    slots = int(counts.max(initial=0))
    starts = np.cumsum(counts) - counts
    place = (instance, np.arange(instance.size) - starts[instance])

    chosen = representative[instance, sequence, query]
    equal = selected[instance, sequence, query, token]
    shape = (len(counts), slots)
    width = keys.shape[-1] + queries.shape[-1]

    def remedy(available: float) -> str:
        fitting = int(available // (8 * width * len(counts)))
        return f"About {fitting:,} constraints an instance would fit; give fewer tokens"

    require_memory(
        "tokens",
        f"{slots:,} constraints for each of {len(counts)} instances",
        needed=8 * counts.size * slots * width,
        remedy=remedy,
    )
    left = np.zeros((*shape, keys.shape[-1]))
    right = np.zeros((*shape, queries.shape[-1]))
    for start in range(0, instance.size, _PORTION):
        j = np.s_[start : start + _PORTION]
        i, n, slot = instance[j], sequence[j], (place[0][j], place[1][j])
        left[slot] = keys[i, n, chosen[j]] - keys[i, n, token[j]]
        right[slot] = queries[i, n, query[j]]
    if not np.isfinite(left).all():
        raise InvalidInputError(
            "tokens", "the difference of two keys is not finite", "Scale the keys down"
        )
    apart, asked = (np.asarray(rows.any(-1))[place] for rows in (left, right))
    _warn_of_impossible(apart, asked, ~equal, (instance, sequence, query, token), batched)

    result: dict[str, Any] = {
        "left": left,
        "right": right,
        "bounds": _scatter(np.where(equal, 0.0, 1.0), place, shape, 0.0),
        "equality": _scatter(equal, place, shape, False),
        "present": _scatter(np.ones_like(equal), place, shape, False),
        "sequence": _scatter(sequence, place, shape, -1),
        "query": _scatter(query, place, shape, -1),
        "token": _scatter(token, place, shape, -1),
    }
    return result if batched else {name: array[0] for name, array in result.items()}


def _check(
    selected: Bool[np.ndarray, "instances n k t"],
    tied: Bool[np.ndarray, "instances n k"],
    mask: Bool[np.ndarray, "instances n k t"],
    ties: str,
    batched: bool,
) -> None:
    """Raises InvalidInputError unless every row selects tokens it may attend to, without ties."""
    wrong = np.asarray(~selected.any(-1) | (selected & ~mask).any(-1))
    if wrong.any():
        raise InvalidInputError(
            "selection",
            f"no token, or a masked one, is selected in {_rows(wrong, batched)}",
            "Select at least one token in every row, among those it may attend to",
        )
    if ties == "refuse" and tied.any():
        raise InvalidInputError(
            "selection",
            f"several tokens are tied in {_rows(tied, batched)}, so which is kept is undecided",
            "Select one of them, or keep them all with equal weight, by "
            'MarginProblem.from_selection(tokens, selection, ties="equal")',
        )


def _warn_of_impossible(
    apart: Bool[np.ndarray, "constraints"],
    asked: Bool[np.ndarray, "constraints"],
    inequality: Bool[np.ndarray, "constraints"],
    places: tuple[np.ndarray, ...],
    batched: bool,
) -> None:
    """Warns of constraints ``0 >= 1``: copies of the selected token, and queries that are zero.

    Args:
        apart: Whether the token differs from the selected one.
        asked: Whether the query is not zero.
        inequality: Whether the constraint is an inequality.
        places: Instance, sequence, query and token of each constraint.
        batched: Whether the data have an axis of instances.
    """
    no_query = inequality & ~asked
    copies = inequality & ~apart & ~no_query
    instance, sequence, query, token = places
    for impossible, what in (
        (copies, "tokens equal to the selected one, which no matrix can tell apart"),
        (no_query, "queries that are zero, under which every token has the same score"),
    ):
        found = np.flatnonzero(impossible)
        if not found.size:
            continue
        named = [
            (f"instance {instance[j]}, " if batched else "")
            + f"sequence {sequence[j]}, query {query[j]}, token {token[j]}"
            for j in found[:_NAMED]
        ]
        more = f"; and {found.size - _NAMED} more" if found.size > _NAMED else ""
        warnings.warn(
            f"{found.size} constraints cannot be met: {what} ({'; '.join(named)}{more})",
            DuplicateTokensWarning,
            stacklevel=4,
        )


def _scatter(
    values: np.ndarray, place: tuple[np.ndarray, np.ndarray], shape: tuple[int, ...], fill: Any
) -> np.ndarray:
    """Values put in their slots, the rest filled."""
    result = np.full(shape, fill, dtype=values.dtype)
    result[place] = values
    return result


def _rows(wrong: Bool[np.ndarray, "instances n k"], batched: bool) -> str:
    """The rows marked, in words."""
    found = np.argwhere(wrong)
    named = [
        (f"instance {i}, " if batched else "") + f"sequence {n}, query {k}"
        for i, n, k in found[:_NAMED]
    ]
    more = f"; and {len(found) - _NAMED} more rows" if len(found) > _NAMED else ""
    return "; ".join(named) + more

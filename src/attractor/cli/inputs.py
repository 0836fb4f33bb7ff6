"""What the user gave: a token file, and perhaps a selection."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attractor.attention import LinearHead, get_loss
from attractor.errors import InvalidInputError
from attractor.files import LAYOUT, LoadedTokens, load
from attractor.margin import MarginProblem
from attractor.selection import Selection, optimal_tokens
from attractor.tokens import Tokens

BEST = "the tokens with the highest scores"
GIVEN = "the tokens given with --selection"


def layout_help(first: str) -> str:
    """A help text that ends with the layout of a token file."""
    width = max(len(name) for name in LAYOUT)
    shapes = max(len(shape) for shape, _ in LAYOUT.values())
    lines = [
        f"{name:<{width}}  {shape:<{shapes}}  {what}" for name, (shape, what) in LAYOUT.items()
    ]
    return (
        f"{first}\n\nFILE is a .npz or .safetensors file that holds these arrays, in float32 or "
        "float64:\n\n\b\n" + "\n".join(lines) + "\n\nEvery array but the last may have one "
        "leading axis of instances: data sets treated side by side. "
        "`attractor example tokens tokens.npz` writes such a file. Exit codes: 0 done, "
        "2 bad input, 3 infeasible, 130 interrupted."
    )


def read_tokens(file: Path, loss: str = "logistic") -> LoadedTokens:
    """Reads a token file whose labels suit a loss.

    Raises:
        InvalidInputError: If anything in it cannot be used.
    """
    loaded = load(file)
    assert loaded.tokens.labels is not None
    get_loss(loss).validate(loaded.tokens.labels)
    return loaded


def need_head(loaded: LoadedTokens, file: Path, *, or_selection: bool = False) -> LinearHead:
    """Returns the head.

    Raises:
        InvalidInputError: If there is none; says how to add one.
    """
    if loaded.head is not None:
        return loaded.head
    d = loaded.tokens.value_dimension
    other = " Or say which tokens to keep, such as --selection 0,2,1" if or_selection else ""
    raise InvalidInputError(
        "head",
        f"{file.name} has no such array, so it is not known what the attention output is used for",
        f"Add head ({d},), the fixed vector v that turns the attention output x into the "
        f"prediction v^T x: numpy.savez({file.name!r}, keys=..., queries=..., labels=..., "
        f"head=v).{other}",
    )


def select(loaded: LoadedTokens, file: Path, numbers: str | None) -> tuple[Selection, str]:
    """Returns the tokens to keep, and what they are in words.

    Raises:
        InvalidInputError: If there is neither a head nor a selection, or it does not fit.
    """
    if numbers is None:
        head = need_head(loaded, file, or_selection=True)
        return optimal_tokens(loaded.tokens, head), BEST
    return _parse(numbers, loaded.tokens), GIVEN


def problem_for(loaded: LoadedTokens, selection: Selection) -> MarginProblem:
    """The margin problem of a selection; tied tokens are kept together."""
    return MarginProblem.from_selection(loaded.tokens, selection, ties="equal")


def _parse(numbers: str, tokens: Tokens) -> Selection:
    rows = tokens.mask.shape[:-1]
    per_set = rows[-2:]
    try:
        values = np.array([int(number) for number in numbers.split(",")])
    except ValueError:
        raise InvalidInputError(
            "selection", f"{numbers!r} is no list of numbers", "Give integers such as 0,2,1"
        ) from None
    if values.size not in (np.prod(per_set), np.prod(rows)):
        raise InvalidInputError(
            "selection",
            f"it has {values.size} numbers",
            f"Give {np.prod(per_set)}, one for each sequence"
            + (f" and query, or {np.prod(rows)}" if len(rows) > 2 else ""),
        )
    shape = rows if values.size == np.prod(rows) else per_set
    index = np.broadcast_to(values.reshape(shape), rows)
    # Without the axis of a single query: of one sequence it would pass for another axis.
    return Selection.from_index(tokens, index[..., 0] if rows[-1] == 1 else index)

"""Writing token files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attractor.attention import LinearHead, Parameterization, get_parameterization
from attractor.checks import check_kinds, check_path, check_text, shown
from attractor.errors import InvalidInputError
from attractor.files.arrays_writing import write_arrays
from attractor.files.interpretation import interpret
from attractor.files.layout import SUFFIXES, start_names, trains_prompt
from attractor.files.scores import scores_of
from attractor.files.selections import selection_array
from attractor.precision import as_plain
from attractor.selection import Selection
from attractor.tokens import Tokens


def save_tokens(
    path: str | os.PathLike[str],
    tokens: Tokens,
    head: LinearHead | None = None,
    *,
    parameterization: str = "W",
    initial: Any = None,
    selection: Selection | None = None,
    optimizer: str | None = None,
    steps: int | None = None,
) -> None:
    """Writes tokens, and what is to be done with them, so that ``load`` gives all of it back.

    Tokens whose labels are +1 and whose values are numbers that the head takes as they are become
    ``scores``.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        tokens: Tokens with labels.
        head: A linear head: fixed, or where its training starts.
        parameterization: What is trained, by a name that ``train`` knows.
        initial: Where training starts, as ``train`` takes it; for all instances or for each.
        selection: The tokens to keep instead of the best ones.
        optimizer: How to train, as on the command line; the name of a registered optimizer.
        steps: How long to train.

    Raises:
        InvalidInputError: If the name ends in anything else, or something cannot be kept in a
            token file; nothing is written then.
    """
    check_kinds(tokens=(tokens, Tokens), selection=(selection, Selection | None))
    path = check_path("path", path)
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "path", f"{file.name} ends in neither .npz nor .safetensors", "Choose one of the two"
        )
    layer = get_parameterization(parameterization)
    given = _token_arrays(tokens, layer)
    given |= _targets(tokens, head, layer) | _start(initial, layer)
    if selection is not None:
        given["selection"] = selection_array(selection, tokens)
    if steps is not None:
        given["steps"] = _rectangular("steps", steps)
    texts = {"parameterization": layer.name} if layer.name != "W" else {}
    if optimizer is not None:
        texts["optimizer"] = check_text("optimizer", optimizer)
    arrays = {name: _rectangular(name, array) for name, array in given.items()}
    interpret(arrays, texts, file.name)
    write_arrays(file, arrays, texts)


def _token_arrays(tokens: Tokens, layer: Parameterization) -> dict[str, np.ndarray]:
    one_query = tokens.queries_per_sequence == 1
    queries, mask = (
        (tokens.queries[..., 0, :], tokens.mask[..., 0, :])
        if one_query
        else (tokens.queries, tokens.mask)
    )
    arrays = {"keys": tokens.keys}
    if not (trains_prompt(layer) and queries.shape[-1] == 1 and (queries == 1).all()):
        arrays["queries"] = queries
    if not mask.all():
        arrays["mask"] = mask
    if tokens.instances is not None:
        arrays["instance_numbers"] = tokens.instance_numbers
    return arrays


def _targets(
    tokens: Tokens, head: LinearHead | None, layer: Parameterization
) -> dict[str, np.ndarray]:
    """What training is towards: scores, or labels with a head and values."""
    if tokens.weights is not None:
        raise InvalidInputError("tokens", "their rows have weights", "A token file holds none")
    if tokens.labels is None:
        raise InvalidInputError("tokens", "they have no labels", "Give labels, -1 or +1")
    if head is not None and not isinstance(head, LinearHead):
        raise InvalidInputError(
            "head", f"it is a {type(head).__name__}", "A token file holds linear heads alone"
        )
    scores = None if layer.trains_head else scores_of(tokens, head)
    if scores is not None:
        return {"scores": scores}
    one_query = tokens.queries_per_sequence == 1
    arrays = {"labels": tokens.labels[..., 0] if one_query else tokens.labels}
    if not np.array_equal(tokens.values, tokens.keys):
        arrays["values"] = tokens.values
    if head is not None:
        arrays["initial_head" if layer.trains_head else "head"] = np.asarray(head.weight)
    return arrays


def _rectangular(argument: str, value: Any) -> np.ndarray:
    array = as_plain(value)
    if array.dtype.kind == "O":
        raise InvalidInputError(argument, f"{shown(value)} is no array", "Give one of numbers")
    return array


def _start(initial: Any, layer: Parameterization) -> dict[str, np.ndarray]:
    if initial is None:
        return {}
    names = start_names(tuple(layer.shapes(1, 1)))
    if not isinstance(initial, Mapping):
        if len(names) > 1:
            raise InvalidInputError(
                "initial", "it is one array, but several are trained", f"Give {sorted(names)}"
            )
        return {"initial": initial}
    if set(initial) != set(names):
        raise InvalidInputError(
            "initial", f"it has {sorted(initial)}", f"Give exactly {sorted(names)}"
        )
    return {names[name]: array for name, array in initial.items()}

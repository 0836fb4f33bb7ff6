"""What a page shows, as plain JSON: the contract of ``explorer/src/state.ts``, checked.

A state comes from a page, a notebook or a file as often as from here, so that it is data: sizes are
bounded, names are those of the library, and nothing in it is run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attractor.checks import (
    as_number,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_text,
    is_whole,
    naming,
    shown,
    suggest,
)
from attractor.errors import InvalidInputError
from attractor.geometry import get_geometry
from attractor.visible import visible

VERSION = 1
MOST_SEQUENCES = 24
MOST_TOKENS = 240
"""Tokens of all sequences together."""
MOST_NUMBERS = 1024
"""Entries of what is trained."""
MOST_STEPS = 100_000
MOST_SOLUTIONS = 64
_MOST_RECORDED = 1000
_ROUNDING = 1e-6
"""How far two axes may be from orthonormal."""

PARAMETERIZATIONS = {"p": "p", "W": "W", "KQ": "KQ", "pv": "v, p"}
"""What is trained, and what the library calls it."""
LOSSES = ("logistic", "exponential", "linear")
OPTIMIZERS = (
    "gradient_descent",
    "normalized_gradient_descent",
    "mirror_descent",
    "sign_descent",
    "greedy_coordinate_descent",
    "spectral_descent",
)
THEMES = ("auto", "light", "dark")

State = dict[str, Any]
"""A state that was checked."""


def check_state(state: Any) -> State:
    """Checks a state, and returns it as plain lists, numbers and texts.

    Args:
        state: As a page, a file or a user gives it.

    Raises:
        InvalidInputError: If a field is missing, unknown, of another kind, out of its range, or
            does not fit the others; the message names it, as in ``state.keys``.
    """
    given = _record("state", state, _FIELDS, _REQUIRED)
    if given["version"] != VERSION:
        raise InvalidInputError(
            "state.version", f"it is {shown(given['version'])}", f"Give {VERSION}"
        )
    lengths, d = _shape_of_keys(given["keys"])
    what = given["parameterization"]
    _check_scores(given, lengths)
    e = _check_queries(given, len(lengths))
    if "projection" not in given and not is_flat(what, d, e):
        raise InvalidInputError(
            "state.projection", f"it is missing for keys in R^{d} and queries in R^{e}", "Give one"
        )
    _check_length("state.start", given["start"], size_of(what, d, e))
    sizes = []
    for place, training in enumerate(given["trainings"]):
        own = training.get("parameterization", what)
        if own != what and (what, own) != ("KQ", "W"):
            raise InvalidInputError(
                f"state.trainings[{place}].parameterization",
                f"it is {own!r} where {what!r} is trained",
                "Leave it out; beside 'KQ' it may be 'W'",
            )
        sizes.append(size_of(own, d, e))
    if "selection" in given:
        selection = given["selection"]
        _check_length("state.selection", selection, len(lengths))
        _check_tokens("state.selection", selection, lengths)
    for place, one in enumerate(given.get("solutions", ())):
        _check_tokens(f"state.solutions[{place}].selection", one["selection"], lengths)
        if "w" in one:
            _check_length(f"state.solutions[{place}].w", one["w"], d * e)
    _check_paths(given, sizes)
    if "projection" in given:
        _check_projection(given["projection"], d)
    return given


def is_flat(parameterization: str, d: int, e: int) -> bool:
    """Whether a page shows all of it: tokens in the plane, and queries in the plane, too."""
    return d == 2 and (e == 2 or parameterization in ("p", "pv"))


def size_of(parameterization: str, d: int, e: int) -> int:
    """How many numbers are trained, for keys in R^d and queries in R^e."""
    return {"p": d, "W": d * e, "KQ": d * d + e * d, "pv": 2 * d}[parameterization]


def _record(
    name: str, value: Any, fields: Mapping[str, Callable[[str, Any], Any]], required: Sequence[str]
) -> dict[str, Any]:
    """A mapping whose fields are known and checked."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(name, f"{shown(value)} is no mapping", "Give a dictionary")
    for field in value:
        if field not in fields:
            near = suggest(field, fields)
            known = ", ".join(fields)
            raise InvalidInputError(
                f"{name}.{field}"[:80], "there is none", f"{near}Known: {known}"
            )
    for field in required:
        if field not in value:
            raise InvalidInputError(f"{name}.{field}", "it is missing", "Give it")
    return {
        field: check(f"{name}.{field}", value[field])
        for field, check in fields.items()
        if value.get(field) is not None
    }


def _items(name: str, value: Any, most: int, least: int = 1) -> list[Any]:
    """A list that is no longer than allowed."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise InvalidInputError(name, f"{shown(value)} is no list", "Give a list")
    if not least <= len(value) <= most:
        raise InvalidInputError(name, f"it has {len(value)} items", f"Give {least} to {most}")
    return list(value)


def _numbers(most: int) -> Callable[[str, Any], list[float]]:
    def check(name: str, value: Any) -> list[float]:
        found = [as_number(one) for one in _items(name, value, most, 0)]
        if not np.isfinite(found).all():
            raise InvalidInputError(name, "one is not a finite number", "Give finite numbers")
        return found

    return check


def _each(
    check: Callable[[str, Any], Any], most: int, least: int = 1
) -> Callable[[str, Any], list[Any]]:
    def checked(name: str, value: Any) -> list[Any]:
        items = _items(name, value, most, least)
        return [check(f"{name}[{place}]", one) for place, one in enumerate(items)]

    return checked


def _word(*known: str) -> Callable[[str, Any], str]:
    return lambda name, value: check_choice(name, value, known)


def _text(most: int) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if value == "":
            return ""
        text = check_text(name, value)
        if len(text) > most:
            raise InvalidInputError(name, f"it has {len(text)} characters", f"Give at most {most}")
        return visible(text)

    return check


def _number(**bounds: Any) -> Callable[[str, Any], float]:
    return lambda name, value: check_number(name, value, **bounds)


def _count(most: int, least: int = 0) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        return check_count(name, whole, least, most)

    return check


def _norm(name: str, value: Any) -> str:
    with naming(geometry=name, p=name):
        return get_geometry(_text(40)(name, value)).name


_TOKENS = _count(MOST_TOKENS - 1)
_SELECTION = _each(_TOKENS, MOST_SEQUENCES)
_VECTOR = _numbers(MOST_NUMBERS)
_TRAINING = {
    "optimizer": _word(*OPTIMIZERS),
    "learning_rate": _number(above=0, most=1e6, example=0.1),
    "p": _number(above=1, most=1000, example=1.5),
    "weight_decay": _number(least=0, most=1e6, example=0),
    "plain": check_flag,
    "parameterization": _word("W", "KQ"),
}
_SOLUTION = {
    "norm": _norm,
    "selection": _SELECTION,
    "status": _text(40),
    "w": _VECTOR,
    "value": _number(least=0, example=1),
    "lower": _number(example=1),
}
_PATH = {
    "steps": _each(_count(MOST_STEPS), _MOST_RECORDED),
    "points": _numbers(_MOST_RECORDED * MOST_NUMBERS),
}
_PROJECTION = {
    "kind": _word("solutions", "principal"),
    "origin": _VECTOR,
    "axes": _each(_VECTOR, 2, 2),
    "hidden": _number(least=0, most=1, example=0),
    "words": _text(1000),
}


def _training(name: str, value: Any) -> dict[str, Any]:
    return _record(name, value, _TRAINING, ("optimizer", "learning_rate"))


def _solution(name: str, value: Any) -> dict[str, Any]:
    return _record(name, value, _SOLUTION, ("norm", "selection", "status"))


def _path(name: str, value: Any) -> dict[str, Any]:
    return _record(name, value, _PATH, tuple(_PATH))


def _projection(name: str, value: Any) -> dict[str, Any]:
    return _record(name, value, _PROJECTION, tuple(_PROJECTION))


_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "version": lambda name, value: value if is_whole(value) else check_count(name, value),
    "id": _text(100),
    "title": _text(200),
    "point": _text(1000),
    "source": _text(200),
    "keys": _each(_each(_VECTOR, MOST_TOKENS), MOST_SEQUENCES),
    "scores": _each(_numbers(MOST_TOKENS), MOST_SEQUENCES),
    "labels": _numbers(MOST_SEQUENCES),
    "queries": _each(_VECTOR, MOST_SEQUENCES, 0),
    "parameterization": _word(*PARAMETERIZATIONS),
    "start": _VECTOR,
    "loss": _word(*LOSSES),
    "trainings": _each(_training, 2),
    "norm": _norm,
    "selection": _SELECTION,
    "steps": _count(MOST_STEPS, 1),
    "solutions": _each(_solution, MOST_SOLUTIONS, 0),
    "paths": _each(_path, 2, 0),
    "projection": _projection,
    "theme": _word(*THEMES),
}
_REQUIRED = (
    "version", "keys", "queries", "parameterization", "start", "loss", "trainings", "steps",
    "theme",
)  # fmt: skip


def _shape_of_keys(keys: list[list[list[float]]]) -> tuple[list[int], int]:
    """How many tokens each sequence has, and their dimension."""
    lengths = [len(sequence) for sequence in keys]
    if sum(lengths) > MOST_TOKENS:
        raise InvalidInputError(
            "state.keys", f"they are {sum(lengths)} tokens", f"Give at most {MOST_TOKENS}"
        )
    d = len(keys[0][0])
    for i, t in ((i, t) for i, length in enumerate(lengths) for t in range(length)):
        if len(keys[i][t]) != d or d < 2:
            raise InvalidInputError(
                f"state.keys[{i}][{t}]",
                f"it has {len(keys[i][t])} numbers",
                f"Give {max(d, 2)}, as many as the other tokens have",
            )
    return lengths, d


def _check_scores(given: State, lengths: list[int]) -> None:
    """A score for every token; where the head is trained, a label for every sequence."""
    if given["parameterization"] == "pv":
        if "labels" not in given:
            raise InvalidInputError("state.labels", "it is missing", "Give -1 or 1 a sequence")
        _check_length("state.labels", given["labels"], len(lengths))
        if not set(given["labels"]) <= {-1.0, 1.0}:
            raise InvalidInputError("state.labels", "one is neither -1 nor 1", "Give these")
        return
    if "scores" not in given:
        raise InvalidInputError("state.scores", "it is missing", "Give one for every token")
    if [len(row) for row in given["scores"]] != lengths:
        raise InvalidInputError(
            "state.scores", "they are not as many as the tokens", "Give one for every token"
        )


def _check_queries(given: State, sequences: int) -> int:
    """The dimension of the queries; one where a prompt is trained, which reads none."""
    if given["parameterization"] in ("p", "pv"):
        return 1
    queries = given["queries"]
    _check_length("state.queries", queries, sequences, least=True)
    e = len(queries[0])
    if not e or any(len(query) != e for query in queries):
        raise InvalidInputError(
            "state.queries", "they are not of one length", "Give as many numbers for each"
        )
    return e


def _check_length(name: str, found: Sequence[Any], wanted: int, *, least: bool = False) -> None:
    if len(found) != wanted and not (least and len(found) > wanted):
        raise InvalidInputError(name, f"it has {len(found)} items", f"Give {wanted}")


def _check_tokens(name: str, selection: list[int], lengths: list[int]) -> None:
    """Whether there are tokens of these numbers."""
    _check_length(name, selection, len(lengths))
    for i, (token, length) in enumerate(zip(selection, lengths, strict=True)):
        if token >= length:
            raise InvalidInputError(
                f"{name}[{i}]", f"it is {token}", f"Give a token from 0 to {length - 1}"
            )


def _check_paths(given: State, sizes: list[int]) -> None:
    paths = given.get("paths", ())
    if paths:
        _check_length("state.paths", paths, len(given["trainings"]))
    for place, path in enumerate(paths):
        if any(one >= other for one, other in itertools.pairwise(path["steps"])):
            raise InvalidInputError(
                f"state.paths[{place}].steps", "they do not increase", "Give them in order"
            )
        entries = sizes[place] * len(path["steps"])
        _check_length(f"state.paths[{place}].points", path["points"], entries)


def _check_projection(projection: State, d: int) -> None:
    _check_length("state.projection.origin", projection["origin"], d)
    for place, axis in enumerate(projection["axes"]):
        _check_length(f"state.projection.axes[{place}]", axis, d)
    axes = np.array(projection["axes"])
    if np.abs(axes @ axes.T - np.eye(2)).max() > _ROUNDING:
        raise InvalidInputError(
            "state.projection.axes", "they are not orthonormal", "Give two directions that are"
        )

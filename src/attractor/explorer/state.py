"""What a page shows, as plain JSON, checked: its fields stand in ``schema.json``; stored scenes.

A state comes from a page, a notebook or a file as often as from here, so that it is data: sizes are
bounded, names are those of the library, and nothing in it is run. The page reads the same schema
(``explorer/src/check.ts``); what one field asks of another stands in both, and is tested to agree.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from attractor.geometry import get_geometry
from attractor.results.visible import UNSEEN
from attractor.support.checks import (
    as_number,
    check_choice,
    check_count,
    check_number,
    is_whole,
    shown,
    suggest,
)
from attractor.support.errors import InvalidInputError

SCHEMA: dict[str, Any] = json.loads(
    resources.files("attractor.explorer").joinpath("schema.json").read_text("utf-8")
)
"""Rules by name. A rule is the name of another; the fields of a mapping, with ``?`` where one may
be missing; or what a value is and its bounds, such as ``["list", least, most, rule]``."""
_FIELDS = SCHEMA["State"]
_, VERSION = _FIELDS["version"]
_, _, MOST_SEQUENCES, (_, _, MOST_TOKENS, _) = _FIELDS["keys"]
_, _, MOST_NUMBERS, _ = SCHEMA["vector"]
"""Entries of what is trained."""
_, _, MOST_STEPS = _FIELDS["steps"]
_, _, MOST_SOLUTIONS, _ = _FIELDS["solutions?"]
MOST_WORK = 1_000_000
"""Steps of all trainings times tokens, where a page trains while something is dragged."""
_ROUNDING = 1e-6
"""How far two axes may be from orthonormal."""

PARAMETERIZATIONS = {"p": "p", "W": "W", "KQ": "KQ", "pv": "v, p"}
"""What is trained, and what the library calls it."""
_, *LOSSES = _FIELDS["loss"]
_, *OPTIMIZERS = SCHEMA["Training"]["optimizer"]
_, *THEMES = _FIELDS["theme"]

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
    given = _checked("state", state, "State")
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
        _check_tokens("state.selection", given["selection"], lengths)
    for place, one in enumerate(given.get("solutions", ())):
        _check_tokens(f"state.solutions[{place}].selection", one["selection"], lengths)
        if "w" in one:
            _check_length(f"state.solutions[{place}].w", one["w"], d * e)
    if "projection" in given:
        _check_projection(given["projection"], d)
    _check_paths(given, sizes, sum(lengths))
    return given


def is_flat(parameterization: str, d: int, e: int) -> bool:
    """Whether a page shows all of it: tokens in the plane, and queries in the plane, too."""
    return d == 2 and (e == 2 or parameterization in ("p", "pv"))


def size_of(parameterization: str, d: int, e: int) -> int:
    """How many numbers are trained, for keys in R^d and queries in R^e."""
    return {"p": d, "W": d * e, "KQ": d * d + e * d, "pv": 2 * d}[parameterization]


def _checked(name: str, value: Any, rule: Any) -> Any:
    """A plain copy of what a rule of the schema allows."""
    match rule:
        case str():
            return _checked(name, value, SCHEMA[rule])
        case dict():
            return _record(name, value, rule)
        case ["list", least, most, of]:
            return _items(name, value, least, most, of)
        case ["one of", *known]:
            return _one_of(name, value, known)
        case ["whole", least, most]:
            whole = int(value) if isinstance(value, float) and value.is_integer() else value
            return check_count(name, whole, least, most)
        case ["number", least, most]:
            return check_number(name, value, least=least, most=most)
        case ["above", bound, most]:
            return check_number(name, value, above=bound, most=most)
        case ["text", most]:
            return _text(name, value, most)
        case ["like", pattern]:
            return _norm(name, value, pattern)
    raise AssertionError(rule)


def _one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    """The one of several words, numbers, or true and false, that a value is."""
    for one in known:
        same_kind = type(value) is type(one) and value == one
        if same_kind or (is_whole(one) and as_number(value) == one):
            return one
    near = suggest(value, [one for one in known if isinstance(one, str)])
    wanted = f"{near}Give {'one of ' if len(known) > 1 else ''}{', '.join(map(repr, known))}"
    raise InvalidInputError(name, f"{shown(value)} is not known", wanted)


def _record(name: str, value: Any, rule: dict[str, Any]) -> dict[str, Any]:
    """A mapping whose fields are known and checked."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(name, f"{shown(value)} is no mapping", "Give a dictionary")
    fields = {field.removesuffix("?"): own for field, own in rule.items()}
    for field in value:
        if field not in fields:
            raise InvalidInputError(
                f"{name}.{field}"[:80],
                "there is none",
                f"{suggest(field, fields)}Known: {', '.join(fields)}",
            )
    found = {}
    for field, own in fields.items():
        if field in value:
            found[field] = _checked(f"{name}.{field}", value[field], own)
        elif field in rule:
            raise InvalidInputError(f"{name}.{field}", "it is missing", "Give it")
    return found


def _items(name: str, value: Any, least: int, most: int, rule: Any) -> list[Any]:
    """A list that is no longer than allowed."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise InvalidInputError(name, f"{shown(value)} is no list", "Give a list")
    if not least <= len(value) <= most:
        raise InvalidInputError(name, f"it has {len(value)} items", f"Give {least} to {most}")
    if rule == "number":  # of which there may be a million
        found = [as_number(one) for one in value]
        if (np.abs(found) <= SCHEMA["number"][-1]).all():
            return found
    return [_checked(f"{name}[{place}]", one, rule) for place, one in enumerate(value)]


def _text(name: str, value: Any, most: int) -> str:
    """A text of letters that can be seen, and no more than allowed."""
    if not isinstance(value, str):
        raise InvalidInputError(name, f"{shown(value)} is no text", "Give a text in quotes")
    if len(value) > most:
        raise InvalidInputError(name, f"it has {len(value)} characters", f"Give at most {most}")
    if unseen := UNSEEN.search(value):
        raise InvalidInputError(
            name, f"it has the character {unseen[0]!a}, which nobody sees", "Leave it out"
        )
    return value


def _norm(name: str, value: Any, pattern: str) -> str:
    """The name of a norm that a page has."""
    if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
        raise InvalidInputError(
            name,
            f"a page does not have {shown(value)}",
            "Give 'frobenius', 'nuclear', 'spectral', or 'l_p' with p from 1 to 'inf'",
        )
    return get_geometry(value).name


def _shape_of_keys(keys: list[list[list[float]]]) -> tuple[list[int], int]:
    """How many tokens each sequence has, and their dimension."""
    lengths = [len(sequence) for sequence in keys]
    if sum(lengths) > MOST_TOKENS:
        raise InvalidInputError(
            "state.keys", f"they are {sum(lengths)} tokens", f"Give at most {MOST_TOKENS}"
        )
    d = len(keys[0][0])
    for i, t in ((i, t) for i, length in enumerate(lengths) for t in range(length)):
        if len(keys[i][t]) != d:
            raise InvalidInputError(
                f"state.keys[{i}][{t}]",
                f"it has {len(keys[i][t])} numbers",
                f"Give {d}, as many as the other tokens have",
            )
    return lengths, d


def _check_scores(given: State, lengths: list[int]) -> None:
    """A score for every token; where the head is trained, a label for every sequence."""
    if given["parameterization"] == "pv":
        if "labels" not in given:
            raise InvalidInputError("state.labels", "it is missing", "Give -1 or 1 a sequence")
        return _check_length("state.labels", given["labels"], len(lengths))
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
    if any(len(query) != e for query in queries):
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


def _check_paths(given: State, sizes: list[int], tokens: int) -> None:
    """Whether all paths are given; where none is, whether a page can train them."""
    paths = given.get("paths", ())
    if not paths:
        if "projection" in given:
            raise InvalidInputError("state.paths", "it is missing beside a projection", "Give it")
        most = MOST_WORK // (tokens * len(sizes))
        if given["steps"] > most:
            raise InvalidInputError(
                "state.steps",
                f"{given['steps']:,} are too many for a page that trains {tokens} tokens"
                f"{' twice' * (len(sizes) > 1)} while something is dragged",
                f"Give at most {most:,}",
            )
        return
    _check_length("state.paths", paths, len(sizes))
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


@cache
def _stored() -> dict[str, State]:
    """The scenes of the page, as its build writes them."""
    file = resources.files("attractor.explorer").joinpath("static", "scenes.json")
    scenes = json.loads(file.read_text("utf-8"))
    return {scene["name"]: check_state(scene["state"]) for scene in scenes}


def scene_names() -> list[str]:
    """The names of all scenes, in the order in which a page offers them."""
    return list(_stored())


def scene_named(name: str) -> State:
    """The state of a scene.

    Args:
        name: Its name, such as "two-basins".

    Raises:
        InvalidInputError: If no scene has that name.

    Example:
        >>> import attractor as at
        >>> explorer = at.explorer.Explorer(at.explorer.scene_named("two-basins"))
        >>> explorer.tokens
        Tokens(2 sequences x 4 tokens, 1 queries each, keys in R^2, queries in R^1, masked, labeled)
    """
    return copy.deepcopy(_stored()[check_choice("scene", name, _stored())])

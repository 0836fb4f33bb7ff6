"""What an experiment can be told: each of it an axis of a grid, or a setting of the whole sweep."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from attractor.support.checks import check_choice, check_count, check_number, check_text, suggest
from attractor.support.errors import InvalidInputError

_MOST_COMBINATIONS = 10_000
"""Combinations of values that are checked together before any work."""


class Parameter(NamedTuple):
    """One thing that an experiment can be told.

    Attributes:
        default: What holds where neither an axis nor a setting says it.
        check: Takes the name and a value; returns the value as a plain one, or raises.
        meaning: What it is, in words.
    """

    default: Any
    check: Callable[[str, Any], Any]
    meaning: str


def check_rising(name: str, listed: list[Any]) -> list[Any]:
    """Checks that numbers rise, such as those at which a run is measured.

    Raises:
        InvalidInputError: If they do not, or one stands there twice.
    """
    if listed != sorted(set(listed)):
        raise InvalidInputError(name, f"they are {listed}", "Give them once each, in rising order")
    return listed


def count(default: int, meaning: str, *, least: int = 1) -> Parameter:
    """A whole number."""
    return Parameter(default, lambda name, it: check_count(name, it, least), meaning)


def number(default: float | None, meaning: str, **bounds: Any) -> Parameter:
    """A real number within the bounds of ``check_number``."""
    return Parameter(default, lambda name, it: check_number(name, it, **bounds), meaning)


def word(default: str, choices: Sequence[str], meaning: str) -> Parameter:
    """One of some words."""
    return Parameter(default, lambda name, it: check_choice(name, it, choices), meaning)


def text(default: str, found: Callable[[str], Any], meaning: str) -> Parameter:
    """A text by which something of the library is found; nothing is imported to find it."""

    def check(name: str, value: Any) -> str:
        try:
            found(check_text(name, value))
        except InvalidInputError as error:
            raise InvalidInputError(name, error.problem, error.remedy) from None
        return value

    return Parameter(default, check, meaning)


def check_settings(
    parameters: Mapping[str, Parameter], settings: Mapping[str, Any], experiment: str
) -> dict[str, Any]:
    """The settings of an experiment as plain values.

    Raises:
        InvalidInputError: With the name of one that is not known, or cannot be used.
    """
    for name in settings:
        if name not in parameters:
            known = f"{suggest(name, parameters)}It has: {', '.join(parameters)}"
            raise InvalidInputError(name, f"{experiment} has no such setting", known)
    return {name: parameters[name].check(name, value) for name, value in settings.items()}


def check_axes(parameters: Mapping[str, Parameter], axes: Mapping[str, Sequence[Any]]) -> None:
    """Checks every value of every axis by itself.

    Raises:
        InvalidInputError: With the name of the axis.
    """
    for name, values in axes.items():
        for value in values:
            parameters[name].check(name, value)


def filled_in(
    parameters: Mapping[str, Parameter], point: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The value of every parameter at a point of a grid."""
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    return defaults | dict(settings) | dict(point)


def combinations(
    axes: Mapping[str, Sequence[Any]], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Every combination of the values of those axes that are among some names.

    Raises:
        InvalidInputError: If there are too many to check before any work.
    """
    chosen = {name: values for name, values in axes.items() if name in names}
    total = 1
    for values in chosen.values():
        total *= len(values)
    if total > _MOST_COMBINATIONS:
        raise InvalidInputError(
            next(iter(chosen)),
            f"with {', '.join(chosen)} there are {total:,} combinations",
            f"Give at most {_MOST_COMBINATIONS:,} in one sweep",
        )
    for values in itertools.product(*chosen.values()):
        yield dict(zip(chosen, values, strict=True))


def one_seed(seeds: int, experiment: str) -> None:
    """Checks that a grid has one seed, where nothing depends on it.

    Raises:
        InvalidInputError: If it has more.
    """
    if seeds != 1:
        raise InvalidInputError(
            "seeds",
            f"{seeds} of them would give the same numbers {seeds} times: {experiment} "
            "starts nothing from a seed",
            "Give 1, and more instances",
        )

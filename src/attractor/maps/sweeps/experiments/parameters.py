"""What an experiment can be told: axes of a grid, settings of the whole sweep, and token data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Int

from attractor.datasets import unit_tokens
from attractor.support.checks import check_choice, check_count, check_number, check_text, suggest
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.attention import LinearHead


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


def _unit_tokens(
    n: int, T: int, d: int, instances: Int[np.ndarray, "instances"]
) -> tuple[Tokens, LinearHead]:

    return unit_tokens(n, T, d, seeds=instances.tolist())


def _first_token_queries(
    n: int, T: int, d: int, instances: Int[np.ndarray, "instances"]
) -> tuple[Tokens, LinearHead]:
    tokens, head = _unit_tokens(n, T, d, instances)
    queries = tokens.keys[..., 0, :]
    return Tokens(tokens.keys, queries, tokens.labels, instance_numbers=instances), head


GENERATORS: Mapping[str, Callable[..., tuple[Tokens, LinearHead]]] = {
    "unit_tokens": _unit_tokens,
    "first_token_queries": _first_token_queries,
}
"""How data sets are drawn, by name.

``unit_tokens`` draws tokens, queries, labels and a head as ``attractor.datasets.unit_tokens`` does;
``first_token_queries`` has the same, with the first token of each sequence as its query.
"""


SCALED = {"n_per_d": "n", "T_per_d": "T"}
"""Sizes in units of others, and the size that each takes the place of."""
SIZES = ("n", "T", "d", *SCALED)
"""Parameters that say how large data sets are."""


def token_parameters(n: int, T: int, d: int) -> dict[str, Parameter]:
    """What data sets an experiment can be told, with the sizes that hold otherwise."""
    return {
        "data": word("unit_tokens", tuple(GENERATORS), "how data sets are drawn"),
        "n": count(n, "sequences of a data set"),
        "T": count(T, "tokens of a sequence", least=2),
        "d": count(d, "dimension of tokens and queries"),
        "n_per_d": number(None, "sequences for each dimension, in place of n", above=0),
        "T_per_d": number(None, "tokens for each dimension, in place of T", above=0),
    }


def token_sizes(given: Mapping[str, Any]) -> tuple[int, int, int]:
    """Sequences, tokens and dimension of data sets.

    Args:
        given: The value of every parameter.

    Raises:
        InvalidInputError: If a multiple of d is no whole number of sequences, or of tokens.
    """
    n, T, d = given["n"], given["T"], given["d"]
    if given["T_per_d"] is not None:
        T = _multiple("T_per_d", given["T_per_d"], d, least=2)
    if given["n_per_d"] is not None:
        n = _multiple("n_per_d", given["n_per_d"], d, least=1)
    return n, T, d


def _multiple(name: str, ratio: float, d: int, *, least: int) -> int:
    exact = ratio * d
    size = round(exact)
    if size < least or abs(exact - size) > 1e-9 * size:
        raise InvalidInputError(
            name,
            f"{ratio:g} times d = {d} is {exact:g}",
            f"Give ratios that make whole numbers, at least {least}, with every d",
        )
    return size


def check_sizes(
    parameters: Mapping[str, Parameter],
    axes: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any],
) -> None:
    """Checks that every size is said in one way, and is a size at every point.

    Raises:
        InvalidInputError: With the name of an axis or a setting.
    """
    told = {*axes, *settings}
    for name, size in SCALED.items():
        if {name, size} <= told:
            raise InvalidInputError(name, f"it stands beside {size}", "Give one of them")
    for point in combinations(axes, SIZES):
        token_sizes(filled_in(parameters, point, settings))


def draw_tokens(
    given: Mapping[str, Any], instances: Int[np.ndarray, "instances"]
) -> tuple[Tokens, LinearHead]:
    """The data sets of some instance numbers, and their heads.

    Args:
        given: The value of every parameter.
        instances: Numbers of the data sets.

    Raises:
        InvalidInputError: If a number is none that names a data set.
    """
    if len(instances) and int(np.max(instances)) >= 2**32:
        raise InvalidInputError(
            "first_instance", f"instance {int(np.max(instances))} is named", "Stay below 2^32"
        )
    return GENERATORS[given["data"]](*token_sizes(given), np.asarray(instances))

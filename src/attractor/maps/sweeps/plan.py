"""Plans of sweeps: a text file in TOML that names an experiment, its settings, axes and trials."""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attractor.maps.sweeps.experiment import Experiment, built_in, built_in_modules, from_python
from attractor.maps.sweeps.grid import Grid
from attractor.support.checks import (
    as_number,
    check_count,
    check_flag,
    check_path,
    check_text,
    shown,
    suggest,
)
from attractor.support.containers import parsing, read_whole
from attractor.support.errors import InvalidInputError
from attractor.support.storage import existing_file

_TABLES = ("experiment", "axes", "trials", "settings")
_TRIALS = ("instances", "seeds", "chunk", "first_instance", "first_seed")
_SPACINGS = ("linspace", "geomspace")
_DIGITS = 12
"""Significant digits of values in a range, so that 0.3 is not 0.30000000000000004."""
_MOST_VALUES = 10**6

EXAMPLE = """\
# A sweep of Attractor. Run it, as often as it takes, with
#   attractor sweep {name} --store {stem}.zarr
# and draw what it found with
#   attractor sweep draw {stem}.zarr --x learning_rate --y optimizer \\
#     --of margin_ratio --at step=1000

# What is done at every point: train_and_verify, flow_and_verify, margins, local_optima or
# in_context_risks.
experiment = "train_and_verify"

# What varies: every combination of these values is a point. A list of numbers or of names; or a
# range, {{ linspace = [first, last], count = 5 }}, or geomspace in the place of linspace, with
# whole = true to round to whole numbers.
[axes]
optimizer = ["normalized gradient descent", "sign descent", "spectral descent"]
learning_rate = {{ geomspace = [0.01, 1.0], count = 5 }}

# How many trials there are at every point: data sets, times random starts of each. A chunk is
# computed, written and, where it fails, repeated as one: aim at 5 to 30 seconds.
[trials]
instances = 20
seeds = 1
chunk = 50

# What holds for all of it.
[settings]
n = 6
T = 8
d = 10
horizons = [100, 1000]
"""
"""The example plan, a template with the name of its file."""


class Plan(NamedTuple):
    """A sweep that a file describes.

    Attributes:
        grid: What is swept over.
        experiment: What is done at every point.
    """

    grid: Grid
    experiment: Experiment


def load_plan(path: str | os.PathLike[str], experiment: str | None = None) -> Plan:
    """Reads and checks a plan, so that a sweep of it refuses nothing later.

    What a plan says is data: it names experiments of the library alone, and nothing in it is
    imported or run.

    Args:
        path: A file in TOML with ``experiment``, ``[axes]``, ``[trials]`` and ``[settings]``.
        experiment: An experiment of one's own in place of the plan's, ``"module:name"``, which is
            imported and called with the settings.

    Raises:
        InvalidInputError: If something in it cannot be used; with the file, the table and the key.
        FileFormatError: If it is no TOML.
    """
    file = existing_file(check_path("path", path), "Write one: attractor example sweep plan.toml")
    with parsing(file, "TOML"):
        content = tomllib.loads(read_whole(file).decode("utf-8"))
    at = _Place(file.name, content)
    for name in content:
        if name not in _TABLES:
            known = f"{suggest(name, _TABLES)}It has: experiment, [axes], [trials], [settings]"
            raise InvalidInputError(f"{file.name} {name}", "a plan has no such key", known)
    axes = {name: _axis(at, name, given) for name, given in at.table("axes").items()}
    trials, settings = at.table("trials"), at.table("settings")
    for name in trials:
        if name not in _TRIALS:
            known = f"{suggest(name, _TRIALS)}It has: {', '.join(_TRIALS)}"
            raise InvalidInputError(at.of("trials", name), "there is no such key", known)
    if "instances" not in trials:
        raise InvalidInputError(
            at.of("trials", "instances"), "it is missing", "Say how many data sets, such as 100"
        )
    with at.naming():
        grid = Grid(axes, **trials)
        own = experiment is not None
        made = from_python(experiment, **settings) if own else _named(at, settings)
        made.check_grid(grid)
    return Plan(grid, made)


class _Place:
    """Where in a file something stands, for errors."""

    def __init__(self, file: str, content: Mapping[str, Any]) -> None:
        self._file, self._content = file, content

    def of(self, table: str, key: str) -> str:
        """The name of a key in errors."""
        return f"{self._file} [{table}] {key}"

    def table(self, name: str) -> dict[str, Any]:
        """A table of the file, which may be missing."""
        found = self._content.get(name, {})
        if not isinstance(found, Mapping):
            raise InvalidInputError(
                f"{self._file} {name}", f"it is {shown(found)}, no table", f"Write a line [{name}]"
            )
        return dict(found)

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Says of an error in which table of the file its argument stands."""
        try:
            yield
        except InvalidInputError as error:
            argument = error.argument
            if argument.startswith(self._file) or argument == "experiment":
                raise
            plain = argument.removeprefix("axes['").removesuffix("']")
            plain = plain.partition("[")[0]
            for table in ("axes", "trials", "settings"):
                if plain in self.table(table) or (table == "trials" and plain in _TRIALS):
                    argument = self.of(table, plain)
                    break
            else:
                argument = f"{self._file} {argument}"
            raise InvalidInputError(argument, error.problem, error.remedy) from None

    @property
    def experiment(self) -> Any:
        """What the file names as its experiment; None where it names none."""
        return self._content.get("experiment")

    @property
    def file(self) -> str:
        """The name of the file."""
        return self._file


def _named(at: _Place, settings: Mapping[str, Any]) -> Experiment:
    """The experiment of the library that a plan names."""
    name, argument = at.experiment, f"{at.file} experiment"
    modules = built_in_modules()
    known = f"Give one of {', '.join(map(repr, modules))}"
    if name is None:
        raise InvalidInputError(argument, "it is missing", known)
    if isinstance(name, str) and ":" in name:
        raise InvalidInputError(
            argument,
            f"{shown(name)} is code of somebody's own, which a file is never trusted to name",
            "If you know it, name it yourself: attractor sweep PLAN --experiment module:name",
        )
    if name not in modules:
        raise InvalidInputError(
            argument, f"{shown(name)} is not known", suggest(name, modules) + known
        )
    return built_in(name, **settings)


def _axis(at: _Place, name: str, given: Any) -> Sequence[Any]:
    """The values of an axis: as they are listed, or those of a range."""
    argument = at.of("axes", name)
    if isinstance(given, list):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            argument,
            f"it is {shown(given)}, no list",
            f"Write a list, such as [{given!r}], or put it into [settings]"
            if isinstance(given, int | float | str)
            else "Write a list, such as [2, 4, 8]",
        )
    spacing = [word for word in _SPACINGS if word in given]
    unknown = [word for word in given if word not in (*_SPACINGS, "count", "whole")]
    if unknown or len(spacing) != 1 or "count" not in given:
        wrong = f"it has {unknown[0]!r}" if unknown else f"it has {', '.join(given) or 'nothing'}"
        near = suggest(unknown[0], (*_SPACINGS, "count", "whole")) if unknown else ""
        raise InvalidInputError(
            argument, wrong, f"{near}Write {{ geomspace = [0.001, 1.0], count = 7 }}, or linspace"
        )
    ends = given[spacing[0]]
    numbers = [as_number(end) for end in ends] if isinstance(ends, list) else []
    if len(numbers) != 2 or not np.isfinite(numbers).all() or numbers[0] == numbers[1]:
        raise InvalidInputError(
            argument, f"{spacing[0]} is {shown(ends)}", "Give two numbers, such as [0.001, 1.0]"
        )
    if spacing[0] == "geomspace" and min(numbers) <= 0:
        raise InvalidInputError(
            argument, f"geomspace is {shown(ends)}", "Give numbers above 0, or linspace"
        )
    count = check_count(f"{argument} count", given["count"], 2, _MOST_VALUES)
    values = getattr(np, spacing[0])(*numbers, count)
    if not check_flag(f"{argument} whole", given.get("whole", False)):
        return [float(f"{value:.{_DIGITS}g}") for value in values]
    whole = np.rint(values).astype(np.int64).tolist()
    if len(set(whole)) < count:
        raise InvalidInputError(
            argument, f"{count} values round to {len(set(whole))} whole numbers", "Lower count"
        )
    return whole


def example_plan(name: str) -> str:
    """The text of a plan to start from.

    Args:
        name: The name of its file, which the comments in it mention.
    """
    return EXAMPLE.format(name=check_text("name", name), stem=Path(name).stem)

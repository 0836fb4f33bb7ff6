"""What is done at every point of a grid: a function found by its name, and what it measures."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from attractor.maps.sweeps.grid import Grid, Value, axis_values, check_word
from attractor.support.checks import (
    check_choice,
    check_kinds,
    check_text,
    near_names,
    shown,
    suggest,
)
from attractor.support.errors import InvalidInputError
from attractor.support.loaded import current_folder_last
from attractor.support.plugins import plugins

GROUP = "attractor.experiments"
"""The entry points of experiments: a module each, which holds ``run``, and a function of the name
of the entry point that makes the experiment. Files name these alone."""

DTYPES = ("f8", "f4", "i1")
_OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class Measure(NamedTuple):
    """What an experiment gives for every trial.

    Attributes:
        dtype: ``"f8"`` or ``"f4"``, with NaN for what is missing, or ``"i1"`` for flags and codes
            from 0 to 127, with -1 for what is missing.
        description: What it is, in a few words, with its unit.
    """

    dtype: str
    description: str


@dataclass(frozen=True)
class Experiment:
    """What is done at every point of a grid.

    Its function is at the top level of a module and is found there by its name, in every process::

        def run(point, instances, seeds, **settings):
            ...
            return {"margin_ratio": array_of_instances_and_seeds, ...}

    ``point`` has the value of every axis of the grid; ``instances``, an array, the numbers of the
    data sets; ``seeds``, a range, the seeds of initial parameters. Each array that it returns has
    the shape ``(instances, seeds, *along)``. What it returns for a trial may depend on the point,
    the number of its data set and its seed alone.

    Attributes:
        name: Where the function is: ``"module:function"``, or the name of an experiment of the
            library.
        measures: What it returns, by name: the type of its numbers and what they are.
        axes: Axes of grids that it understands.
        compiled_by: Those whose every value compiles a program anew. A chunk has one value of each.
        settings: What its function gets besides: numbers, texts, truth values, None, and lists and
            mappings of them.
        along: Further axes of every measure, with their values: what one run gives at once, such as
            several horizons.
        check: A function beside the other, by its name, that gets the grid and the
            settings before any work, and raises what is wrong with them; or None.

    Raises:
        InvalidInputError: If any of that is of another kind.
    """

    name: str
    measures: Mapping[str, Measure | tuple[str, str]]
    axes: Collection[str]
    compiled_by: Collection[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    along: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    check: str | None = None

    def __post_init__(self) -> None:
        check_kinds(
            measures=(self.measures, Mapping),
            settings=(self.settings, Mapping),
            along=(self.along, Mapping),
            check=(self.check, str | None),
        )
        known = built_in_modules()
        if check_text("name", self.name) not in known and not _OWN.fullmatch(self.name):
            remedy = suggest(self.name, known) + "Give 'module:function'"
            raise InvalidInputError("name", f"{shown(self.name)} is no function", remedy)
        if self.name.startswith("__main__:"):
            raise InvalidInputError(
                "name",
                "other processes do not find what a script or a notebook defines",
                "Put the function into a module of its own, and import it",
            )
        measures = {check_word("measures", k): _measure(k, v) for k, v in self.measures.items()}
        if not measures:
            raise InvalidInputError("measures", "there is none", "Give at least one")
        along = {
            check_word("along", name): axis_values(f"along[{name!r}]", values)
            for name, values in self.along.items()
        }
        made = {
            "measures": measures,
            "along": along,
            "axes": _words("axes", self.axes),
            "compiled_by": _words("compiled_by", self.compiled_by),
            "settings": _plain(self.settings),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        for name in made["compiled_by"]:
            check_choice("compiled_by", name, made["axes"])

    def function(self) -> Callable[..., Mapping[str, Any]]:
        """Its function.

        Raises:
            InvalidInputError: If there is none of its name.
        """
        return _function(*_place(self.name))

    def check_grid(self, grid: Grid) -> None:
        """Checks that it understands a grid.

        Raises:
            InvalidInputError: If the grid has an axis that it does not know, that is also a
                setting, or has the name of a measure; or if its own check raises it.
        """
        check_kinds(grid=(grid, Grid))
        for name in grid.axes:
            if name not in self.axes:
                raise InvalidInputError(
                    f"axes[{name!r}]",
                    f"{self.name} knows no such axis",
                    f"{suggest(name, self.axes)}It knows {', '.join(self.axes) or 'none'}",
                )
            if name in self.settings:
                raise InvalidInputError(
                    f"axes[{name!r}]", "it is a setting of the experiment, too", "Give one of them"
                )
        twice = {*self.measures, *self.along} & {*grid.dims} or {*self.measures} & {*self.along}
        for name in sorted(twice):
            raise InvalidInputError("experiment", f"{name} names two things", "Rename one")
        if self.check is not None:
            _function(_place(self.name)[0], self.check)(grid, **self.settings)

    def identity(self) -> dict[str, Any]:
        """What its results depend on, as JSON."""
        return {
            "name": self.name,
            "source": source_of(self.name),
            "settings": self.settings,
            "measures": {name: list(measure) for name, measure in self.measures.items()},
            "axes": list(self.axes),
            "compiled_by": list(self.compiled_by),
            "along": {name: list(values) for name, values in self.along.items()},
        }


def built_in_modules() -> dict[str, str]:
    """The module of each experiment that is known by its name alone, here and in workers."""
    return {name: entry.value for name, entry in plugins(GROUP).items()}


def built_in(name: str, **settings: Any) -> Experiment:
    """An experiment of the library, by its name.

    Args:
        name: The name of an experiment of the library, or of a distribution that adds one.
        **settings: What it is to do.

    Raises:
        InvalidInputError: If there is none of that name, or it refuses the settings.
    """
    modules = built_in_modules()
    module = _imported(modules[check_choice("experiment", name, modules)])
    return _made(name, getattr(module, name), settings)


def from_python(name: str, **settings: Any) -> Experiment:
    """An experiment of one's own: imports a module, and runs what is in it.

    The module is installed, or in the current folder.

    Args:
        name: ``"module:name"``, of an ``Experiment`` or of a function that returns one.
        **settings: What the function is called with.

    Raises:
        InvalidInputError: If there is none.
    """
    if not _OWN.fullmatch(check_text("experiment", name)):
        raise InvalidInputError("experiment", f"{shown(name)} is no place", "Give 'module:name'")
    place, _, attribute = name.partition(":")
    module = _imported(place)
    found = getattr(module, attribute, None)
    if isinstance(found, Experiment) and not settings:
        return found
    if not callable(found):
        near = near_names(attribute, vars(module))
        known = f"Did you mean {' or '.join(near)}?" if near else "Give 'module:name'"
        raise InvalidInputError("experiment", f"{name} makes no Experiment", known)
    return _made(name, found, settings)


def _made(name: str, factory: Callable[..., Any], settings: Mapping[str, Any]) -> Experiment:
    """What a factory makes of settings, of which it may not know some."""
    try:
        inspect.signature(factory).bind(**settings)
    except TypeError as error:
        known = ", ".join(inspect.signature(factory).parameters)
        raise InvalidInputError(
            "settings", f"{name} cannot be made with them ({error})", f"It takes {known or 'none'}"
        ) from None
    made = factory(**settings)
    if not isinstance(made, Experiment):
        raise InvalidInputError(
            "experiment", f"{name} returns {shown(made)}", "Let it return an Experiment"
        )
    return made


def source_of(name: str) -> str:
    """SHA-256 of the file that the function of an experiment is in, in 64 hexadecimal digits.

    Raises:
        InvalidInputError: If there is no such function, or it is in no file.
    """
    file = inspect.getsourcefile(_function(*_place(name)))
    if file is None or not Path(file).is_file():
        raise InvalidInputError("experiment", f"{name} is in no file", "Put it into one")
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _place(name: str) -> tuple[str, str]:
    """The module and the name in it of the function of an experiment."""
    if own := built_in_modules().get(name):
        return own, "run"
    module, _, function = name.partition(":")
    return module, function


def _function(module: str, name: str) -> Callable[..., Any]:
    found = getattr(_imported(module), name, None)
    if not inspect.isfunction(found):
        raise InvalidInputError(
            "experiment", f"the module {module} has no function {name}", "Give 'module:function'"
        )
    return found


def _imported(module: str) -> Any:
    try:
        with current_folder_last():
            return importlib.import_module(module)
    except ImportError as error:
        raise InvalidInputError(
            "experiment",
            f"the module {module} cannot be imported by {sys.executable} ({error})",
            "Name a module that is installed or in the current folder, for every worker, too",
        ) from error


def _measure(name: str, given: Any) -> Measure:
    argument = f"measures[{name!r}]"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidInputError(
            argument, f"it is {shown(given)}", "Give the type and a description: ('f8', 'its loss')"
        )
    return Measure(check_choice(argument, given[0], DTYPES), check_text(argument, given[1]))


def _words(argument: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str | bytes) or not isinstance(names, Collection):
        raise InvalidInputError(argument, f"{shown(names)} is no list of names", "Give a list")
    return tuple(check_word(argument, name) for name in names)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a file would hold them, so that the function gets the same wherever it runs."""
    try:
        return json.loads(json.dumps(dict(settings), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            "settings", f"a file cannot hold them ({error})", "Give numbers, texts and lists"
        ) from None

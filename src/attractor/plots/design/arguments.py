"""Arguments of figures, checked against their annotations before anything is drawn."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from matplotlib.colors import is_color_like
from matplotlib.lines import Line2D

from attractor.plots.design.look import style_of_figures
from attractor.support.checks import as_number, is_whole, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64, as_plain, check_shape

_ARRAY = re.compile(r"(Float|Int|Bool)\[[\w.]+, '([^']*)'\]")
_ARRAYS = re.compile(r"Sequence\[(.*)\]")
_CONTAINER = re.compile(r"(Sequence|Iterable|Mapping|tuple)\[(.*)\]")
_EXACT = 2**53
"""Whole numbers up to here are exact as floating-point numbers."""
_MOST = 10**6
"""The most items that a figure is made of."""
_WITH_GAPS = ("path", "points")
"""Arguments of which entries that are not finite are not drawn."""
_DIRECTIONS = ("direction", "normal")
"""Arguments of which the length does not matter."""
_LINE = tuple(name.removeprefix("set_") for name in dir(Line2D) if name.startswith("set_"))

_MEANINGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "colors": (
        lambda colors: all(is_color_like(one) for one in colors.values()),
        "colors that matplotlib knows",
    ),
    "columns": (lambda number: 1 <= number <= _MOST, "a number from 1"),
    "confidence": (lambda number: 0 < number < 1, "a number between 0 and 1"),
    "count": (lambda number: 0 <= number <= _MOST, f"a number from 0 to {_MOST:,}"),
    "error": (lambda number: number > 0, "a number above 0"),
    "grid": (lambda number: 1 <= number <= 1000, "a number from 1 to 1000"),
    "look": (
        lambda look: "color" in look and set(look) <= {*_LINE, "lw", "ls", "c"},
        "properties of a line, its color among them",
    ),
    "rates": (len, "at least one"),
    "ratio": (lambda ratio: 0.01 <= ratio <= 100, "a number from 0.01 to 100"),
    "width": (lambda inches: 0.1 <= inches <= 100, "inches, from 0.1 to 100"),
}
"""Conditions on arguments, by name, the same in every figure, with the values that meet them."""


def with_checked_arguments(public: Any) -> Any:
    """A public name of a package that draws; where it is a function, one that checks its arguments.

    Where it returns a figure, that is in the style of the library.

    Functions of the package that call each other are left as they are: they hand on what was
    checked, or what they made. So are those of a package within, which are checked there.
    """
    is_checked = hasattr(public, "__wrapped__")
    return _checked(public) if inspect.isfunction(public) and not is_checked else public


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        signature = _signature(function)
        given = signature.bind(*arguments, **named)
        sizes: dict[str, int] = {}
        for name, value in given.arguments.items():
            parameter = signature.parameters[name]
            annotation = str(parameter.annotation).replace('"', "'")
            if parameter.kind is parameter.VAR_POSITIONAL:
                for one in value:
                    _check(name, one, annotation, sizes)
            elif parameter.kind is not parameter.VAR_KEYWORD:
                if hasattr(value, "__next__") and "Iterable[" in annotation:
                    given.arguments[name] = value = list(value)
                _check(name, value, annotation, sizes)
        draws = signature.return_annotation == "Figure"
        with style_of_figures() if draws else contextlib.nullcontext():
            return function(*given.args, **given.kwargs)

    return call


_signature = functools.cache(inspect.signature)  # when it is first needed, not on import


def _check(name: str, value: Any, annotation: str, sizes: dict[str, int]) -> None:
    """Refuses a value that is of none of the kinds that an annotation allows."""
    kinds = _alternatives(annotation)
    if value is None and "None" in kinds:
        return
    arrays = [found for kind in kinds if (found := _ARRAY.fullmatch(kind))]
    rows = _ARRAYS.fullmatch(kinds[0])
    if rows and (found := _ARRAY.fullmatch(rows[1])):
        if not _is_ordered(value) or not 1 <= len(value) <= _MOST:
            raise InvalidInputError(name, f"it is {shown(value)}", "Give a list of arrays")
        check_shape(name, (len(value),), (sizes.setdefault("rows", len(value)),))
        for row, one in enumerate(value):
            _check_array(name, one, [found], sizes, row=f" of row {row}")
    elif arrays and not any(_is(value, kind) for kind in kinds if not _ARRAY.fullmatch(kind)):
        _check_array(name, value, arrays, sizes)
    elif not arrays and not any(_is(value, kind) for kind in kinds):
        wanted = " or ".join(kinds).replace("xr.", "")
        raise InvalidInputError(name, f"it is {shown(value)}", f"Give {wanted}")
    right, wanted = _MEANINGS.get(name, (None, ""))
    if right is not None and not right(value):
        raise InvalidInputError(name, f"it is {shown(value)}", f"Give {wanted}")


@functools.cache
def _alternatives(annotation: str) -> tuple[str, ...]:
    """The kinds that an annotation joins by bars, those within brackets left alone."""
    found, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            found.append("")
        else:
            found[-1] += letter
    return tuple(kind.strip() for kind in found)


def _is(value: Any, kind: str) -> bool:
    """Whether a value is of a kind, by what an annotation calls it; classes by their names."""
    if kind == "Any":
        return True
    if kind == "float":
        most = _EXACT if isinstance(value, int) else LARGEST
        return abs(as_number(value)) <= most and type(value) is not np.float16
    if kind == "int":
        return is_whole(value) and abs(value) <= _EXACT
    if kind.startswith("Callable["):
        return callable(value) and not isinstance(value, type)
    if kind.startswith("Literal["):
        return isinstance(value, str) and value in ast.literal_eval(kind.removeprefix("Literal"))
    if container := _CONTAINER.fullmatch(kind):
        return _holds(value, *container.groups())
    return any(base.__name__ == kind.removeprefix("xr.") for base in type(value).__mro__)


def _holds(value: Any, container: str, items: str) -> bool:
    """Whether a value is a container whose items are of a kind."""
    if container == "Mapping":
        kind = _items(items)[1]
        return isinstance(value, Mapping) and all(
            isinstance(key, str) and _is(one, kind) for key, one in value.items()
        )
    if not _is_ordered(value) or len(value) > _MOST:
        return False
    if container == "tuple":
        kinds = _items(items)
        return len(value) == len(kinds) and all(map(_is, value, kinds))
    kinds = _alternatives(items)
    return all(any(_is(one, kind) for kind in kinds) for one in value)


def _is_ordered(value: Any) -> TypeGuard[Sequence[Any]]:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 or (value.ndim > 1 and value.size > 0)
    return isinstance(value, list | tuple)


def _items(items: str) -> list[str]:
    """The kinds between the brackets of a container, one an entry."""
    return [kind.strip() for kind in re.split(r",(?![^\[]*\])", items)]


def _check_array(
    name: str, value: Any, arrays: list[re.Match[str]], sizes: dict[str, int], row: str = ""
) -> None:
    """Refuses an array of other numbers or another shape; axes of one name have one size."""
    array = as_plain(name, value)
    kinds = {kind: axes.split() for kind, axes in (found.groups() for found in arrays)}
    kind = {"b": "Bool", "i": "Int", "u": "Int"}.get(array.dtype.kind, "Float")
    if kind not in kinds and not (kind == "Int" and "Float" in kinds):
        wanted = {"Float": "numbers", "Int": "integers", "Bool": "booleans"}
        raise InvalidInputError(
            name, f"it is {shown(value)}", f"Give {' or '.join(wanted[one] for one in kinds)}"
        )
    axes = kinds.get(kind, kinds.get("Float", []))
    if kind in ("Float", "Int"):
        largest = np.inf if name in _DIRECTIONS else LARGEST
        array = as_float64(name, value, finite=name not in _WITH_GAPS, largest=largest)
    leading = [axis for axis in axes if axis.startswith("*") or axis == "..."]
    named = axes[len(leading) :]
    for axis, size in zip(named, array.shape[max(array.ndim - len(named), 0) :], strict=False):
        if not axis.isdigit():
            sizes.setdefault(axis + row, size)
    shape = [sizes.get(axis + row, axis) for axis in named]
    empty = name in _WITH_GAPS
    check_shape(name, array.shape, ["..."] * bool(leading) + shape, empty=empty)

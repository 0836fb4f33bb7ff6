"""Checks of arguments, and the errors raised where they fail.

Every check takes the argument's public name and its value, returns the value as a plain Python
one, and raises ``InvalidInputError`` otherwise.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

import numpy as np

from attractor.support.errors import InvalidInputError

MOST_COUNTED = 2**63 - 1
"""The highest number that a counter of 64 bits holds."""
MOST_STEPS = 2**53
"""Steps that no run can take: at one in a microsecond they need 285 years."""

_MOST_READ = 10**8
"""Items of an array that can become objects of Python."""

_Kind = TypeVar("_Kind")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def shown(value: Any) -> str:
    """A value as an error shows it: its representation, on one line and cut where it is long."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of {value.dtype} with the shape {value.shape}"
    try:
        return " ".join(_SHORT.repr(value).split())
    except Exception:  # a representation of the user's own, or an integer too long to print
        return f"a value of the type {type(value).__name__}"


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def as_number(value: Any) -> float:
    """A real number as a float; NaN for what is none: booleans and texts too.

    Arrays without axes are numbers, whether of NumPy, JAX or PyTorch.
    """
    if isinstance(value, bool):
        return math.nan
    if getattr(value, "shape", None) == ():
        dtype = getattr(value, "dtype", "")
        kind = getattr(dtype, "name", str(dtype)).removeprefix("torch.")
        real = kind.startswith(("float", "bfloat", "int", "uint"))
    else:
        real = isinstance(value, Real)
    try:
        return float(value) if real else math.nan
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return math.nan


def check_count(argument: str, value: Any, least: int = 1, most: int = MOST_COUNTED) -> int:
    """Checks that something counted is an integer in a range."""
    if is_whole(value) and least <= value <= most:
        return int(value)
    wanted = f">= {least}" if most == MOST_COUNTED else f"from {least} to {most}"
    if is_whole(value) and value > most:
        raise InvalidInputError(argument, f"{shown(value)} is too many", f"Give at most {most}")
    raise InvalidInputError(argument, f"{shown(value)} is not a count", f"Give an integer {wanted}")


def check_steps(argument: str, value: Any, least: int = 1) -> int:
    """Checks a number of steps: a count, and not more than any run could take."""
    return check_count(argument, value, least, MOST_STEPS)


def check_number(
    argument: str,
    value: Any,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    example: Any = None,
) -> float:
    """Checks that a setting is a finite real number within bounds.

    Args:
        argument: The argument's name.
        value: The setting.
        least: The lowest value allowed.
        most: The highest value allowed.
        above: What it must be greater than.
        below: What it must be less than.
        example: A value that would do.

    Raises:
        InvalidInputError: If it is not.
    """
    number = as_number(value)
    if math.isfinite(number) and least <= number <= most and above < number < below:
        return number
    wanted = "a finite number" if math.isinf(number) else _bounds(least, most, above, below)
    remedy = "Give one" if example is None else f"Give one, such as {example}"
    raise InvalidInputError(argument, f"{shown(value)} is not {wanted}", remedy)


def _bounds(least: float, most: float, above: float, below: float) -> str:
    """The numbers within some bounds, in words."""
    low, high = max(least, above), min(most, below)
    opened, closed = "[" if low == least else "(", "]" if high == most else ")"
    if not math.isinf(low) and not math.isinf(high):
        return f"a number in {opened}{low:g}, {high:g}{closed}"
    if math.isinf(low) and math.isinf(high):
        return "a finite number"
    if math.isinf(high):
        if (low, opened) == (0, "("):
            return "a positive number"
        return f"a number {'>=' if opened == '[' else '>'} {low:g}"
    return f"a number {'<=' if closed == ']' else '<'} {high:g}"


def check_probability(argument: str, value: Any, *, least: float = 0.0) -> float:
    """Checks that a number is a probability."""
    return check_number(argument, value, least=least, most=1.0, example=0.5)


def check_share(argument: str, value: Any, example: Any) -> float:
    """Checks that a number lies between 0 and 1, both left out."""
    number = as_number(value)
    if not 0 < number < 1:
        raise InvalidInputError(
            argument, f"it is {shown(value)}", f"Give a number between 0 and 1, such as {example}"
        )
    return number


def check_flag(argument: str, value: Any) -> bool:
    """Checks that a setting is True or False."""
    if not isinstance(value, bool | np.bool):
        raise InvalidInputError(
            argument, f"{shown(value)} is neither True nor False", "Give one of them"
        )
    return bool(value)


def check_text(argument: str, value: Any) -> str:
    """Checks that a setting is a text, and not an empty one."""
    if not isinstance(value, str) or not value:
        raise InvalidInputError(argument, f"{shown(value)} is no text", "Give a text in quotes")
    return value


def check_choice(argument: str, value: Any, choices: Iterable[str]) -> str:
    """Checks that a word is one of those known; suggests near ones."""
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    every = f"Give one of {', '.join(repr(choice) for choice in known)}"
    raise InvalidInputError(argument, f"{shown(value)} is not known", suggest(value, known) + every)


def check_kind(argument: str, value: Any, kind: type[_Kind], remedy: str) -> _Kind:
    """Checks that an object is of a class."""
    if not isinstance(value, kind):
        given = "it is None" if value is None else f"{type(value).__name__} is not {kind.__name__}"
        raise InvalidInputError(argument, given, remedy)
    return value


def check_function(argument: str, value: Any, remedy: str) -> Callable[..., Any]:
    """Checks that something can be called, and is no class."""
    if not callable(value) or isinstance(value, type):
        raise InvalidInputError(argument, f"{shown(value)} is no function", remedy)
    return value


def near_names(name: Any, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that one that is not known may have been meant to be, nearest first.

    Capitals, spaces, hyphens and underscores do not count.
    """
    if not isinstance(name, str):
        return []
    spelled: dict[str, str] = {}
    for one in known:
        spelled.setdefault(_plain(one), one)
    near = difflib.get_close_matches(_plain(name), spelled, n=most, cutoff=0.5)
    return [spelled[one] for one in near]


def suggest(name: Any, known: Iterable[str]) -> str:
    """``"Did you mean ...? "`` of near names, to stand before the rest; nothing where none is."""
    near = near_names(name, known)
    return f"Did you mean {' or '.join(near)}? " if near else ""


def _plain(name: str) -> str:
    return name.strip().casefold().replace("_", " ").replace("-", " ")


def check_kinds(**given: tuple[Any, Any]) -> None:
    """Checks that objects are of classes: ``check_kinds(corpus=(corpus, Corpus))``.

    A class may also be several, such as ``Selection | None``.
    """
    for argument, (value, kind) in given.items():
        if not isinstance(value, kind):
            kinds = get_args(kind) or (kind,)
            wanted = " or ".join("None" if one is NoneType else one.__name__ for one in kinds)
            seen = "it is None" if value is None else f"{shown(value)} is not {wanted}"
            raise InvalidInputError(argument, seen, f"Give {wanted}")


def check_flags(**given: Any) -> None:
    """Checks that settings are True or False: ``check_flags(progress=progress)``."""
    for argument, value in given.items():
        check_flag(argument, value)


@contextlib.contextmanager
def naming(**names: str) -> Iterator[None]:
    """Renames the argument of an error: ``naming(lengths="length")`` where one is handed on.

    Raises:
        InvalidInputError: That of the block, with the name that the caller knows.
    """
    try:
        yield
    except InvalidInputError as error:
        if error.argument not in names:
            raise
        raise type(error)(names[error.argument], error.problem, error.remedy) from None


def check_items(argument: str, value: Any, kind: Any, least: int = 0) -> list[Any]:
    """Checks that an argument is a sequence of objects of a class: a list, tuple or array.

    Raises:
        InvalidInputError: If it is none, such as a text, a mapping or one object; if it is too
            short; or if one item is of another class.
    """
    named = " or ".join(one.__name__ for one in get_args(kind) or (kind,))
    ordered = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if not ordered and not (isinstance(value, np.ndarray) and value.ndim):
        raise InvalidInputError(
            argument, f"{shown(value)} is no sequence", f"Give a list, each item {named}"
        )
    if isinstance(value, np.ndarray):
        check_readable(argument, value)
    items = list(value)
    if len(items) < least:
        raise InvalidInputError(argument, f"it has {len(items)} items", f"Give at least {least}")
    for place, item in enumerate(items):
        if not isinstance(item, kind) or (isinstance(item, bool) and kind is not bool):
            raise InvalidInputError(
                f"{argument}[{place}]", f"{shown(item)} is not {named}", f"Give {named}"
            )
    return items


def check_readable(argument: str, array: np.ndarray) -> None:
    """Checks that an array is short enough to be read item by item."""
    if array.ndim == 0 or len(array) > _MOST_READ:
        raise InvalidInputError(
            argument, f"it is {shown(array)}", f"Give at most {_MOST_READ:,} items, or a list"
        )


def check_path(argument: str, value: Any) -> Path:
    """Checks that an argument names a file or folder."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise InvalidInputError(
            argument, f"{shown(value)} is not a path", "Give that of a file, such as 'tokens.npz'"
        )
    return Path(value)


def one_or_several(argument: str, value: Any, kind: type[_Kind]) -> tuple[list[_Kind], bool]:
    """One object of a class, or a sequence of them, as a list; and whether it was a sequence."""
    if isinstance(value, kind):
        return [value], False
    items = value if isinstance(value, list | tuple) else None
    if not items or not all(isinstance(item, kind) for item in items):
        raise InvalidInputError(
            argument,
            f"{shown(value)} is not {kind.__name__}, nor a list of them",
            "Give one, or a list of at least one",
        )
    return list(items), True

"""Arguments out of a file are data: each is declared, and all are checked before anything is run.

A file may come from anybody. What it says it was made with is read against a table of what can
have been said: names, numbers and texts of known kinds and sizes, and never a path or code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from attractor.errors import FileFormatError
from attractor.provenance.record import Provenance

_SHOWN = 100


@dataclass(frozen=True)
class Argument:
    """The values that an argument may have.

    Attributes:
        words: These values, in words.
        accepts: Whether a value of JSON is such.
    """

    words: str
    accepts: Callable[[Any], bool]


def whole(least: int, most: int) -> Argument:
    """An integer in a range."""
    return Argument(
        f"an integer from {least:,} to {most:,}",
        lambda value: type(value) is int and least <= value <= most,
    )


def number() -> Argument:
    """A finite number."""
    return Argument(
        "a finite number",
        lambda value: type(value) in (int, float) and abs(value) < math.inf,
    )


def truth(*values: bool) -> Argument:
    """True or False, or the one of them that is given."""
    return Argument(
        " or ".join(map(str, values or (True, False))),
        lambda value: type(value) is bool and value in (values or (True, False)),
    )


def word(*choices: str) -> Argument:
    """One of some words."""
    known = frozenset(choices)
    shown = ", ".join(choices) if len(choices) < 10 else "one of those known"
    return Argument(shown, lambda value: isinstance(value, str) and value in known)


def text(pattern: str, words: str, most: int = 1000) -> Argument:
    """A text of a form."""
    form = re.compile(pattern)
    return Argument(
        words,
        lambda value: isinstance(value, str) and len(value) <= most and bool(form.fullmatch(value)),
    )


def several(argument: Argument, most: int) -> Argument:
    """A list of them, not empty."""
    return Argument(
        f"a list of at most {most:,}, each {argument.words}",
        lambda value: (
            isinstance(value, list) and 0 < len(value) <= most and all(map(argument.accepts, value))
        ),
    )


def one_or_several(argument: Argument, most: int) -> Argument:
    """One of them, or a list of them, not empty."""
    listed = several(argument, most)
    return Argument(
        f"{argument.words}, or {listed.words}",
        lambda value: argument.accepts(value) or listed.accepts(value),
    )


def optional(argument: Argument) -> Argument:
    """One of them, or nothing."""
    return Argument(
        f"null or {argument.words}", lambda value: value is None or argument.accepts(value)
    )


SEED = whole(0, 2**63 - 1)
"""A seed."""


def check_arguments(
    provenance: Provenance, declared: Mapping[str, Argument], *, may_lack: Collection[str] = ()
) -> dict[str, Any]:
    """The arguments of a provenance, if they are those declared and each is what it may be.

    Args:
        provenance: As read from a file.
        declared: All that can have been set, by name.
        may_lack: Names that need not be there.

    Raises:
        FileFormatError: If one is unknown, missing or something else; all such are named.
    """
    found = dict(provenance.arguments)
    wrong = [f"{name!a} is none that a file can set" for name in sorted(found.keys() - declared)]
    for name, argument in declared.items():
        if name in found and not argument.accepts(found[name]):
            wrong.append(f"{name} is {_shown(found[name])} and must be {argument.words}")
        elif name not in found and name not in may_lack:
            wrong.append(f"{name} is missing")
    if wrong:
        raise FileFormatError(
            f"The provenance says that {provenance.kind} {provenance.name!a} was made with "
            f"arguments that cannot be used: {'; '.join(wrong)}. Nothing was run."
        )
    return found


def _shown(value: Any) -> str:
    words = ascii(value)
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."

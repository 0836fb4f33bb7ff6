"""What installed distributions add, this one among them: found by entry points, one group a kind.

Nothing is imported until it is loaded, so that a list of names costs no more than reading metadata.
"""

from __future__ import annotations

import functools
import warnings
from importlib import metadata
from typing import Any

from attractor.support.errors import AttractorWarning, InvalidInputError

OWN = "attractor"
"""The distribution of this library, whose names no other takes."""


@functools.cache
def plugins(group: str) -> dict[str, metadata.EntryPoint]:
    """The entry points of a group by name, those of this library first.

    Args:
        group: Such as ``"attractor.commands"``.
    """
    found: dict[str, metadata.EntryPoint] = {}
    others = sorted(metadata.entry_points(group=group), key=lambda one: owner(one) != OWN)
    for one in others:
        if one.name in found and found[one.name].value != one.value:
            warnings.warn(
                f"{owner(one)} adds {one.name!r} to {group}, a name that "
                f"{owner(found[one.name])} has already; it is left out",
                AttractorWarning,
                stacklevel=2,
            )
        found.setdefault(one.name, one)
    return found


def load_plugin(group: str, name: str) -> Any:
    """The object of an entry point.

    Raises:
        InvalidInputError: If there is none of that name, or it cannot be loaded; its distribution
            is named then.
    """
    known = plugins(group)
    if name not in known:
        from attractor.support.checks import suggest  # which takes NumPy, and lists of names do not

        raise InvalidInputError(group, f"there is no {name!r}", suggest(name, known))
    try:
        return known[name].load()
    except Exception as error:  # somebody else's module can raise anything
        if owner(known[name]) == OWN:
            raise
        raise InvalidInputError(
            group,
            f"{name!r} of {owner(known[name])} ({known[name].value}) raised "
            f"{type(error).__name__}: {error}",
            f"Mend or uninstall {owner(known[name])}",
        ) from error


def load_plugins(group: str) -> dict[str, Any]:
    """All objects of a group by name; what cannot be loaded is named in a warning and left out."""
    found = {}
    for name in plugins(group):
        try:
            found[name] = load_plugin(group, name)
        except InvalidInputError as error:
            warnings.warn(str(error), AttractorWarning, stacklevel=2)
    return found


def owner(entry: metadata.EntryPoint) -> str:
    """The distribution that an entry point is of."""
    return entry.dist.name if entry.dist is not None else "an unknown distribution"

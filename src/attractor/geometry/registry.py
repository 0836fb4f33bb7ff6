"""Geometries by name."""

from __future__ import annotations

from typing import TypeVar

from attractor.geometry.contract import Geometry
from attractor.support.checks import shown, suggest
from attractor.support.errors import InvalidInputError

_CLASSES: list[type[Geometry]] = []

_Class = TypeVar("_Class", bound=type[Geometry])


def register_geometry(geometry: _Class) -> _Class:
    """Makes the geometries of a class known by their names; used as a class decorator."""
    _CLASSES.append(geometry)
    return geometry


def registered_geometries() -> tuple[type[Geometry], ...]:
    """The classes whose geometries are known by name; those made of others come last."""
    return tuple(sorted(_CLASSES, key=lambda known: "(<" in known.spelling))


def get_geometry(name: str | Geometry) -> Geometry:
    """The geometry of that name; a geometry is returned as it is.

    Raises:
        InvalidInputError: If no geometry has that name.
    """
    if isinstance(name, Geometry):
        return name
    if isinstance(name, str):
        for kind in _CLASSES:
            geometry = kind.from_name(name)
            if geometry is not None:
                return geometry
    known = [kind.spelling for kind in _CLASSES]
    remedy = f"{suggest(name, known)}Known: {', '.join(known)}"
    raise InvalidInputError("geometry", f"none is called {shown(name)}", remedy)

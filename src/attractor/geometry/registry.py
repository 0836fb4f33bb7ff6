"""Geometries by name."""

from __future__ import annotations

from typing import TypeVar

from attractor.errors import InvalidInputError
from attractor.geometry.contract import Geometry

_GEOMETRIES: dict[str, type[Geometry]] = {}

_Class = TypeVar("_Class", bound=type[Geometry])


def register_geometry(geometry: _Class) -> _Class:
    """Makes a geometry known by its name; used as a class decorator."""
    _GEOMETRIES[geometry.name] = geometry
    return geometry


def get_geometry(name: str | Geometry) -> Geometry:
    """The geometry of that name; a geometry is handed back as it is.

    Raises:
        InvalidInputError: If no geometry has that name.
    """
    if isinstance(name, Geometry):
        return name
    if name not in _GEOMETRIES:
        raise InvalidInputError(
            "geometry", f"none is called {name!r}", f"Known: {', '.join(sorted(_GEOMETRIES))}"
        )
    return _GEOMETRIES[name]()

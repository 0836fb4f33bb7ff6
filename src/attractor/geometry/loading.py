"""Geometries by name, or from a module of the user's own."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

from attractor.geometry.contract import Geometry
from attractor.geometry.registry import get_geometry
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.loaded import current_folder_last
from attractor.support.randomness import seeded

IN_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
"""How something in a module is named: ``module:name``."""
NEEDS_TORCH = "Run `pip install 'attractor[torch]'`"


def load_geometry(spelling: str) -> Geometry:
    """A norm by its name, or from ``module:name``: a geometry of one's own, or a class of one.

    Args:
        spelling: A name that ``get_geometry`` knows, or where to find it.

    Raises:
        InvalidInputError: If there is none, or its module or class raises.
    """
    check_kinds(norm=(spelling, str))
    found = IN_MODULE.fullmatch(spelling)
    if not found:
        try:
            return get_geometry(spelling)
        except InvalidInputError as error:
            remedy = f"{error.remedy}; or module:name, for one of your own"
            raise InvalidInputError("norm", error.problem, remedy) from None
    geometry = named_in_module("norm", *found.groups())
    if isinstance(geometry, type):
        try:
            with seeded(purpose="a norm that is made"):
                geometry = geometry()
        except Exception as error:  # a user's class can raise anything
            raise raised_by_user("norm", spelling, error) from error
    if not isinstance(geometry, Geometry):
        raise InvalidInputError(
            "norm",
            f"{spelling} is a {type(geometry).__name__}",
            "Give a Geometry, or a class of one",
        )
    return geometry


def named_in_module(argument: str, module: str, name: str) -> Any:
    """What has that name in a module, which may lie in the current folder.

    A module that is installed comes before one of the same name in the folder.

    Args:
        argument: The name to use in errors.
        module: The module.
        name: What it is to have.

    Raises:
        InvalidInputError: If the module cannot be imported, or has none of that name.
    """
    try:
        # Imports of other threads are waited for, and they may wait for numbers in turn.
        with current_folder_last(), seeded(purpose="a module of a user's", alone=False):
            found = importlib.import_module(module)
    except Exception as error:  # a user's module can raise anything
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise InvalidInputError(
                argument, f"{module} needs PyTorch, which is not installed", NEEDS_TORCH
            ) from error
        raise InvalidInputError(
            argument,
            f"the module {module!r} cannot be imported: {type(error).__name__}: {error}",
            f"Give module:name, with the module installed or in {os.getcwd()}",
        ) from error
    made = getattr(found, name, None)
    if made is None:
        names = [one for one, value in vars(found).items() if callable(value)]
        public = ", ".join(sorted(one for one in names if not one.startswith("_"))[:10])
        place = getattr(found, "__file__", None) or "part of Python"
        raise InvalidInputError(
            argument,
            f"{module!r} ({place}) has no {name!r}",
            f"It has: {public or 'no functions'}",
        )
    return made


def raised_by_user(argument: str, name: str, error: Exception) -> InvalidInputError:
    """The error of a user's code in one line."""
    text = str(error).strip().split("\n")[0][:300]
    return InvalidInputError(
        argument,
        f"{name} raised {type(error).__name__}: {text}",
        "Mend it, and try it alone first",
    )


def spelling_of(geometry: Geometry) -> str:
    """How ``load_geometry`` finds a norm again: by its name, or by the class of one's own."""
    kind = type(geometry)
    ours = kind.__module__.startswith("attractor.")
    return geometry.name if ours else f"{kind.__module__}:{kind.__qualname__}"

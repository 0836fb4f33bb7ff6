"""Libraries that take long to load: asked about without loading them, or left out."""

from __future__ import annotations

import sys
from typing import Any


def is_of_loaded(value: Any, library: str, name: str) -> bool:
    """Whether a value is of a class of a library: it cannot be, where the library is not loaded.

    Args:
        value: Anything.
        library: The module that has the class, such as ``"jax"``.
        name: The class, such as ``"Array"``.
    """
    # In the midst of being imported a module does not have all of its classes yet.
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(value, kind)


def leave_out(library: str) -> None:
    """Has a library count as not installed, unless it is loaded already.

    For libraries that others load on the chance that a value is of theirs.

    Args:
        library: The module.
    """
    sys.modules.setdefault(library, None)  # pyright: ignore[reportArgumentType]


def let_in(library: str) -> None:
    """Has a library that was left out count as installed again, if it is.

    Args:
        library: The module.
    """
    if sys.modules.get(library, sys) is None:
        del sys.modules[library]

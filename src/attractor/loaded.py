"""Type checks against classes of libraries that take long to load, without loading them."""

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

"""Packages as users see them: names are imported when they are first used, and then run safely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attractor.support.lazy_names import import_names_on_first_use
from attractor.support.settings import public_in_own_settings


def import_on_first_use(package: str, prepare: Callable[[Any], Any] = lambda value: value) -> None:
    """Has a package import its names on first use, and its functions run in the library's settings.

    Args:
        package: ``__name__`` of the package.
        prepare: Applied to the object of a name before all else.
    """
    import_names_on_first_use(
        package, lambda found: public_in_own_settings(prepare(found)), public_in_own_settings
    )

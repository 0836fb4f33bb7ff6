"""Writing files of classifier results."""

from __future__ import annotations

import os
from pathlib import Path

from attractor.checks import check_kinds, check_path
from attractor.errors import InvalidInputError
from attractor.files.classifiers_arrays import interpret_classifiers
from attractor.files.classifiers_layout import CLASSIFIERS_SUFFIX
from attractor.files.classifiers_loaded import LoadedClassifiers
from attractor.storage import save_netcdf


def save_classifiers(path: str | os.PathLike[str], loaded: LoadedClassifiers) -> None:
    """Writes results of classifiers, so that ``load`` gives the same.

    Args:
        path: The destination, ending in ``.nc``; replaced atomically.
        loaded: The results.

    Raises:
        InvalidInputError: If the name ends in anything else, or a variable cannot be used; nothing
            is written then.
    """
    check_kinds(loaded=(loaded, LoadedClassifiers))
    path = check_path("path", path)
    file = Path(path)
    if file.suffix != CLASSIFIERS_SUFFIX:
        raise InvalidInputError("path", f"{file.name} does not end in .nc", "Choose such a name")
    data = interpret_classifiers(loaded.data, file.name).data
    save_netcdf(data, file)

"""Data files of installed packages, found without importing any of their code."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

from attractor.support.errors import InvalidInputError


def installed_file(
    distribution: str, package: str, place: str, *, argument: str, remedy: str
) -> tuple[Path, str]:
    """Finds a data file of an installed package.

    Args:
        distribution: The name under which pip knows the package.
        package: The folder it installs.
        place: The file, from that folder.
        argument: The name to use in the error.
        remedy: The remedy in the error if there is no such file.

    Returns:
        The file, and the version of the package.

    Raises:
        InvalidInputError: If the package or its file is not there.
    """
    found = importlib.util.find_spec(package)  # of a top-level package: looks, does not import
    folders = [] if found is None else list(found.submodule_search_locations or [])
    if not folders:
        raise InvalidInputError(argument, f"the package {distribution} is not installed", remedy)
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    file = next((path for folder in folders if (path := Path(folder, place)).is_file()), None)
    if file is None:
        raise InvalidInputError(
            argument, f"{distribution} {version} has no file {package}/{place}", remedy
        )
    return file, version

"""Puts a provenance into a file of any kind that is written here, and finds it again."""

from __future__ import annotations

import os
from pathlib import Path

from attractor.results.provenance.formats import FORMATS, Format
from attractor.results.provenance.record import Provenance
from attractor.support.checks import check_kinds, check_path, shown
from attractor.support.containers import parsing
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import atomic_file, existing_file

SUFFIXES = tuple(FORMATS)
"""The endings of files that can hold a provenance."""


def embed(path: str | os.PathLike[str], provenance: Provenance) -> None:
    """Puts a provenance into a file, in place of one it may have.

    It becomes an attribute of a NetCDF file, a text chunk of a PNG, a ``metadata`` element of an
    SVG, a key of a JSON object, and a block of data in the head of an HTML page, everywhere under
    the name ``provenance``. The file is replaced atomically.

    Args:
        path: An existing file that ends in one of ``SUFFIXES``.
        provenance: What to put in.

    Raises:
        InvalidInputError: If there is no such file, or it is of another kind.
        FileFormatError: If the file is damaged or not of the kind its name says.
    """
    check_kinds(provenance=(provenance, Provenance))
    file, form = _find(path)
    text = provenance.to_json()
    with parsing(file, _kind(file)):
        content = form.insert(file, text)
    with atomic_file(file) as temporary:
        temporary.write_bytes(content)
        with parsing(file, _kind(file)):
            found = form.read(temporary)
        if found is None or Provenance.from_json(found) != provenance:
            raise FileFormatError(f"{file} takes no provenance: it cannot be read back from it.")


def embed_all(folder: str | os.PathLike[str], provenance: Provenance) -> None:
    """Puts a provenance into every file of a folder that can hold one.

    Args:
        folder: A folder with the files of one result.
        provenance: What to put in.

    Raises:
        FileFormatError: If a file is damaged or not of the kind its name says.
    """
    check_kinds(provenance=(provenance, Provenance))
    folder = check_path("folder", folder)
    if not folder.is_dir():
        raise InvalidInputError(
            "folder", f"{shown(str(folder))} is no folder", "Give that of a result"
        )
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() in FORMATS:
            embed(file, provenance)


def read_provenance(path: str | os.PathLike[str]) -> Provenance:
    """Reads the provenance that a file holds. Nothing in the file is run or expanded.

    Args:
        path: A file that ends in one of ``SUFFIXES``.

    Raises:
        InvalidInputError: If there is no such file, it is of another kind, or it holds none.
        FileFormatError: If the file or the provenance in it is damaged.
    """
    file, form = _find(path)
    with parsing(file, _kind(file)):
        text = form.read(file)
    if text is None:
        raise InvalidInputError(
            "file",
            f"{file.name} does not say where it comes from",
            "Give a figure, a claim or a report as Attractor wrote it; other programs that save "
            "a file again may drop its provenance",
        )
    try:
        return Provenance.from_json(text)
    except FileFormatError as error:
        raise FileFormatError(f"{file}: {error}") from None


def _find(path: str | os.PathLike[str]) -> tuple[Path, Format]:
    file = existing_file(path)
    if file.suffix.lower() not in FORMATS:
        raise InvalidInputError(
            "file",
            f"{file.name} is of a kind that holds no provenance",
            f"Give a file that ends in {', '.join(SUFFIXES)}",
        )
    return file, FORMATS[file.suffix.lower()]


def _kind(file: Path) -> str:
    return file.suffix.lower().removeprefix(".")

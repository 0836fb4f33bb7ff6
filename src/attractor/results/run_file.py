"""Recorded runs on disk: one NetCDF file with the records, and what they are records of."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.results.labeled import labeled
from attractor.support.checks import check_path
from attractor.support.containers import parse_json, parsing, read_groups
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import save_netcdf

if TYPE_CHECKING:
    import xarray as xr

_VERSION = 1
_RECORDS = "records"


@dataclass(frozen=True)
class StoredRun:
    """The contents of a file.

    Attributes:
        data: The records; empty for a run that is all in its parts.
        texts: Further texts by name.
        settings: The settings of the run.
        arrays: Other arrays, by group and name.
        parts: Runs that it is made of, by name.
    """

    data: xr.Dataset
    texts: Mapping[str, str]
    settings: dict[str, Any]
    arrays: Mapping[str, dict[str, np.ndarray]] = field(default_factory=dict)
    parts: Mapping[str, StoredRun] = field(default_factory=dict)


def save_run(path: str | os.PathLike[str], kind: str, run: StoredRun) -> None:
    """Writes a run; the file appears whole or not at all.

    Args:
        path: The file.
        kind: Its kind, which ``reading_run`` checks.
        run: Its contents; what JSON does not know in its settings becomes a text.

    Raises:
        InvalidInputError: If the path cannot be written.
    """
    save_netcdf(_groups(run, kind, ""), check_path("path", path))


@contextlib.contextmanager
def reading_run(
    path: str | os.PathLike[str],
    kind: str,
    groups: tuple[str, ...] = (),
    parts: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Iterator[StoredRun]:
    """Reads a run that ``save_run`` wrote, in a block that restores it.

    Args:
        path: The file.
        kind: The expected kind.
        groups: Names of the groups of other arrays.
        parts: Names of the parts, each with its own groups.

    Yields:
        The contents.

    Raises:
        FileFormatError: If the file is of no such run, or the block cannot make one of it.
    """
    path = check_path("path", path)
    if not os.path.isfile(path):
        raise FileFormatError(f"{path}: there is no such file.")
    stored = read_groups(path)
    attributes = stored[_RECORDS].attrs if _RECORDS in stored else {}
    if (attributes.get("format"), attributes.get("version")) != (f"attractor {kind}", _VERSION):
        raise FileFormatError(f"{path}: not a {kind} of version {_VERSION}.")
    try:
        with parsing(path, kind):
            found = {name: _read(stored, f"{name}/", own) for name, own in parts.items()}
            yield replace(_read(stored, "", groups), parts=found)
    except InvalidInputError as error:
        raise FileFormatError(f"{path}: not a {kind} that Attractor saved: {error}") from error


def _groups(run: StoredRun, kind: str, within: str) -> dict[str, xr.Dataset]:
    """The groups of a run, and of its parts, by their places in the file."""
    attributes = {
        "format": f"attractor {kind}",
        "version": _VERSION,
        **run.texts,
        "settings": json.dumps(run.settings, default=str),
    }
    groups = {within + _RECORDS: run.data.assign_attrs(attributes)}
    groups |= {within + group: _unlabeled(arrays) for group, arrays in run.arrays.items()}
    for name, part in run.parts.items():
        groups |= _groups(part, f"part of a {kind}", f"{within}{name}/")
    return groups


def _read(stored: Mapping[str, xr.Dataset], within: str, groups: tuple[str, ...]) -> StoredRun:
    """A run, or a part of one, of the groups of a file."""
    data = stored[within + _RECORDS]
    attributes, data.attrs = data.attrs, {}
    for name, text in attributes.items():
        if name != "version" and not isinstance(text, str):
            raise ValueError(f"{name} is no text")
    settings = parse_json(attributes["settings"])
    if not isinstance(settings, dict):
        raise ValueError("its settings are no object of JSON")
    if not isinstance(settings.get("optimizer", {}), dict):
        raise ValueError("its setting optimizer is no object of JSON")
    arrays = {
        group: {str(k): v.to_numpy() for k, v in stored[within + group].items()} for group in groups
    }
    return StoredRun(data, attributes, settings, arrays)


def _unlabeled(arrays: Mapping[str, np.ndarray]) -> xr.Dataset:
    """A dataset whose dimensions carry no meaning but their size."""
    return labeled(
        {
            name: ([f"{name}_{axis}" for axis in range(np.ndim(array))], np.asarray(array))
            for name, array in arrays.items()
        }
    )

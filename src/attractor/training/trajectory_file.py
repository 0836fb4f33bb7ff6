"""Trajectories on disk: one NetCDF file with the records, the tokens and the head."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import xarray as xr

from attractor.attention import Head
from attractor.attention.heads import as_head, head_from_arrays
from attractor.attention.heads.names import is_known
from attractor.containers import parse_json, parsing, read_netcdf
from attractor.errors import FileFormatError, InvalidInputError
from attractor.storage import save_netcdf
from attractor.tokens import Tokens
from attractor.training.trajectory import Trajectory
from attractor.training.trajectory_check import check_records

_FORMAT = "attractor trajectory"
_VERSION = 1
_TOKEN_ARRAYS = ("keys", "queries", "values", "labels", "mask")
_SETTINGS = ("loss", "parameterization")
"""The settings that are read again, where they are there."""


def save(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Writes a trajectory; the file appears whole or not at all."""
    tokens, head = trajectory.tokens, trajectory.head
    own_values = tokens.values is not tokens.keys
    arrays = {
        name: getattr(tokens, name) for name in _TOKEN_ARRAYS if name != "values" or own_values
    }
    if tokens.weights is not None:
        arrays["weights"] = tokens.weights
    arrays["mask"] = arrays["mask"].astype(np.int8)
    arrays["instance_numbers"] = tokens.instance_numbers
    attributes = {
        "format": _FORMAT,
        "version": _VERSION,
        "optimizer": trajectory.optimizer_name,
        "geometry": trajectory.geometry,
        "head": "" if head is None else head.name,
        "settings": json.dumps(trajectory.settings, default=str),
    }
    groups = {
        "records": trajectory.data.assign_attrs(attributes),
        "tokens": _unlabeled(arrays),
        "head": _unlabeled({} if head is None else head.arrays()),
    }
    save_netcdf(groups, path)


def load(path: str | os.PathLike[str], head: Any = None) -> Trajectory:
    """Reads a trajectory that ``save`` wrote.

    Args:
        path: The file.
        head: The head it was trained with, where the file cannot tell: see ``Trajectory.load``.

    Raises:
        FileFormatError: If the file is not a whole trajectory.
        InvalidInputError: If the head is not the one in the file.
    """
    if not os.path.isfile(path):
        raise FileFormatError(f"{path}: there is no such file.")
    data = read_netcdf(path, "records")
    if data.attrs.get("format") != _FORMAT or data.attrs.get("version") != _VERSION:
        raise FileFormatError(f"{path}: not a trajectory of version {_VERSION}.")
    try:
        with parsing(path, "trajectory"):
            tokens = Tokens(**_arrays(path, "tokens"))
            name, stored = _text(data, "head"), _arrays(path, "head")
            known = head_from_arrays(name, stored) if is_known(name) else None
            settings = parse_json(_text(data, "settings"))
            optimizer, geometry = _text(data, "optimizer"), _text(data, "geometry")
            check_records(data, tokens, known)
            _check_settings(settings)
    except InvalidInputError as error:
        raise FileFormatError(f"{path}: not a trajectory that Attractor saved: {error}") from error
    if head is not None:
        known = _same_head(as_head(head, tokens.value_dimension), name, stored)
    data.attrs = {}
    return Trajectory(data, tokens, known, optimizer, geometry, settings)


def _same_head(head: Head, name: str, stored: dict[str, np.ndarray]) -> Head:
    """Returns the head, if it is the one that was saved."""
    arrays = head.arrays()
    differ = [
        key
        for key in sorted({*arrays, *stored})
        if key not in arrays or key not in stored or not np.array_equal(arrays[key], stored[key])
    ]
    if head.name == name and not differ:
        return head
    raise InvalidInputError(
        "head",
        f"its arrays {differ} are not those in the file"
        if head.name == name
        else f"it is {head.name!r}, but the file was saved with {name or 'none'!r}",
        "Give the head that the run was trained with",
    )


def _unlabeled(arrays: dict[str, np.ndarray]) -> xr.Dataset:
    """A dataset whose dimensions carry no meaning but their size."""
    return xr.Dataset(
        {
            name: ([f"{name}_{axis}" for axis in range(np.ndim(array))], np.asarray(array))
            for name, array in arrays.items()
        }
    )


def _arrays(path: str | os.PathLike[str], group: str) -> dict[str, np.ndarray]:
    return {str(name): array.to_numpy() for name, array in read_netcdf(path, group).items()}


def _text(data: xr.Dataset, name: str) -> str:
    value = data.attrs[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def _check_settings(settings: Any) -> None:
    if not isinstance(settings, dict):
        raise ValueError("its settings are no object of JSON")
    for name in _SETTINGS:
        if name in settings and not isinstance(settings[name], str):
            raise ValueError(f"its setting {name} is no text")

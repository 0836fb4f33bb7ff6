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
from attractor.errors import AttractorError, FileFormatError, InvalidInputError
from attractor.storage import save_netcdf
from attractor.tokens import Tokens
from attractor.training.trajectory import Trajectory

_FORMAT = "attractor trajectory"
_VERSION = 1
_TOKEN_ARRAYS = ("keys", "queries", "values", "labels", "mask")
_VARIABLES = {
    "loss": 3,
    "norm": 3,
    "log_gradient_norm": 3,
    "attended": 5,
    "attended_probability": 5,
    "status": 2,
    "steps_taken": 2,
}


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
    try:
        data = _read(path, "records")
        if data.attrs.get("format") != _FORMAT or int(data.attrs["version"]) != _VERSION:
            raise FileFormatError(f"{path}: not a trajectory of version {_VERSION}.")
        _check_records(data)
        tokens = Tokens(**_arrays(path, "tokens"))
        name, stored = str(data.attrs["head"]), _arrays(path, "head")
        known = head_from_arrays(name, stored) if is_known(name) else None
        settings = json.loads(data.attrs["settings"])
        optimizer, geometry = str(data.attrs["optimizer"]), str(data.attrs["geometry"])
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, FileFormatError):
            raise
        reason = str(error) if isinstance(error, AttractorError) else f"{error!r}"
        raise FileFormatError(f"{path}: not a trajectory that Attractor saved: {reason}") from error
    if data.sizes["instance"] != len(tokens.instance_numbers):
        raise FileFormatError(f"{path}: the records and the tokens disagree on the instances.")
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


def _read(path: str | os.PathLike[str], group: str) -> xr.Dataset:
    with xr.open_dataset(path, group=group, engine="h5netcdf") as data:
        return data.load()


def _arrays(path: str | os.PathLike[str], group: str) -> dict[str, np.ndarray]:
    return {str(name): array.to_numpy() for name, array in _read(path, group).items()}


def _check_records(data: xr.Dataset) -> None:
    for name, axes in _VARIABLES.items():
        if data[name].ndim != axes or data[name].dims[:2] != ("instance", "seed"):
            raise FileFormatError(f"{name} has the axes {data[name].dims}.")
    if data["W"].dims[-2:] != ("row", "column"):
        raise FileFormatError(f"W has the axes {data['W'].dims}.")

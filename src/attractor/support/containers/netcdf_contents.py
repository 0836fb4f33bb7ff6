"""What NetCDF files hold as this library writes them: HDF5 that has all its data itself.

An HDF5 file may refer to other files for its contents, to programs that unpack it, and declare
arrays of any size. All of that is checked, and refused, before a single array is read.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Iterator
from typing import Any

import h5py
import xarray as xr
from xarray.backends import H5NetCDFStore

from attractor.support.containers.damage import check_declared, check_ratio, check_shape
from attractor.support.containers.hdf5 import check_hdf5, check_lengths
from attractor.support.storage.netcdf_file import open_netcdf

_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32"}
"""Filters of arrays, by the numbers of HDF5; others would be looked for among plugins."""
_DEEPEST = 10
_NAMELESS = "phony_dim_"
"""Prefix of the names that h5netcdf gives to axes that have none in a file."""
_LENGTH = b"This is a netCDF dimension but not a netCDF variable."
"""How NetCDF marks what an HDF5 file has for the length of an axis; h5netcdf reads none of it."""


def whole(file: str | os.PathLike[str]) -> dict[str, xr.Dataset]:
    """The arrays of every group of a file, by its place; all is checked."""
    _check_contents(file)
    with _opened(file) as stored:
        return {place: _loaded(stored, place) for place in _places(stored)}


def one_group(
    file: str | os.PathLike[str], place: str, *, checked: str | None = None
) -> xr.Dataset:
    """The arrays of the group at a place.

    Args:
        file: The file.
        place: The place of the group.
        checked: The one group whose arrays have to fit into memory; None for all.
    """
    _check_contents(file, checked)
    with _opened(file) as stored:
        return _loaded(stored, place)


def text(file: str | os.PathLike[str], name: str) -> str | None:
    """A text that a file has for an attribute, or None."""
    check_hdf5(file)
    with h5py.File(file, "r") as stored:
        check_lengths(file, [stored])
        found = stored.attrs.get(name)
    if found is not None and not isinstance(found, str):
        raise ValueError(f"its attribute {name} is no text")
    return found


def _check_contents(file: str | os.PathLike[str], group: str | None = None) -> None:
    """Checks all that is declared anywhere in a file, before any of it is read.

    Args:
        file: The file.
        group: The one group that is read; None where all are.
    """
    found = os.stat(file)
    state = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    declared = _declared(os.fspath(file), state)
    if group is not None:
        declared = {place: size for place, size in declared.items() if place == f"/{group}"}
    check_declared(file, sum(declared.values()))


@functools.lru_cache(maxsize=8)
def _declared(file: str, state: tuple[int, ...]) -> dict[str, int]:
    """Bytes that the arrays of each group of a file declare, all of which is checked.

    This reads the whole file, as a text may lie anywhere in it: once, for as long as the file stays
    what it is.
    """
    check_hdf5(file)
    with h5py.File(file, "r") as stored:
        objects = list(_objects(stored, 0))
        check_lengths(file, objects)
        declared: dict[str, int] = {}
        for one in objects:
            if isinstance(one, h5py.Dataset):
                place = str(one.parent.name)
                declared[place] = declared.get(place, 0) + _bytes(one)
    check_ratio(sum(declared.values()), os.path.getsize(file))
    return declared


def _opened(file: str | os.PathLike[str]) -> contextlib.AbstractContextManager[Any]:
    """A file that is read; axes without names get some, which are refused afterwards."""
    return open_netcdf(file, "r", phony_dims="sort", decode_vlen_strings=True)


def _places(group: Any) -> Iterator[str]:
    """Places of a group of h5netcdf and of those in it, without the slashes around them."""
    yield group.name.strip("/")
    for inner in group.groups.values():
        yield from _places(inner)


def _loaded(stored: Any, place: str) -> xr.Dataset:
    """The arrays of a group of an open file, in memory and checked."""
    data = xr.open_dataset(H5NetCDFStore(stored, group=place or None)).load()
    _check_axes(data)
    _check_texts(data)
    return data


def _check_axes(data: xr.Dataset) -> None:
    """Checks that arrays have the axes named: of damaged names HDF5 may say that there are none."""
    for name, variable in data.variables.items():
        named = [axis for axis in variable.dims if not str(axis).startswith(_NAMELESS)]
        if len(named) != variable.to_numpy().ndim:
            raise ValueError(f"the axes of {name} have no names")


def _check_texts(data: xr.Dataset) -> None:
    """Checks that every text can be written again: HDF5 hands over bytes that are no UTF-8, too."""
    for variable in (data, *data.variables.values()):
        for value in variable.attrs.values():
            if isinstance(value, str):
                value.encode("utf-8")
    for variable in data.variables.values():
        if variable.dtype.kind in "OU":
            for value in variable.to_numpy().flat:
                if not isinstance(value, str):
                    raise ValueError(f"it holds a {type(value).__name__} among texts")
                value.encode("utf-8")


def _objects(group: Any, depth: int) -> Iterator[Any]:
    """A group, and all groups and arrays in it."""
    if depth > _DEEPEST:
        raise ValueError(f"its groups are nested more than {_DEEPEST} deep")
    yield group
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{name} is a link")
        inner = group[name]
        if isinstance(inner, h5py.Group):
            yield from _objects(inner, depth + 1)
        elif isinstance(inner, h5py.Dataset):
            yield inner


def _is_length(dataset: Any) -> bool:
    """Whether an array is but the length of an axis: it has no numbers, and none are read."""
    name = dataset.attrs.get("NAME", b"")
    return isinstance(name, bytes) and name.startswith(_LENGTH)


def _bytes(dataset: Any) -> int:
    """Bytes of the numbers of an array, once unpacked."""
    name, plan = dataset.name, dataset.id.get_create_plist()
    if plan.get_external_count() or dataset.is_virtual:
        raise ValueError(f"{name} lies in another file")
    filters = {plan.get_filter(number)[0] for number in range(plan.get_nfilters())}
    if not filters <= set(_FILTERS):
        raise ValueError(f"{name} is packed by other means than {', '.join(_FILTERS.values())}")
    if dataset.shape is None:
        raise ValueError(f"{name} has no shape")
    size = dataset.dtype.itemsize
    declared = check_shape(dataset.shape, size)
    if _is_length(dataset):
        return 0
    stored = dataset.id.get_storage_size()
    if declared and stored:
        check_ratio(max(declared, size * math.prod(dataset.chunks or ())), stored)
    elif declared:
        check_ratio(declared, 0)
    return declared

"""NetCDF files, open to be read or written, whose groups and arrays are looked up once."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import h5netcdf
import h5py
import xarray as xr
from xarray.backends import H5NetCDFStore


@contextlib.contextmanager
def open_netcdf(file: Any, mode: Literal["r", "w", "a"], **options: Any) -> Iterator[Any]:
    """Opens a file as h5netcdf does, and closes it again.

    h5netcdf looks up an array for every question about it, such as the lengths of its axes: more
    than half of the time of reading a run, and near half of that of writing one.

    Args:
        file: The file, or a stream of its bytes.
        mode: ``"r"``, ``"w"`` or ``"a"``.
        options: Of ``h5netcdf.File``.

    Yields:
        An ``h5netcdf.File``.
    """
    order = {} if mode == "r" else {"track_order": True}  # as NetCDF wants, and h5netcdf has it
    with _File(file, mode, **order) as stored:
        with h5netcdf.File(stored, mode, **options) as opened:
            yield opened


class _File(h5py.File):
    """A file of h5py that remembers what was found at which place."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._found: dict[str, Any] = {}

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, str):
            return super().__getitem__(name)
        found = self._found.get(name)
        if found is None or found.name is None:  # not yet, or deleted since
            found = self._found[name] = super().__getitem__(name)
        return found


def netcdf_bytes(data: xr.Dataset | Mapping[str, xr.Dataset]) -> bytes:
    """The bytes of a file of labeled arrays, or of groups of them by name."""
    groups: Mapping[Any, xr.Dataset] = {None: data} if isinstance(data, xr.Dataset) else data
    content = io.BytesIO()
    for number, (group, arrays) in enumerate(groups.items()):
        with open_netcdf(content, "a" if number else "w") as file:
            arrays.dump_to_store(H5NetCDFStore(file, group=group, mode="w"))
    return content.getvalue()

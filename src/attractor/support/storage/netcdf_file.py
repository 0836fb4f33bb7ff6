"""NetCDF files, open to be read or written, whose groups and arrays are looked up once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Literal


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
    import h5netcdf

    order = {} if mode == "r" else {"track_order": True}  # as NetCDF wants, and h5netcdf has it
    with _file_class()(file, mode, **order) as stored:
        with h5netcdf.File(stored, mode, **options) as opened:
            yield opened


@functools.cache
def _file_class() -> Any:
    """Files of h5py that remember what was found at which place."""
    import h5py

    class File(h5py.File):
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

    return File

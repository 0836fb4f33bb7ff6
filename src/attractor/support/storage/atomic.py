"""Writing so that nothing half-written is ever seen.

NetCDF files are made in memory, then written as any other file: HDF5 that cannot write what it has
buffered, on a full disk, leaves objects behind that end the process when they are collected.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attractor.support.errors import WriteError
from attractor.support.storage.paths import check_replaceable, check_writable
from attractor.support.storage.workplace import workplace

if TYPE_CHECKING:
    import xarray as xr


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path that becomes ``path`` if the block ends without an exception.

    The temporary file lies in the same file system, so that the rename is atomic, and is flushed
    to disk before it. Of several writers at once the last one wins.

    Args:
        path: The destination; an existing file is replaced. A symbolic link stays, and the file
            that it leads to is replaced.

    Yields:
        The path to write to. It has the destination's name.

    Raises:
        InvalidInputError: If the destination is a folder, a device or anything else that is no
            file, or lies where nothing can be written.
        WriteError: If writing fails, on a full disk say; what was there stays as it was.
    """
    destination = check_writable("path", path)
    with _naming(destination), workplace(destination) as place:
        temporary = place / "new" / destination.name
        yield temporary
        _flush(temporary)
        os.replace(temporary, destination)
        _flush(destination.parent)


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Writes a file that appears whole or not at all; text in UTF-8.

    Raises:
        InvalidInputError: If the destination cannot be used, as for ``atomic_file``.
        WriteError: If writing fails, on a full disk say; what was there stays as it was.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def atomic_directory(
    path: str | os.PathLike[str], marker: str, command: str | None = None
) -> Iterator[Path]:
    """Yields a temporary folder that becomes ``path`` if the block ends without an exception.

    Args:
        path: The destination. An existing folder is replaced only if it is empty or holds
            ``marker``: what somebody else keeps there is not ours to remove. A symbolic link
            stays, and the folder that it leads to is replaced.
        marker: Name of the file by which a folder of ours is known; the block must write it.
        command: The command whose reports may be replaced; None where there are no reports.

    Yields:
        The folder to write to, in the destination's file system.

    Raises:
        InvalidInputError: If the destination exists and is not ours to replace.
        WriteError: If writing fails, on a full disk say; what was there stays as it was.
    """
    destination = check_replaceable(path, marker, command=command)
    with _naming(destination), workplace(destination) as place:
        temporary = place / "new" / destination.name
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            _flush(file)
        check_replaceable(destination, marker, command=command)  # others may have used it since
        _swap(temporary, destination, place / "old")
        _flush(destination.parent)


@contextlib.contextmanager
def new_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder that becomes ``path``, unless another writer's did so first.

    Args:
        path: The destination: nothing yet, or an empty folder. What is there at the end of the
            block stays, and the folder of the block is removed.

    Yields:
        The folder to write to, in the destination's file system.

    Raises:
        InvalidInputError: If the destination is no folder, or lies where nothing can be written.
        WriteError: If writing fails, on a full disk say.
    """
    destination = check_replaceable(path, None)
    with _naming(destination), workplace(destination) as place:
        temporary = place / "new" / destination.name
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            _flush(file)
        try:
            os.rename(temporary, destination)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) and not destination.is_dir():
                raise
        _flush(destination.parent)


def append_line(path: str | os.PathLike[str], line: str) -> None:
    """Appends a line to a file, in UTF-8; the file is made where there is none.

    Raises:
        InvalidInputError: If the destination cannot be used, as for ``atomic_file``.
        WriteError: If writing fails, on a full disk say; the lines before stay.
    """
    destination = check_writable("path", path)
    with _naming(destination), open(destination, "ab") as file:
        whole = file.tell()
        try:
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.truncate(destination, whole)
            raise


@contextlib.contextmanager
def _naming(destination: Path) -> Iterator[None]:
    """Turns the error of a failed write into one that names the destination."""
    try:
        yield
    except OSError as error:
        raise WriteError(destination, error) from error


def _swap(temporary: Path, destination: Path, old: Path) -> None:
    """Puts a folder in the place of another, which is moved into ``old`` first.

    Another writer may put its folder there in between, which is then moved away in turn. Killed
    in between, the folder in ``old`` is put back by whoever comes next.
    """
    while True:
        try:
            os.replace(temporary, destination)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) and not destination.is_dir():
                raise
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir()
        with contextlib.suppress(FileNotFoundError):
            os.replace(destination, old / destination.name)


def _flush(path: Path) -> None:
    """Asks the system to put a file or a folder entry on disk, where the system can."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_netcdf(data: xr.Dataset | Mapping[str, xr.Dataset], path: str | os.PathLike[str]) -> None:
    """Writes labeled arrays, or groups of them by name; the file appears whole or not at all.

    Raises:
        InvalidInputError: If the destination cannot be used, as for ``atomic_file``.
        WriteError: If writing fails, on a full disk say; what was there stays as it was.
    """
    from attractor.support.storage.netcdf_file import netcdf_bytes

    write_file(path, netcdf_bytes(data))

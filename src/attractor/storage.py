"""Writing so that nothing half-written is ever seen."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attractor.errors import InvalidInputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_PARTIAL = ".partial-"


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path that becomes ``path`` if the block ends without an exception.

    The temporary file lies in the same folder, so that the rename is atomic, and is flushed to
    disk before it.

    Args:
        path: The destination; an existing file is replaced.

    Yields:
        The path to write to. It keeps the destination's suffix.

    Raises:
        InvalidInputError: If the destination is a folder.
    """
    destination = Path(path)
    if destination.is_dir():
        raise InvalidInputError("path", f"{destination} is a folder", "Give the name of a file")
    destination.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        prefix=f".{destination.stem}{_PARTIAL}", suffix=destination.suffix, dir=destination.parent
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        _flush(temporary)
        os.replace(temporary, destination)
        _flush(destination.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str], marker: str) -> Iterator[Path]:
    """Gives a temporary folder that becomes ``path`` if the block ends without an exception.

    Args:
        path: The destination. An existing folder is replaced only if it is empty or holds
            ``marker``: what somebody else keeps there is not ours to remove.
        marker: Name of the file by which a folder of ours is known; the block must write it.

    Yields:
        The folder to write to, beside the destination.

    Raises:
        InvalidInputError: If the destination exists and is not ours to replace.
    """
    destination = Path(os.path.abspath(path))
    check_replaceable(destination, marker)
    destination.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{destination.name}{_PARTIAL}"
    temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=destination.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        for file in temporary.rglob("*"):
            _flush(file)
        _swap(temporary, destination)
        _flush(destination.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_replaceable(path: str | os.PathLike[str], marker: str, *, argument: str = "out") -> None:
    """Checks that a folder may be written or replaced, so that long work can refuse early.

    Args:
        path: The folder, which need not exist.
        marker: Name of the file by which a folder of ours is known.
        argument: The name to use in the error.

    Raises:
        InvalidInputError: If the path is a file, or a folder with contents that are not ours.
    """
    destination = Path(path)
    if destination.is_file():
        raise InvalidInputError(argument, f"{destination} is a file", "Give the name of a folder")
    if not destination.is_dir() or (destination / marker).exists():
        return
    unfinished = set(destination.glob(f".{Path(marker).stem}{_PARTIAL}*"))  # of a killed write
    if set(destination.iterdir()) - unfinished:
        raise InvalidInputError(
            argument,
            f"the folder {destination} holds files that Attractor did not write",
            "Give the name of a new or empty folder, or of one that an earlier run wrote",
        )


@contextlib.contextmanager
def owned_folder(path: str | os.PathLike[str], marker: str, *, argument: str) -> Iterator[Path]:
    """Makes a folder and holds it for this run alone, and removes what killed writes left in it.

    The operating system lets go of the folder when the process ends, however it ends. Where it
    offers no such locks (Windows, some network file systems) two runs are not kept apart.

    Args:
        path: The folder; it need not exist.
        marker: Name of the file by which a folder of ours is known.
        argument: The name to use in the error.

    Yields:
        The folder.

    Raises:
        InvalidInputError: If the folder is not ours, or another run holds it.
    """
    check_replaceable(path, marker, argument=argument)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder) as alone:
        if not alone:
            raise InvalidInputError(
                argument, f"another run is writing to {folder}", "Wait for it, or end it"
            )
        for leftover in folder.glob(f".*{_PARTIAL}*"):
            leftover.unlink()
        yield folder


def check_writable(argument: str, path: str | os.PathLike[str]) -> None:
    """Checks that a file may be written or replaced, so that long work can refuse early.

    Args:
        argument: The name to use in the error.
        path: The file; folders that do not exist yet will be made.

    Raises:
        InvalidInputError: If the path is a folder, or lies where nothing can be written.
    """
    destination = Path(path)
    if destination.is_dir():
        raise InvalidInputError(argument, f"{destination} is a folder", "Give the name of a file")
    folder = destination.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidInputError(
            argument, f"nothing can be written in {folder}", "Give a file in another folder"
        )


def _swap(temporary: Path, destination: Path) -> None:
    """Puts ``temporary`` in the place of ``destination``, keeping the old folder until it is."""
    if not destination.exists():
        os.replace(temporary, destination)
        return
    retired = Path(tempfile.mkdtemp(prefix=f".{destination.name}.old-", dir=destination.parent))
    os.replace(destination, retired / "old")
    try:
        os.replace(temporary, destination)
    except BaseException:
        os.replace(retired / "old", destination)
        raise
    finally:
        shutil.rmtree(retired, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Locks a folder and says whether nobody else holds it."""
    if fcntl is None:
        yield True
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            alone = False
        except OSError:  # a file system without locks
            alone = True
        yield alone
    finally:
        os.close(descriptor)


def _flush(path: Path) -> None:
    """Asks the system to put a file or a folder entry on disk, where the system can."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

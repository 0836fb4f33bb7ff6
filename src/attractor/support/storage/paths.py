"""Checks of the files and folders that are read and written, made once and before any work."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from attractor.support.checks import check_path
from attractor.support.errors import InvalidInputError
from attractor.support.storage.markers import written_by

_FILE, _FOLDER = "Give the name of a file", "Give the name of a folder"
_APART = "Give another name"
_ATTEMPTS = 20
"""Number of tests of a folder before it counts as one that cannot be written in."""


class Input(NamedTuple):
    """A file or folder that is read.

    Attributes:
        argument: The name to use in errors.
        path: Its path; None if it was not given.
    """

    argument: str
    path: str | os.PathLike[str] | None


class OutputFile(NamedTuple):
    """A file that is written, or replaced.

    Attributes:
        argument: The name to use in errors.
        path: Its path; None if it is not requested.
        suffix: The end that its name has to have, ``".nc"``; empty where any will do.
    """

    argument: str
    path: str | os.PathLike[str] | None
    suffix: str = ""


class OutputFolder(NamedTuple):
    """A folder that is written.

    Attributes:
        argument: The name to use in errors.
        path: Its path; None if it is not requested.
        marker: Name of the file by which a folder of ours is known; None for a folder in which
            anything else may lie.
        replaced: Whether what an earlier run left in it goes, and with it all that lies there.
        command: The one whose reports may be replaced, where a page says what wrote it.
    """

    argument: str
    path: str | os.PathLike[str] | None
    marker: str | None = None
    replaced: bool = False
    command: str | None = None


def check_paths(outputs: Iterable[OutputFile | OutputFolder], inputs: Iterable[Input] = ()) -> None:
    """Checks all that is written, each by itself and beside what else is written and read.

    Args:
        outputs: What is written.
        inputs: What is read; one that is not there is for its reader to refuse.

    Raises:
        InvalidInputError: If an output cannot be written, is one of the inputs (under whatever
            name), would take an input or another output with it, or is one of the others.
    """
    written = [(output, _target(output)) for output in outputs if output.path is not None]
    for (one, first), (other, second) in itertools.combinations(written, 2):
        _keep_apart(one, first, other, second)
    for source in inputs:
        if source.path is None or not os.path.exists(source.path):
            continue
        read = Path(os.path.realpath(source.path))
        for output, target in written:
            if _same(target, read):
                raise InvalidInputError(
                    output.argument, f"{output.path} is what {source.argument} reads", _APART
                )
            if isinstance(output, OutputFolder) and output.replaced and target in read.parents:
                raise InvalidInputError(
                    output.argument,
                    f"the folder {output.path} is replaced, and {source.argument} lies in it",
                    "Give another folder",
                )


def check_writable(argument: str, path: str | os.PathLike[str]) -> Path:
    """Checks that a file may be written or replaced, so that long work can refuse early.

    Args:
        argument: The name to use in the error.
        path: The file; folders that do not exist yet will be made.

    Returns:
        The file itself, where symbolic links lead to it.

    Raises:
        InvalidInputError: If the path is a folder, a device or anything else that is no file, a
            symbolic link to nothing, or lies where nothing can be written.
    """
    target, mode = _resolve(argument, path, _FILE)
    if mode is not None:
        if stat.S_ISDIR(mode):
            raise InvalidInputError(argument, f"{path} is a folder", _FILE)
        if not os.access(target, os.W_OK):
            raise InvalidInputError(argument, f"{path} is write-protected", _APART)
    _check_place(argument, target.parent, "Give a file in another folder")
    return target


def check_replaceable(
    path: str | os.PathLike[str],
    marker: str | None,
    *,
    command: str | None = None,
    argument: str = "out",
) -> Path:
    """Checks that a folder may be written or replaced, so that long work can refuse early.

    Args:
        path: The folder, which need not exist.
        marker: Name of the file by which a folder of ours is known; None where anything may lie
            in the folder.
        command: The command whose reports may be replaced; None where there are no reports.
        argument: The name to use in the error.

    Returns:
        The folder itself, where symbolic links lead to it.

    Raises:
        InvalidInputError: If the path is no folder, a folder with contents that are not ours or
            with the report of another command, a symbolic link to nothing, or lies where nothing
            can be written.
    """
    target, mode = _resolve(argument, path, _FOLDER)
    if mode is None:
        _check_place(argument, target.parent, "Give another folder")
        return target
    if not stat.S_ISDIR(mode):
        raise InvalidInputError(argument, f"{path} is a file", _FOLDER)
    _check_place(argument, target, "Give another folder")
    writer = None if command is None else written_by(target)
    if writer not in (None, command):
        raise InvalidInputError(
            argument,
            f"the folder {path} holds a report of `attractor {writer}`, and only one of `attractor "
            f"{command}` would be replaced",
            "Give the name of another folder, or remove this one first",
        )
    if marker is None:
        return target
    try:
        contents = os.listdir(target)
    except FileNotFoundError:  # another writer is replacing it
        return target
    unfinished = f".{Path(marker).stem}*.partial-*"  # of a killed write
    if marker not in contents and not all(fnmatch.fnmatchcase(n, unfinished) for n in contents):
        raise InvalidInputError(
            argument,
            f"the folder {path} holds files that Attractor did not write",
            "Give the name of a new or empty folder, or of one that an earlier run wrote",
        )
    return target


def _target(output: OutputFile | OutputFolder) -> Path:
    assert output.path is not None
    if isinstance(output, OutputFile):
        target, name = check_writable(output.argument, output.path), Path(output.path)
        if output.suffix and name.suffix != output.suffix:
            raise InvalidInputError(
                output.argument,
                f"{name} is no {output.suffix} file",
                f"Give a name like {name.with_suffix(output.suffix)}",
            )
        return target
    target = check_replaceable(
        output.path, output.marker, command=output.command, argument=output.argument
    )
    if output.replaced:
        if os.path.ismount(target):
            raise InvalidInputError(
                output.argument,
                f"{output.path} is where a file system is mounted, which cannot be replaced",
                "Give a folder in it",
            )
        _check_place(output.argument, target.parent, "Give another folder")
    return target


def _resolve(argument: str, path: str | os.PathLike[str], remedy: str) -> tuple[Path, int | None]:
    """The target of a path and its file mode; None where there is nothing yet."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InvalidInputError(argument, f"{path!r} is not a path", remedy)
    try:
        given = Path.cwd() / path
        # What is no link may be gone again, as another writer is replacing it.
        place = next((place for place in (given, *given.parents) if os.path.lexists(place)), given)
        leads_nowhere = os.path.islink(place) and not os.path.exists(place)
        target, mode = Path(os.path.realpath(given)), None
        if not leads_nowhere:
            with contextlib.suppress(FileNotFoundError):
                mode = os.stat(target).st_mode
    except NotADirectoryError:
        raise InvalidInputError(
            argument, f"nothing can be written in {Path(path).parent}", remedy
        ) from None
    except (OSError, ValueError) as error:  # a name too long, a loop of links, a null byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInputError(argument, f"{path!s} cannot be used ({reason})", remedy) from None
    if leads_nowhere:
        raise InvalidInputError(argument, f"{place} is a symbolic link that leads nowhere", remedy)
    if _is_stream(given):
        raise InvalidInputError(argument, f"{path} is an open stream, not a file", remedy)
    kind = None if mode is None else _special(mode)
    if kind:
        raise InvalidInputError(argument, f"{path} is {kind}, not a file", remedy)
    return target, mode


def _special(mode: int) -> str | None:
    """The kind of what is neither a file nor a folder, in words; None for either."""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _is_stream(path: Path) -> bool:
    """Whether a path names an open file of a process, such as /dev/stdout."""
    for _ in range(40):  # as many links as the system follows
        if Path(os.path.realpath(path.parent)).parts[1:2] == ("proc",):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / os.readlink(path)
    return False


def _check_place(argument: str, folder: Path, remedy: str) -> None:
    """Checks that something can be written in a folder, or it be made."""
    there = folder
    for _ in range(_ATTEMPTS):  # another writer may be replacing it: it is gone for moments then
        there = next(place for place in (folder, *folder.parents) if place.exists())
        if os.access(there / ".", os.W_OK | os.X_OK):
            return
    raise InvalidInputError(argument, f"nothing can be written in {there}", remedy)


def _keep_apart(
    one: OutputFile | OutputFolder, first: Path, other: OutputFile | OutputFolder, second: Path
) -> None:
    """Refuses two outputs of one name, or one inside another that is no common ground."""
    if _same(first, second):
        raise InvalidInputError(
            other.argument, f"{other.path} is written as {one.argument}, too", _APART
        )
    for outer, place, inner, inside in ((one, first, other, second), (other, second, one, first)):
        common = isinstance(outer, OutputFolder) and outer.marker is None
        if not common and place in inside.parents:
            raise InvalidInputError(
                inner.argument,
                f"{inner.path} lies in {outer.path}, which is written as {outer.argument}",
                _APART,
            )


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are of one file or folder, be it by a hard link."""
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return os.path.normcase(one) == os.path.normcase(other)


def existing_file(path: Any, remedy: str = "Give the name of a file") -> Path:
    """The file at a path.

    Args:
        path: The path.
        remedy: What to do where there is none.

    Raises:
        InvalidInputError: If it is no path, or there is no file.
    """
    file = check_path("path", path)
    if not file.is_file():
        raise InvalidInputError("file", f"there is no file {file}", remedy)
    return file

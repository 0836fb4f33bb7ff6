"""One error for files that are damaged, or declare more than they can hold."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from attractor.support.errors import AttractorError, FileFormatError
from attractor.support.memory import require_memory

LARGEST = 2**26
"""Bytes of the largest picture, page or JSON that is read at once."""
EXPANSION = 1032
"""Largest factor by which deflate can shorten anything."""

_HEADERS = 2**16
"""Bytes that may be declared beyond that, for headers and fill values of small files."""
_EMPTY = 2**26
"""Bytes that the other axes may come to where an array has an axis of length zero."""
_REASON = 300


@contextlib.contextmanager
def parsing(file: str | os.PathLike[str], kind: str, part: str = "") -> Iterator[None]:
    """Turns whatever a parser raises into an error that names the file.

    Parsers raise of damaged files what they please, lookup, recursion and memory errors among it,
    so that no list of exceptions is ever complete. Nothing else belongs into the block.

    Args:
        file: The file.
        kind: Its expected format, such as ``"npz"``.
        part: The part of it that is read.

    Raises:
        FileFormatError: If the block raises anything; errors of this library pass.
    """
    try:
        yield
    except AttractorError:
        raise
    except Exception as error:
        raise damaged(file, kind, str(error) or type(error).__name__, part) from None


def damaged(
    file: str | os.PathLike[str], kind: str, reason: str, part: str = ""
) -> FileFormatError:
    """The error of a damaged file."""
    what = f": {part} cannot be read" if part else ""
    plain = "".join(letter if letter.isprintable() else " " for letter in reason[:_REASON])
    return FileFormatError(f"{os.fspath(file)} is damaged or is no {kind} file{what} ({plain}).")


def read_whole(file: Path) -> bytes:
    """All bytes of a file that is read at once.

    Raises:
        ValueError: If there are too many.
    """
    with file.open("rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    return content


def check_declared(file: str | os.PathLike[str], declared: int) -> None:
    """Refuses a file that declares more numbers than it can hold, or than memory can take.

    Args:
        file: The file.
        declared: Bytes of everything in it, once unpacked.

    Raises:
        ValueError: If no file of this size can hold so much.
        InvalidInputError: If there is less memory.
    """
    check_ratio(declared, os.path.getsize(file))
    require_memory(
        "file",
        f"what {os.fspath(file)} holds",
        needed=declared,
        remedy=lambda available: f"Give a file of at most {available / 1e9:.1f} GB",
    )


def check_ratio(declared: int, stored: int) -> None:
    """Refuses what declares more bytes than those stored can be unpacked to.

    Raises:
        ValueError: If it does.
    """
    if declared > EXPANSION * stored + _HEADERS:
        raise ValueError(f"it declares {declared:,} bytes, and {stored:,} are stored")


def check_shape(shape: Sequence[int], size: int) -> int:
    """The bytes of an array of a declared shape, with numbers of so many bytes.

    An array without numbers can declare any length along the other axes: it is refused where an
    array with numbers along them would be large.

    Raises:
        ValueError: If there is no such array.
    """
    if size < 1 or any(length < 0 for length in shape):
        raise ValueError(f"there is no array of shape {tuple(shape)} and {size} bytes a number")
    if 0 in shape and size * math.prod(length or 1 for length in shape) > _EMPTY:
        raise ValueError(f"it is empty and has the shape {tuple(shape)}")
    return size * math.prod(shape)


def check_name(name: str) -> str:
    """A name out of a file that can be printed.

    Raises:
        ValueError: If it cannot.
    """
    if not name.isprintable():
        raise ValueError(f"the name {name!a} cannot be printed")
    return name

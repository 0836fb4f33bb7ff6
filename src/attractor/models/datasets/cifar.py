"""CIFAR-10 in its binary version: batches of images in an archive or a folder."""

from __future__ import annotations

import contextlib
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from jaxtyping import Int32, UInt8

from attractor.models.datasets.packed import Unpacked
from attractor.support.errors import FileFormatError, InvalidInputError

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
IMAGES = 10_000
"""Images in each batch."""
RECORD = 1 + 3 * 32 * 32
"""Bytes of an image: its class, then all red, all green and all blue pixels, row by row."""

_FOLDER = "cifar-10-batches-bin"
_SMALL = 2**16
"""Bytes that the other members of the archive may have; they are a text and a list of names."""
_MEMBERS = 20
_PICKLES = ("data_batch_1", "test_batch", "batches.meta")
_BINARY = "Get the binary version instead: cifar-10-binary.tar.gz from the same page"

Read = tuple[
    UInt8[np.ndarray, "n 32 32 3"], Int32[np.ndarray, "n"], tuple[str, ...], tuple[str, ...]
]


def refuse_pickles(place: Path) -> None:
    """Refuses the Python version of the data, by the names or the first bytes of its files.

    Raises:
        InvalidInputError: If the path is such an archive, folder or file.
    """
    folders = (place, place / "cifar-10-batches-py")
    inside = [folder / name for folder in folders for name in _PICKLES]
    if not place.is_dir():
        inside = [place]
    pickled = any(file.is_file() and _begins_as_pickle(file) for file in inside)
    if pickled or ("python" in place.name and ".tar" in place.name):
        raise _refusal(place)


def is_cifar(place: Path) -> bool:
    """Whether a path is an archive, or a folder with CIFAR-10's batches."""
    if place.is_file():
        return place.name.endswith((".tar.gz", ".tgz"))
    return any((folder / name).is_file() for folder in _folders(place) for name in BATCHES)


def read_cifar(place: Path) -> Read:
    """Reads all six batches.

    Returns:
        Pixels, classes of the images, names of the classes, and the split that the data come with.

    Raises:
        InvalidInputError: If it is the Python version.
        FileFormatError: If a batch is missing, cut off or damaged, or the archive holds what
            CIFAR-10's does not.
    """
    batches = _from_archive(place) if place.is_file() else _from_folder(place)
    missing = [name for name in BATCHES if name not in batches]
    if missing:
        raise FileFormatError(f"{place} has no {', '.join(missing)}. Get the whole data set again.")
    pixels = np.empty((len(BATCHES) * IMAGES, 32, 32, 3), np.uint8)
    labels = np.empty(len(pixels), np.int32)
    for number, name in enumerate(BATCHES):
        records = np.frombuffer(batches.pop(name), np.uint8).reshape(IMAGES, RECORD)
        if records[:, 0].max() >= len(CLASSES):
            raise FileFormatError(
                f"{place}: {name} has an image of class {records[:, 0].max()}; "
                "there are 10, from 0."
            )
        rows = slice(number * IMAGES, (number + 1) * IMAGES)
        labels[rows] = records[:, 0]
        pixels[rows] = records[:, 1:].reshape(IMAGES, 3, 32, 32).transpose(0, 2, 3, 1)
    splits = ("train",) * (5 * IMAGES) + ("test",) * IMAGES
    return pixels, labels, CLASSES, splits


def _folders(place: Path) -> tuple[Path, Path]:
    return place, place / _FOLDER


def _from_folder(place: Path) -> dict[str, bytes]:
    batches = {}
    for file in [folder / name for folder in _folders(place) for name in BATCHES]:
        if file.is_file() and file.name not in batches:
            _check_size(place, file.name, file.stat().st_size)
            batches[file.name] = file.read_bytes()
    return batches


def _from_archive(file: Path) -> dict[str, bytes]:
    """The batches in an archive, read in one pass, into memory alone."""
    most = len(BATCHES) * (IMAGES * RECORD + _SMALL) + _MEMBERS * _SMALL
    with contextlib.closing(Unpacked(file, most)) as stream:
        unpacked: Any = stream  # all that tarfile needs of a stream is its method read
        try:
            with tarfile.open(fileobj=unpacked, mode="r|") as archive:
                batches = _batches(file, archive)
            while stream.read(2**20):  # the checksum is at the end
                pass
        except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
            if isinstance(error, FileFormatError | InvalidInputError):
                raise
            raise FileFormatError(f"{file} is cut off or no tar archive ({error}).") from None
        return batches


def _batches(file: Path, archive: tarfile.TarFile) -> dict[str, bytes]:
    batches: dict[str, bytes] = {}
    for count, member in enumerate(archive, 1):
        path = PurePosixPath(member.name)
        if path.parts[:1] == ("cifar-10-batches-py",):
            raise _refusal(file)
        expected = path.parent.name in (_FOLDER, "") and len(path.parts) <= 2
        if member.isdir() and expected:
            continue
        if not (member.isfile() and expected) or path.name in batches or count > _MEMBERS:
            raise FileFormatError(
                f"{file} holds {member.name!r}, which does not belong into CIFAR-10's archive. "
                "Get cifar-10-binary.tar.gz again."
            )
        if path.name in BATCHES:
            _check_size(file, path.name, member.size)
            content = archive.extractfile(member)
            batches[path.name] = b"" if content is None else content.read()
            _check_size(file, path.name, len(batches[path.name]))
        elif member.size > _SMALL:
            raise FileFormatError(f"{file} holds {member.name!r} of {member.size:,} bytes.")
    return batches


def _check_size(place: Path, name: str, size: int) -> None:
    if size != IMAGES * RECORD:
        raise FileFormatError(
            f"{place}: {name} has {size:,} bytes instead of {IMAGES * RECORD:,}: it is cut off or "
            "something else. Get it again."
        )


def _begins_as_pickle(file: Path) -> bool:
    """Whether a file begins with a pickle's mark and version, or as a pickle in letters does."""
    with file.open("rb") as stream:
        begin = stream.read(2)
    return (begin[:1] == b"\x80" and b"\x00" < begin[1:] < b"\x0a") or begin == b"(d"


def _refusal(place: Path) -> InvalidInputError:
    return InvalidInputError(
        "path",
        f"{place.name} is pickled, as in CIFAR-10's Python version, and reading a pickle can run "
        "any code",
        _BINARY,
    )

"""Images and labels in files: the format of MNIST, and CIFAR-10 in its binary version."""

from __future__ import annotations

import contextlib
import gzip
import math
import struct
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from jaxtyping import Int32, UInt8

from attractor.support.errors import FileFormatError, InvalidInputError

DAMAGED = (EOFError, zlib.error, OSError)
"""What gzip raises for a file that is cut off or damaged."""


class Unpacked:
    """The content of a gzip file, as a stream that refuses to read past a limit."""

    def __init__(self, file: Path, most: int) -> None:
        self._file = file
        self._left = most
        self._most = most
        self._stream = gzip.open(file, "rb")

    def read(self, size: int) -> bytes:
        """Returns the next bytes, at most ``size``.

        Raises:
            FileFormatError: If the file holds more than it may, or is damaged.
        """
        try:
            content = self._stream.read(min(size, self._left + 1))
        except DAMAGED as error:
            raise FileFormatError(f"{self._file} is cut off or damaged ({error}).") from None
        self._left -= len(content)
        if self._left < 0:
            raise FileFormatError(
                f"{self._file} holds more than {self._most:,} bytes when unpacked: too many for "
                "what its name says."
            )
        return content

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()


def read_gzip(file: Path, most: int) -> bytes:
    """Returns the content of a gzip file, at most ``most`` bytes."""
    with contextlib.closing(Unpacked(file, most)) as stream:
        return stream.read(most + 1)


_IMAGES, _LABELS = 0x00000803, 0x00000801
"""The first four bytes: unsigned bytes (8), in three dimensions or in one."""
_MOST = 2**30
_PREFIXES = {"train": "train", "test": "t10k"}


def find_idx_pairs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """The files of images and of labels in a folder, for "train", "test" or both.

    Raises:
        FileFormatError: If images are without labels.
    """
    pairs = {}
    for split, prefix in _PREFIXES.items():
        images = _existing(folder, f"{prefix}-images", "idx3-ubyte")
        labels = _existing(folder, f"{prefix}-labels", "idx1-ubyte")
        if images is not None and labels is not None:
            pairs[split] = (images, labels)
        elif images is not None:
            raise FileFormatError(f"{folder} has {images.name} but no {prefix}-labels-idx1-ubyte.")
    return pairs


def read_idx_pair(
    images: Path, labels: Path
) -> tuple[UInt8[np.ndarray, "n height width 1"], Int32[np.ndarray, "n"]]:
    """Reads a file of images and the file of their labels.

    Raises:
        FileFormatError: If either is cut off, too long or of another kind, or they are not of the
            same number.
    """
    pixels = _read(images, _IMAGES, 3)
    numbers = _read(labels, _LABELS, 1)
    if len(pixels) != len(numbers):
        raise FileFormatError(
            f"{images.name} has {len(pixels):,} images and {labels.name} {len(numbers):,} labels. "
            "Give files that belong together."
        )
    return pixels[..., None], numbers.astype(np.int32)


def _existing(folder: Path, begin: str, end: str) -> Path | None:
    names = [f"{begin}{dash}{end}{packed}" for dash in "-." for packed in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read(file: Path, magic: int, dimensions: int) -> UInt8[np.ndarray, "*shape"]:
    if file.suffix == ".gz":
        content = read_gzip(file, _MOST)
    elif file.stat().st_size > _MOST:
        raise FileFormatError(f"{file} has more than {_MOST:,} bytes.")
    else:
        content = file.read_bytes()
    header = 4 * (1 + dimensions)
    if len(content) < header:
        raise FileFormatError(f"{file} is cut off: it has {len(content)} bytes.")
    found, *shape = struct.unpack(f">{1 + dimensions}I", content[:header])
    if found != magic:
        raise FileFormatError(
            f"{file} begins with 0x{found:08x} instead of 0x{magic:08x}: it is no idx file of "
            f"{'images' if dimensions == 3 else 'labels'}."
        )
    if math.prod(shape) != len(content) - header or 0 in shape:
        raise FileFormatError(
            f"{file} says it has {' x '.join(map(str, shape))} bytes and has "
            f"{len(content) - header:,}: it is cut off or damaged."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


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

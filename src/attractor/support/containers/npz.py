"""The arrays of an ``.npz`` file: a zip archive of ``.npy`` members, each read on access."""

from __future__ import annotations

import contextlib
import copy
import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

import numpy as np

from attractor.support.containers.damage import check_declared, check_name, check_shape, parsing
from attractor.support.errors import FileFormatError, InvalidInputError

_SUFFIX = ".npy"
_ENCRYPTED = 0x1
_PIECE = 2**20
_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The methods that NumPy writes."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_MOST_TEXT = 2**28
"""The most bytes of texts in an array: a million names of 64 letters."""
_LAST_CODE_POINT = 0x10FFFF
_HALVES = (0xD800, 0xDFFF)


class StoredArrays(Mapping[str, np.ndarray]):
    """The arrays of an ``.npz`` file by name; each is unpacked on its first access.

    Sizes are those of the archive's directory, compared with those of each member's header before
    anything is unpacked. Objects are never unpickled.

    Raises:
        InvalidInputError: If there is less memory than the members take, or one of them holds
            Python objects.
        FileFormatError: If the archive is damaged, or a member that is accessed.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        """Reads the directory of the archive and the headers of its members."""
        self._file = file
        self._read: dict[str, np.ndarray] = {}
        if not zipfile.is_zipfile(file):
            raise FileFormatError(
                f"{os.fspath(file)} is damaged or is not an .npz file: it is no complete zip "
                "archive. Write it again with numpy.savez."
            )
        with parsing(file, "npz", "its list of arrays"), zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            check_declared(file, sum(member.file_size for member in members))
            names = [check_name(member.filename).removesuffix(_SUFFIX) for member in members]
            self._members = dict(zip(names, members, strict=True))
            if len(self._members) < len(members):
                raise ValueError("a name is there twice")
        for name, member in self._members.items():
            if member.filename.endswith(_SUFFIX):
                with self._opened(name) as stream:
                    _header(stream, name, member.file_size)

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._members)

    def __len__(self) -> int:
        """Number of members."""
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        """Whether there is a member of that name; it is not unpacked."""
        return name in self._members

    def __getitem__(self, name: str) -> np.ndarray:
        """The array."""
        if name not in self._read:
            size = self._members[name].file_size
            with self._opened(name) as stream:
                self._read[name] = _array(stream, *_header(stream, name, size))
        return self._read[name]

    def text(self, name: str) -> str:
        """A text, which is an array without axes.

        Raises:
            InvalidInputError: If it is an array of anything else.
        """
        array = self[name]
        if array.dtype.kind != "U" or array.ndim:
            raise InvalidInputError(
                name,
                f"it is an array of type {array.dtype} and shape {array.shape}, not a text",
                f"Save it as a text: numpy.savez(..., {name}='...')",
            )
        return str(array)

    def without(self, names: Iterable[str]) -> StoredArrays:
        """The other arrays."""
        rest = copy.copy(self)
        rest._members = {name: one for name, one in self._members.items() if name not in {*names}}
        return rest

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        """The bytes of a member; whatever reading them raises names it."""
        member = self._members[name]
        with parsing(self._file, "npz", name), zipfile.ZipFile(self._file) as archive:
            if not member.filename.endswith(_SUFFIX):
                raise ValueError(f"it is no array: its name does not end in {_SUFFIX}")
            if member.flag_bits & _ENCRYPTED:
                raise ValueError("it is encrypted")
            if member.compress_type not in _COMPRESSION:
                raise ValueError(f"it is packed by method {member.compress_type}, not by deflate")
            with archive.open(member) as stream:
                yield stream


def _header(stream: IO[bytes], name: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of a member whose header and numbers together have so many bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers in the style of Python 2
        shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    if dtype.hasobject:
        raise InvalidInputError(
            name,
            "the array holds Python objects, which are never loaded",
            "Save a rectangular array of numbers; pad ragged sequences and use mask",
        )
    if dtype.kind not in "biufcSU":
        raise ValueError(f"it holds no numbers or texts but {dtype}")
    stored = size - stream.tell()
    if check_shape(shape, dtype.itemsize) != stored:
        raise ValueError(f"it has {stored:,} bytes for the shape {shape} of {dtype}")
    if dtype.kind in "SU" and stored > _MOST_TEXT:
        raise ValueError(f"it holds {stored:,} bytes of texts, more than {_MOST_TEXT:,}")
    return shape, fortran, dtype


def _array(stream: IO[bytes], shape: tuple[int, ...], fortran: bool, dtype: np.dtype) -> np.ndarray:
    array = np.empty(shape[::-1] if fortran else shape, dtype)
    if array.size:
        left = array.reshape(-1).view(np.uint8).data
        while left:
            taken = stream.readinto(left[:_PIECE])  # type: ignore[attr-defined]
            if not taken:
                raise EOFError("it ends before its numbers do")
            left = left[taken:]
    stream.read(1)  # the checksum is compared at the end
    if dtype.kind == "U":
        _check_code_points(array)
    return array.T if fortran else array


def _check_code_points(array: np.ndarray) -> None:
    points = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    halves = (points >= _HALVES[0]) & (points <= _HALVES[1])
    if (halves | (points > _LAST_CODE_POINT)).any():
        raise ValueError("it has an invalid code point")

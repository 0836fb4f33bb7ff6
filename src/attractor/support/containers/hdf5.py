"""Checks that libhdf5 does not make before it takes memory: driver settings, texts of any length.

Texts lie in collections, one behind another, and where one has a declared size of zero, libhdf5
loops on it for ever, and nothing of Python can end it. A text is referred to by its length and its
place, and libhdf5 takes memory for the length before it reads the place.
"""

from __future__ import annotations

import collections
import math
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import h5py

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_COLLECTION = b"GCOL\x01"
_HEAD = 16
"""Bytes of the head of a collection, and of each text in it."""
_ENTRY = 16
"""Bytes of a reference to a text: its length, the place of its collection, its number there."""
_OF_ANY_LENGTH = 9
"""The class of types by which such texts and lists are known."""
_EIGHT = (8, 8)
"""Bytes of an address and of a length, as everything writes them today."""
_NOWHERE = b"\xff" * 8
"""The address of what a file does not have."""


def check_hdf5(file: str | os.PathLike[str]) -> None:
    """Checks that every collection of texts can be walked through to its end.

    Settings of a driver, which files in several parts have, may be of any length too; there must
    be none.

    Raises:
        ValueError: If a collection cannot, there are settings, or it is no HDF5 file.
    """
    with open(file, "rb") as stream:
        if stream.read(len(_SIGNATURE)) != _SIGNATURE:
            raise ValueError("its first bytes are not those of HDF5")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            version = content[8] if len(content) > len(_SIGNATURE) else 0
            at = 13 if version < 2 else 9
            if tuple(content[at : at + 2]) != _EIGHT:
                raise ValueError("its addresses do not have eight bytes")
            driver = 48 + 4 * version
            if version < 2 and content[driver : driver + 8] != _NOWHERE:
                raise ValueError("it is one of several parts")
            place = content.find(_COLLECTION)
            while place >= 0:
                _walk(content, place)
                place = content.find(_COLLECTION, place + 1)


def _walk(content: mmap.mmap, start: int) -> None:
    if start + _HEAD > len(content):
        return
    (size,) = struct.unpack_from("<Q", content, start + 8)
    place, end = start + _HEAD, start + size
    if end > len(content):
        return  # which libhdf5 finds out
    while place + _HEAD <= end:
        number, _, length = struct.unpack_from("<HH4xQ", content, place)
        taken = _HEAD + (length + 7) // 8 * 8 if number else length
        if taken < _HEAD or place + taken > end:
            raise ValueError(f"the texts at byte {start:,} do not lie one behind another")
        place += taken


def check_lengths(file: str | os.PathLike[str], objects: Sequence[Any]) -> None:
    """Checks that texts, and lists of references, are not declared longer than the file.

    Args:
        file: The file.
        objects: Every group and array in it.

    Raises:
        ValueError: If they are, or it is not seen how long they are.
    """
    arrays = [one for one in objects if isinstance(one, h5py.Dataset)]
    names = collections.Counter(
        name.encode()
        for one in objects
        for name in one.attrs
        if _is_long(h5py.h5a.open(one.id, name.encode()).get_type())
    )
    with (
        open(file, "rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        left = len(content)
        entries = [entry for one in arrays if _is_long(one.id.get_type()) for entry in _of(one)]
        entries += [entry for name in names for entry in _messages(name, names[name], content)]
        for place, count, size in entries:
            if place + _ENTRY * count > len(content):
                raise ValueError("a text lies beyond its end")
            for number in range(count):
                (length,) = struct.unpack_from("<I", content, place + _ENTRY * number)
                left -= length * size
                if left < 0:
                    raise ValueError("a text is longer than the file")


def _is_long(kind: Any) -> bool:
    """Whether values are of any length, so that entries are references to them."""
    if isinstance(kind, h5py.h5t.TypeStringID):
        return kind.is_variable_str()
    inner = []
    if isinstance(kind, h5py.h5t.TypeVlenID | h5py.h5t.TypeArrayID):
        inner = [kind.get_super()]
    elif isinstance(kind, h5py.h5t.TypeCompoundID):
        inner = [kind.get_member_type(number) for number in range(kind.get_nmembers())]
    if any(map(_is_long, inner)):
        raise ValueError("it holds texts in records or lists")
    return isinstance(kind, h5py.h5t.TypeVlenID)


def _of(array: Any) -> Iterator[tuple[int, int, int]]:
    """Places of the entries of an array, their numbers, and bytes of a letter."""
    kind = array.id.get_type()
    size = kind.get_super().get_size() if isinstance(kind, h5py.h5t.TypeVlenID) else 1
    if array.chunks is not None:
        if array.id.get_create_plist().get_nfilters():
            raise ValueError(f"the texts of {array.name} are packed")
        for number in range(array.id.get_num_chunks()):
            chunk = array.id.get_chunk_info(number)
            yield chunk.byte_offset, chunk.size // _ENTRY, size
    elif array.id.get_storage_size():
        place = array.id.get_offset()
        if place is None:
            raise ValueError(f"it is not seen where the texts of {array.name} lie")
        yield place, math.prod(array.shape), size


def _messages(name: bytes, fewest: int, content: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """The same of every attribute of a name, found by the message that holds it.

    A message has its version, the sizes of name, type and shape, in version 3 the letters of the
    name, then these three, in version 1 filled up to eight bytes each, and the value.
    """
    found, place = 0, content.find(name + b"\0")
    while place >= 0:
        for before, versions in ((9, (3,)), (8, (1, 2))):
            if place < before or content[place - before] not in versions:
                continue
            version, flags = content[place - before], content[place - before + 1]
            sizes = struct.unpack_from("<HHH", content, place - before + 2)
            if sizes[0] != len(name) + 1:
                continue
            if version > 1 and flags:
                raise ValueError(f"the type of the attribute {name!a} lies elsewhere")
            padded = [(size + 7) // 8 * 8 for size in sizes] if version == 1 else sizes
            kind = place + padded[0]
            found += 1
            if content[kind] % 16 == _OF_ANY_LENGTH:
                (size,) = struct.unpack_from("<I", content, kind + 12)
                count = _count(content, kind + padded[1])
                yield place + sum(padded), count, size
        place = content.find(name + b"\0", place + 1)
    if found < fewest:
        raise ValueError(f"it is not seen where the attribute {name!a} lies")


def _count(content: mmap.mmap, shape: int) -> int:
    """Number of values by the message of a shape."""
    version, axes, _, kind = content[shape : shape + 4]
    if version == 2 and kind == 2:  # of no values
        return 0
    lengths = struct.unpack_from(f"<{axes}Q", content, shape + (8 if version == 1 else 4))
    return math.prod(lengths)

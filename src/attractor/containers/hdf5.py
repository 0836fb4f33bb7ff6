"""What libhdf5 does not check before it reads: its heaps of texts.

Texts of any length lie in collections, one behind another. Where one says that it takes no place,
libhdf5 goes on from there to itself for ever, and nothing of Python can end it.
"""

from __future__ import annotations

import mmap
import os
import struct

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_COLLECTION = b"GCOL\x01"
_HEAD = 16
"""Bytes of the head of a collection, and of each text in it."""
_EIGHT = (8, 8)
"""Bytes of an address and of a length, as everything writes them today."""


def check_hdf5(file: str | os.PathLike[str]) -> None:
    """Checks that every collection of texts can be walked through to its end.

    Raises:
        ValueError: If one cannot, or it is no HDF5 file.
    """
    with open(file, "rb") as stream:
        if stream.read(len(_SIGNATURE)) != _SIGNATURE:
            raise ValueError("its first bytes are not those of HDF5")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            at = 9 if content[8:9] >= b"\x02" else 13
            if tuple(content[at : at + 2]) != _EIGHT:
                raise ValueError("its addresses do not have eight bytes")
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

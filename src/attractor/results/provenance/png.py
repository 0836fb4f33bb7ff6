"""A text chunk of a PNG image."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from attractor.support.containers import read_whole

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"provenance\0"


def insert(file: Path, text: str) -> bytes:
    """The image with an ASCII text before the chunk that ends it."""
    body = _KEYWORD + text.encode("ascii")
    parts = [_SIGNATURE]
    for kind, data, whole in _chunks(file.read_bytes()):
        if kind == b"IEND":
            check = zlib.crc32(b"tEXt" + body)
            parts.append(struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", check))
        if not _is_ours(kind, data):
            parts.append(whole)
    return b"".join(parts)


def read(file: Path) -> str | None:
    """The text, or None."""
    texts = [
        data.removeprefix(_KEYWORD)
        for kind, data, _ in _chunks(read_whole(file))
        if _is_ours(kind, data)
    ]
    return texts[0].decode("ascii") if texts else None


def _is_ours(kind: bytes, data: bytes) -> bool:
    return kind == b"tEXt" and data.startswith(_KEYWORD)


def _chunks(image: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Kind, data and all bytes of each chunk, up to the one that ends the image."""
    if not image.startswith(_SIGNATURE):
        raise ValueError("its first bytes are not those of a PNG image")
    place, kind = len(_SIGNATURE), b""
    while kind != b"IEND":
        if place + 12 > len(image):
            raise ValueError("it ends before the image does")
        length, kind = struct.unpack_from(">I4s", image, place)
        whole = image[place : place + 12 + length]
        data = whole[8:-4]
        if len(data) != length or whole[-4:] != struct.pack(">I", zlib.crc32(kind + data)):
            raise ValueError(f"the checksum of the chunk at byte {place} does not match")
        yield kind, data, whole
        place += len(whole)

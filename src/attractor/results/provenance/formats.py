"""Where a file of each kind holds a text about itself: an attribute, a chunk, an element, a key."""

from __future__ import annotations

import io
import json
import re
import struct
import xml.parsers.expat
import zlib
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import h5py

from attractor.support.containers import netcdf_text, parse_json, read_whole

_ATTRIBUTE = "provenance"


def _insert_netcdf(file: Path, text: str) -> bytes:
    """The file with this attribute of the whole of it."""
    content = io.BytesIO(file.read_bytes())
    with h5py.File(content, "r+") as stored:
        stored.attrs[_ATTRIBUTE] = text
    return content.getvalue()


def _read_netcdf(file: Path) -> str | None:
    """The text, or None."""
    return netcdf_text(file, _ATTRIBUTE)


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"provenance\0"


def _insert_png(file: Path, text: str) -> bytes:
    """The image with an ASCII text before the chunk that ends it."""
    body = _KEYWORD + text.encode("ascii")
    parts = [_SIGNATURE]
    for kind, data, whole in _chunks(file.read_bytes()):
        if kind == b"IEND":
            check = zlib.crc32(b"tEXt" + body)
            parts.append(struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", check))
        if not _is_our_chunk(kind, data):
            parts.append(whole)
    return b"".join(parts)


def _read_png(file: Path) -> str | None:
    """The text, or None."""
    texts = [
        data.removeprefix(_KEYWORD)
        for kind, data, _ in _chunks(read_whole(file))
        if _is_our_chunk(kind, data)
    ]
    return texts[0].decode("ascii") if texts else None


def _is_our_chunk(kind: bytes, data: bytes) -> bool:
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


_ELEMENT = re.compile(rb'<metadata id="provenance">[^<]*</metadata>\n')


def _insert_svg(file: Path, text: str) -> bytes:
    """The drawing with an ASCII text before the tag that ends it."""
    drawing = _ELEMENT.sub(b"", file.read_bytes())
    start, end, rest = drawing.rpartition(b"</svg>")
    if not end:
        raise ValueError("it has no </svg>")
    element = f'<metadata id="provenance">{escape(text, quote=False)}</metadata>\n'
    return start + element.encode("ascii") + end + rest


def _read_svg(file: Path) -> str | None:
    """The text, or None."""
    parser = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    inside: list[bool] = []
    found: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        inside.append(name == "metadata" and attributes.get("id") == "provenance")

    def end(name: str) -> None:
        inside.pop()

    def characters(data: str) -> None:
        if inside and inside[-1]:
            found.append(data)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = _refuse_entities
    parser.Parse(read_whole(file), True)
    return "".join(found) or None


def _refuse_entities(*declaration: Any) -> None:
    # Entities that expand one another can fill any memory, and drawings need none.
    raise ValueError("it declares entities")


_KEY = "provenance"


def _insert_json(file: Path, text: str) -> bytes:
    """The file with a text of JSON under the key, as what it says and not as a text."""
    contents = _object(file)
    contents[_KEY] = json.loads(text)
    return (json.dumps(contents, indent=2) + "\n").encode()


def _read_json(file: Path) -> str | None:
    """The text, or None."""
    contents = _object(file)
    return json.dumps(contents[_KEY]) if _KEY in contents else None


def _object(file: Path) -> dict[str, Any]:
    contents = parse_json(read_whole(file))
    if not isinstance(contents, dict):
        raise ValueError("it holds no JSON object")
    return contents


_OPEN_SCRIPT = '<script type="application/json" id="provenance">'
_SCRIPT = re.compile(re.escape(_OPEN_SCRIPT) + r"[^<]*</script>\n")


def _insert_html(file: Path, text: str) -> bytes:
    """The page with a text of JSON before the tag that ends the head."""
    page = _SCRIPT.sub("", file.read_bytes().decode("utf-8"))
    start, end, rest = page.partition("</head>")
    if not end:
        raise ValueError("it has no </head>")
    escaped = text.replace("<", r"\u003c")  # or "</script>" in a text would end the block
    return f"{start}{_OPEN_SCRIPT}{escaped}</script>\n{end}{rest}".encode()


def _read_html(file: Path) -> str | None:
    """The text, or None; no more of the page is parsed than the block as it is written here."""
    head, _, _ = read_whole(file).decode("utf-8").partition("</head>")
    _, found, rest = head.partition(_OPEN_SCRIPT)
    text, end, _ = rest.partition("</script>")
    if found and not end:
        raise ValueError("its provenance does not end")
    return text if found else None


class Format(NamedTuple):
    """How files of a kind hold a text; both raise anything if a file is damaged or of another kind.

    Attributes:
        insert: Returns the content of a file with a text in place of one already there, and nothing
            else changed that it says.
        read: Returns the text; None where there is none.
    """

    insert: Callable[[Path, str], bytes]
    read: Callable[[Path], str | None]


FORMATS = {
    ".nc": Format(_insert_netcdf, _read_netcdf),
    ".png": Format(_insert_png, _read_png),
    ".svg": Format(_insert_svg, _read_svg),
    ".json": Format(_insert_json, _read_json),
    ".html": Format(_insert_html, _read_html),
}
"""By the ending of a file's name."""

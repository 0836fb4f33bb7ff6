"""Damage done to a file: anywhere, or where its format says that something means something."""

from __future__ import annotations

import copy
import io
import json
import struct
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import h5py
import numpy as np

WORDS = [
    b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"NaN", b"Infinity", b"-1", b"0", b"1e999",
    b"9" * 400, b"4611686018427387904", b"[" * 3000, b"{" * 3000, b"(" * 300, b'"', b"\\ud800",
    b"<!" * 2000, b"<![foo[ x ]]>", b"<!--", b"&e;", b"]]>", b"<a>" * 500, b"</head>", b"</svg>",
    b'<?xml version="1.0" encoding="foo-999"?>', b'<!DOCTYPE a [<!ENTITY e "e">]>',
    b"'descr': '|O'", b"(4611686018427387904,)", b"F8_E4M3", b"evilmod:f", b"../../x", b"\x1b[2J",
    b"\n", b"\n" * 5000, b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x89HDF", b"\x93NUMPY",
    b"FRHP", b"OHDR", b"TREE",
]  # fmt: skip
"""What means something to one parser or another."""

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 10**9, 2**31, 2**63, 10**30, -(2**70), 0.5, 1e308, -1e-308,
    float("nan"), float("inf"), "", "x", "x" * 10_000, "\ud800", "\0", "\x1b[2J", "inf", "nan",
    "evilmod:f", "os:system", "/etc/passwd", "../x", "quick", "W", "p", [], {}, [[]], [1, "a"],
    [10**9] * 50, ["evilmod:f"], {"a": {"b": []}}, [[[[[[[[1]]]]]]]],
]  # fmt: skip
"""What a value of JSON, or an attribute, may be that it should not."""

SHAPES = [
    (), (0,), (1,), (2**62,), (0, 2**62, 4), (2**40, 2**40), (-1,), (3, 0), (1,) * 33, (1,) * 70,
    (2**31, 1), (1000, 1000),
]  # fmt: skip
TYPES = [
    "|O",
    "<U3",
    "|S2",
    "<f2",
    ">f8",
    "<c16",
    "|V8",
    "<M8[s]",
    "|b1",
    "<i8",
    "<U0",
    "<f16",
    "q",
]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 1e-308, 5e-324, 1e160, -1.0, 2.0**63, 0.5]


def damaged(data: bytes, suffix: str, others: Sequence[bytes], rng: np.random.Generator) -> bytes:
    """A file with one to three things wrong in it.

    Args:
        data: The file.
        suffix: Its ending, which says what format it is of.
        others: Other files, parts of which may get into it.
        rng: Says what is done.
    """
    for _ in range(_pick(rng, [1, 1, 1, 2, 3])):
        by_format = FORMATS.get(suffix)
        if by_format is not None and rng.random() < 0.7:
            try:
                data = by_format(data, rng)
                continue
            except Exception:  # damaged before: what is left is bytes
                pass
        data = _bytes(data, others, rng)
    return data


def _pick(rng: np.random.Generator, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _span(data: bytes, rng: np.random.Generator) -> tuple[int, int]:
    start = int(rng.integers(len(data) + 1))
    return start, min(len(data), start + int(2 ** rng.uniform(0, 12)))


def _bytes(data: bytes, others: Sequence[bytes], rng: np.random.Generator) -> bytes:
    (a, b), word = _span(data, rng), _pick(rng, WORDS)
    kind = int(rng.integers(8))
    if kind == 0 or not data:
        changed = bytearray(data or b"x")
        for place in rng.integers(len(changed), size=1 + int(rng.integers(8))):
            changed[place] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 1:
        return data[:a]
    if kind == 2:
        return data[:a] + data[b:]
    if kind == 3:
        return data[:b] + data[a:b] * int(rng.integers(1, 4)) + data[b:]
    if kind == 4:
        other = _pick(rng, others)
        c, d = _span(other, rng)
        return data[:a] + other[c:d] + data[b:]
    if kind == 5:
        return data[:a] + word + data[a:]
    if kind == 6:
        return data[:a] + word + data[a + len(word) :]
    return data[:a] + rng.integers(256, size=b - a, dtype=np.uint8).tobytes() + data[b:]


def _json(text: bytes, rng: np.random.Generator) -> bytes:
    whole = [json.loads(text)]
    places = every_place(whole)
    holder, key = _pick(rng, places)
    kind = int(rng.integers(5))
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[_pick(rng, ["out", "quiet", "as_json", "file", "checkpoint", "", "\x1b", "x"])] = 1
    elif kind == 2:
        inner, name = _pick(rng, places)
        holder[key] = copy.deepcopy(inner[name])
    else:
        holder[key] = copy.deepcopy(_pick(rng, VALUES))
    return json.dumps(whole[0] if whole else None).encode()


def every_place(value: Any) -> list[tuple[Any, Any]]:
    """Every place in lists and objects where something stands."""
    keys = value if isinstance(value, dict) else range(len(value))
    places = [(value, key) for key in list(keys)]
    for _, key in list(places):
        if isinstance(value[key], dict | list):
            places += every_place(value[key])
    return places


def _between(begin: bytes, end: bytes) -> Callable[[bytes, np.random.Generator], bytes]:
    """Damages the JSON that stands between two texts."""

    def change(data: bytes, rng: np.random.Generator) -> bytes:
        before, _, rest = data.partition(begin)
        text, _, after = rest.partition(end)
        unescaped = text.replace(b"&amp;", b"&").replace(b"&lt;", b"<").replace(b"&gt;", b">")
        return before + begin + _json(unescaped, rng) + end + after

    return change


def _png(data: bytes, rng: np.random.Generator) -> bytes:
    import zlib

    place = data.index(b"tEXtprovenance\0") - 4
    (length,) = struct.unpack_from(">I", data, place)
    body = b"provenance\0" + _json(data[place + 19 : place + 8 + length], rng)
    check = zlib.crc32(b"tEXt" + body)
    chunk = struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", check)
    return data[:place] + chunk + data[place + 12 + length :]


def _array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An array with other numbers, or of another shape or kind."""
    kind = _pick(rng, [0, 0, 0, 1, 2, 3, 4, 4, 5])
    array = np.array(array)
    if kind == 0 and array.size and array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            array.reshape(-1)[int(rng.integers(array.size))] = np.array(_pick(rng, NUMBERS)).astype(
                array.dtype
            )
    elif kind == 1 and array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            array = array.astype(_pick(rng, ["f4", "i8", "u1", "?", "f2", "c16", "U5"]))
    elif kind == 2:
        array = array[..., None] if rng.random() < 0.5 else array[None]
    elif kind == 3 and array.ndim:
        array = array[: int(rng.integers(len(array) + 1))]
    elif kind == 4 and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            array = array * 10.0 ** rng.uniform(-320, 300)
    else:
        array = np.zeros(_pick(rng, [(0,), (1,), (2, 2), (2, 3, 4), ()]))
    return array


def _npz(data: bytes, rng: np.random.Generator) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    name = _pick(rng, sorted(members))
    kind, out = int(rng.integers(9)), io.BytesIO()
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[
            _pick(rng, ["scores.npy", "x", "keys.npy", "\x1b.npy", "initial.npy", "a/b.npy"])
        ] = members[name]
    elif kind in (2, 3):
        shape, descr = _pick(rng, SHAPES), _pick(rng, TYPES)
        header = (
            f"{{'descr': '{descr}', 'fortran_order': {rng.random() < 0.3}, 'shape': {shape}, }}"
        )
        body = header.encode() + b"\n"
        members[name] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body + b"\0" * 64
    else:
        stream = io.BytesIO()
        array = np.load(io.BytesIO(members[name]), allow_pickle=False)
        np.save(stream, _array(array, rng))
        members[name] = stream.getvalue()
    packing = _pick(rng, [0, 0, 0, 0, 8, 8, 8, 8, zipfile.ZIP_BZIP2])
    with zipfile.ZipFile(out, "w", packing) as archive:
        for member, content in members.items():  # under a date of its own, not that of the clock
            archive.writestr(zipfile.ZipInfo(member), content, packing)
    changed = bytearray(out.getvalue())
    if rng.random() < 0.15:  # encryption, packing and sizes, as the directory says them
        field, code = _pick(rng, [(8, "<H"), (10, "<H"), (20, "<I"), (24, "<I"), (42, "<I")])
        value = int(_pick(rng, [0, 1, 12, 99, 2**16 - 1, 2**32 - 1])) % 2 ** (
            16 if "H" in code else 32
        )
        struct.pack_into(code, changed, changed.index(b"PK\x01\x02") + field, value)
    return bytes(changed)


def _safetensors(data: bytes, rng: np.random.Generator) -> bytes:
    (length,) = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    name = _pick(rng, sorted(header))
    entry, kind = header[name], int(rng.integers(10))
    if kind == 0:
        del header[name]
    elif kind == 1:
        header[_pick(rng, ["scores", "x", "\x1b", "keys", "__metadata__"])] = entry
    elif name == "__metadata__" or kind == 2:
        return struct.pack("<Q", length) + _json(data[8 : 8 + length], rng) + body
    elif kind == 3:
        entry["dtype"] = _pick(rng, ["F8_E4M3", "F8_E5M2", "BF16", "F16", "I64", "BOOL", "U8", "X"])
    elif kind == 4:
        entry["shape"] = [abs(size) for size in _pick(rng, SHAPES)]
    elif kind == 5:
        entry["data_offsets"] = [int(rng.integers(2**40)), _pick(rng, [0, 2**63, 2**40])]
    else:
        first, last = entry["data_offsets"]
        changed = np.frombuffer(body[first:last], np.uint8).copy()
        if len(changed) >= 8 and entry["dtype"] == "F64":
            changed.view(np.float64)[int(rng.integers(len(changed) // 8))] = _pick(rng, NUMBERS)
        body = body[:first] + changed.tobytes() + body[last:]
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def _netcdf(data: bytes, rng: np.random.Generator) -> bytes:
    stream = io.BytesIO(data)
    with h5py.File(stream, "r+") as file:
        found: list[Any] = [file]
        file.visititems(lambda _, one: found.append(one))
        holder = _pick(rng, found)
        names, kind = sorted(holder.attrs), int(rng.integers(6))
        datasets = [one for one in found if isinstance(one, h5py.Dataset)]
        one = _pick(rng, datasets)
        if kind == 0 and names:
            del holder.attrs[_pick(rng, names)]
        elif kind in (1, 2):
            texts = [name for name in names if isinstance(holder.attrs[name], str)]
            name = _pick(rng, texts or names or ["units"])
            old, value = holder.attrs.get(name), _pick(rng, VALUES)
            if isinstance(old, str) and old.startswith("{"):
                holder.attrs[name] = _json(old.encode(), rng).decode()
            else:
                plain = value is None or isinstance(value, dict | list) or not _fits(value)
                holder.attrs[name] = json.dumps(value) if plain else value
        elif kind == 3:
            name, large = one.name, _pick(rng, [(2**40,), (10**6, 10**6), (0,), (3,), (2, 2, 2)])
            del file[name]
            file.create_dataset(name, shape=large, dtype="f8", chunks=True)
        elif kind == 4:
            del file[one.name]
        elif one.dtype.kind in "fiu" and one.shape is not None:
            values = _array(one[()], rng)
            if values.shape == one.shape and values.dtype.kind in "fiu":
                with np.errstate(all="ignore"):
                    one[...] = values
    return stream.getvalue()


def _fits(value: Any) -> bool:
    if isinstance(value, str):
        return value.isprintable() and value.isascii()
    return abs(value) < 2**63


FORMATS: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".nc": _netcdf,
    ".json": _json,
    ".html": _between(b'id="provenance">', b"</script>"),
    ".svg": _between(b'<metadata id="provenance">', b"</metadata>"),
    ".png": _png,
}

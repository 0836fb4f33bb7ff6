"""Archives of arrays as anybody may have written them."""

import io
import struct
import zipfile

import numpy as np
import pytest

from attractor import load
from attractor.support.containers import StoredArrays
from attractor.support.errors import AttractorError, FileFormatError, InvalidInputError


def member(descr="'<f8'", shape=(2, 3, 4), numbers=bytes(192), more=""):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, {more}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers


def packed(keys, packing=zipfile.ZIP_STORED, **others):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, content in {"keys": keys, **others}.items():
            archive.writestr(f"{name}.npy", content)
    return bytearray(stream.getvalue())


def directory(content, field, value, code="<H"):
    """The archive with a field of its first member changed, in the directory alone."""
    struct.pack_into(code, content, content.index(b"PK\x01\x02") + field, value)
    return content


TEXT = np.array([0x110000], np.uint32).tobytes()
HALF = np.array([0xD800], np.uint32).tobytes()
HOSTILE = {
    "encrypted": directory(packed(member()), 8, 1),
    "another way of packing": directory(packed(member()), 10, 99),
    "packed by bzip2": packed(member(), zipfile.ZIP_BZIP2),
    "another version of zip": directory(packed(member()), 6, 999),
    "no array": packed(b"some words"),
    "no header": packed(b"\x93NUMPY\x01\x00\xff\xff{"),
    "a header of version 9": packed(b"\x93NUMPY\x09\x00" + bytes(99)),
    "a header that is no dictionary": packed(b"\x93NUMPY\x01\x00\x06\x00[1, 2]" + bytes(99)),
    "a header of brackets": packed(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000 + bytes(9)
    ),
    "a header with an indent": packed(member(more="\n  'x': 1")),
    "more numbers than the shape": packed(member(shape=(2, 3))),
    "fewer numbers than the shape": packed(member(shape=(2**40, 2**40))),
    "a negative length": packed(member(shape=(-2, -3, 4))),
    "an empty array of any length": packed(member(shape=(0, 2**62, 4), numbers=b"")),
    "fields": packed(member(descr="[('a', '<f8')]")),
    "dates": packed(member(descr="'<M8[s]'")),
    "a million texts of nothing": packed(member(descr="'<U0'", shape=(10**12,), numbers=b"")),
    "an invalid code point": packed(member(), optimizer=member("'<U1'", (), TEXT)),
    "half a code point": packed(member(), optimizer=member("'<U1'", (), HALF)),
    "a size that no file can hold": directory(packed(member()), 24, 2**31, "<I"),
    "a directory that lies beyond the end": directory(packed(member()), 42, 2**31, "<I"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_every_way_of_being_damaged_is_one_error_that_names_the_file(what, tmp_path):
    file = tmp_path / "tokens.npz"
    file.write_bytes(HOSTILE[what])
    with pytest.raises(FileFormatError, match=r"tokens\.npz is damaged or is no"):
        load(file)


def test_what_is_damaged_is_named(tmp_path):
    file = tmp_path / "tokens.npz"
    file.write_bytes(packed(member(), optimizer=b"no array"))
    with pytest.raises(FileFormatError, match="optimizer cannot be read"):
        load(file)


def test_a_name_that_steers_the_terminal_is_not_printed(tmp_path):
    file = tmp_path / "tokens.npz"
    file.write_bytes(packed(member(), **{"\x1b[2J": member()}))
    with pytest.raises(FileFormatError) as caught:
        load(file)
    assert str(caught.value).isprintable()


def test_a_name_twice(tmp_path):
    file = tmp_path / "tokens.npz"
    with zipfile.ZipFile(file, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("keys.npy", member())
        archive.writestr("keys.npy", member())
    with pytest.raises(FileFormatError, match="twice"):
        load(file)


def test_what_means_nothing_is_refused_before_it_is_unpacked(tmp_path):
    """40 MB of zeros in 40 kB, and damaged at the end: unpacking it would tell."""
    file = tmp_path / "tokens.npz"
    zeros = member(shape=(5 * 10**6,), numbers=bytes(40 * 10**6))
    content = packed(zeros, zipfile.ZIP_DEFLATED, queries=member())
    content = content.replace(b"keys.npy", b"seek.npy")
    place = content.index(b"queries.npy") - 200
    content[place : place + 50] = bytes(50)
    file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"^keys: .*it has queries, seek"):
        load(file)


@pytest.mark.long
def test_more_text_than_any_vocabulary_has_is_refused_before_it_is_unpacked(tmp_path):
    """Such an array of empty texts is small when packed, and takes gigabytes to look through."""
    file = tmp_path / "tokens.npz"
    np.savez_compressed(file, names=np.zeros(2**26 + 1, "U1"))
    assert file.stat().st_size < 10**6
    with pytest.raises(FileFormatError, match=r"names cannot be read .*bytes of texts"):
        StoredArrays(file)


def test_arrays_of_every_kind_come_back(tmp_path, rng):
    file = tmp_path / "a.npz"
    given = {
        "a": rng.normal(size=(3, 4)),
        "b": np.asfortranarray(rng.normal(size=(3, 4, 2))),
        "c": np.array(["ü", "abc", ""]),
        "d": rng.normal(size=5).astype(">f4"),
        "e": np.zeros((0, 3), np.int8),
        "f": np.array(True),
        "g": np.array(b"bytes"),
    }
    for write in (np.savez, np.savez_compressed):
        write(file, **given)
        stored = StoredArrays(file)
        assert sorted(stored) == sorted(given)
        for name, array in given.items():
            assert stored[name].dtype == array.dtype and stored[name].shape == array.shape
            np.testing.assert_array_equal(stored[name], array)
            assert stored[name].flags.writeable


def test_more_than_fits_into_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    file = tmp_path / "a.npz"
    np.savez_compressed(file, keys=np.zeros((10**7,)))
    monkeypatch.setattr("attractor.support.memory.available_memory", lambda: 7e7)
    with pytest.raises(AttractorError, match=r"^file: .*0\.1 GB"):
        load(file)

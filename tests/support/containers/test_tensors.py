"""Safetensors files as anybody may have written them."""

import json
import struct

import numpy as np
import pytest

from attractor import load
from attractor.support.errors import AttractorError, FileFormatError, InvalidInputError


def write(path, header, body=bytes(192), metadata=None):
    header = header if metadata is None else header | {"__metadata__": metadata}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def entry(dtype="F64", shape=(2, 3, 4), end=192):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, end]}


HOSTILE = {
    "eight bits": {"keys": entry("F8_E4M3", (2, 3, 32))},
    "other eight bits": {"keys": entry("F8_E5M2", (192,))},
    "a kind that nobody knows": {"keys": entry("F7")},
    "an empty array of any length": {"keys": entry(shape=(0, 2**62, 4), end=0)},
    "more than the file": {"keys": entry(shape=(2**31, 2**20), end=2**54)},
    "an array over another": {"keys": entry(), "queries": entry()},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_every_way_of_being_damaged_is_one_error_that_names_the_file(what, tmp_path):
    empty = HOSTILE[what]["keys"]["data_offsets"][1] == 0
    header = HOSTILE[what] | {name: entry("F64", (24,)) for name in ("queries", "labels")[:0]}
    file = write(tmp_path / "a.safetensors", header, b"" if empty else bytes(192))
    with pytest.raises(AttractorError) as caught:
        load(file)
    if isinstance(caught.value, FileFormatError):
        assert "a.safetensors" in str(caught.value)
    else:  # what else is missing is named first, without reading
        assert caught.value.argument == "queries"


def test_numbers_that_numpy_does_not_know_are_named(tmp_path):
    header = {
        "keys": {"dtype": "F8_E4M3", "shape": [2, 3, 4], "data_offsets": [0, 24]},
        "queries": {"dtype": "F64", "shape": [2, 4], "data_offsets": [24, 88]},
        "labels": {"dtype": "F64", "shape": [2], "data_offsets": [88, 104]},
    }
    file = write(tmp_path / "a.safetensors", header, np.ones(13).tobytes())
    with pytest.raises(AttractorError, match=r"keys.*F8_E4M3.*float32"):
        load(file)


def test_a_vocabulary_of_brackets(tmp_path):
    header = {"sentences": {"dtype": "I64", "shape": [1, 2], "data_offsets": [0, 16]}}
    for text in ("[" * 100_000, '["' + "\\ud800" + '"]', "[" * 99 + "1" * 5000, "{}", "[1]"):
        file = write(tmp_path / "a.safetensors", header, bytes(16), {"vocabulary": text})
        with pytest.raises(InvalidInputError, match=r"^vocabulary: .*no list of texts"):
            load(file)


def test_what_means_nothing_is_refused_before_it_is_read(tmp_path):
    header = {
        "keys": {"dtype": "F64", "shape": [1, 2, 1], "data_offsets": [0, 16]},
        "queries": {"dtype": "F64", "shape": [1, 1], "data_offsets": [16, 24]},
        "labels": {"dtype": "F64", "shape": [1], "data_offsets": [24, 32]},
        "else": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [32, 40]},
    }
    file = write(tmp_path / "a.safetensors", header, bytes(40))
    with pytest.raises(InvalidInputError, match=r"^else: .*means nothing here"):
        load(file)

"""JSON of anybody's."""

import pytest

from attractor.support.containers import parse_json, read_json
from attractor.support.errors import FileFormatError

HOSTILE = {
    "no JSON": "{",
    "brackets": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "closed brackets": "[" * 5000 + "]" * 5000,
    "half a code point": '{"a": "\\ud800"}',
    "half of a name": '{"\\uDFFF": 1}',
    "a number of 5,000 digits": "1" * 5000,
    "quotes that never end": '"\\"' * 100_000,
    "no UTF-8": b'"\xff"',
    "half a code point in bytes": b'"\xed\xa0\x80"',
    "a half from elsewhere": '"\udcff"',
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_no_one_writes_is_a_value_error(what):
    with pytest.raises(ValueError):
        parse_json(HOSTILE[what])


def test_more_lists_than_memory_could_take(monkeypatch):
    monkeypatch.setattr("attractor.support.containers.json_text._MOST", 100)
    assert len(parse_json("[" + "[]," * 90 + "1]")) == 91
    with pytest.raises(ValueError, match="more than 100 lists"):
        parse_json("[" + "[]," * 200 + "1]")


def test_what_people_write_is_read():
    assert (
        parse_json('{"a": [1, "\\ud83d\\ude00", "]]]{{{\\"["], "b": NaN}')["a"][1] == "\U0001f600"
    )
    deep = parse_json("[" * 99 + "]" * 99)
    assert isinstance(deep, list)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
def test_a_file_is_named(content, tmp_path):
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a\.json is damaged or is no json file"):
        read_json(file)
    with pytest.raises(FileFormatError, match=r"none\.json"):
        read_json(tmp_path / "none.json")

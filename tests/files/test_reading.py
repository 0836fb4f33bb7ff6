import io
import zipfile

import numpy as np
import pytest

from attractor.files import load
from attractor.support.errors import FileFormatError, InvalidInputError


@pytest.mark.parametrize("lead", [(), (2,)])
def test_reads_what_numpy_and_safetensors_write(make, write, suffix, lead):
    given = make(lead)
    loaded = load(write(given, suffix))
    np.testing.assert_array_equal(loaded.tokens.keys, given["keys"])
    np.testing.assert_array_equal(loaded.tokens.queries[..., 0, :], given["queries"])
    np.testing.assert_array_equal(loaded.tokens.labels[..., 0], given["labels"])
    np.testing.assert_array_equal(loaded.tokens.mask[..., 0, :], given["mask"])
    np.testing.assert_array_equal(loaded.head.weight, given["head"])
    assert loaded.tokens.instances == (lead[0] if lead else None)
    assert loaded.parameterization == "W"
    assert not loaded.from_scores
    rest = (loaded.initial, loaded.selection, loaded.optimizer, loaded.steps)
    assert rest == (None, None, None, None)


def test_head_and_mask_are_optional(make, write):
    loaded = load(write(make() | {"head": None, "mask": None}))
    assert loaded.head is None
    assert loaded.tokens.mask.all()


def test_texts(make, write, suffix):
    loaded = load(write(make(), suffix, parameterization="(v, W)", optimizer="md:p=3"))
    assert (loaded.parameterization, loaded.optimizer) == ("v, W", "md:p=3")


def test_other_metadata_means_nothing(make, write):
    assert load(write(make(), ".safetensors", format="np", steps="many")).steps is None


@pytest.mark.parametrize("array", [np.array([1.0]), np.array(["W"]), np.array(b"W")])
def test_a_text_that_is_none(make, write, array):
    with pytest.raises(InvalidInputError, match=r"^parameterization: .*not a text"):
        load(write(make() | {"parameterization": array}))


def test_a_text_beside_the_metadata(make, write):
    path = write(make() | {"optimizer": np.zeros(3, np.uint8)}, ".safetensors")
    with pytest.raises(InvalidInputError, match=r"^optimizer: .*into the metadata"):
        load(path)


@pytest.fixture
def bomb():
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    return np.array([Bomb()], dtype=object)


@pytest.mark.parametrize("name", ["keys", "parameterization"])
def test_never_unpickles(make, write, bomb, name):
    with pytest.raises(InvalidInputError, match=rf"^{name}: the array holds Python objects"):
        load(write(make() | {name: bomb}))


def test_truncated_archive(make, write):
    path = write(make())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match=r"a\.npz is damaged"):
        load(path)


def test_damaged_member(make, tmp_path):
    stream = io.BytesIO()
    np.savez_compressed(stream, **make())
    data = bytearray(stream.getvalue())
    with zipfile.ZipFile(stream) as archive:
        start = archive.infolist()[0].header_offset
    data[start + 100 : start + 140] = bytes(40)
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="keys"):
        load(path)


def test_not_a_file_of_its_kind(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"something else entirely")
    with pytest.raises(FileFormatError, match=f"a{suffix}"):
        load(path)


def test_archive_of_something_else(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "no arrays here")
    with pytest.raises(InvalidInputError, match=r"^keys: .*notes"):
        load(path)


@pytest.mark.parametrize("name", ["missing.npz", "a.txt"])
def test_refuses_other_names(tmp_path, name):
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(InvalidInputError, match=r"^file:"):
        load(tmp_path / name)

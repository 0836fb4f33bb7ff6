import io
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from attractor.attention import LinearHead
from attractor.errors import FileFormatError, InvalidInputError
from attractor.files import load, save_tokens
from attractor.tokens import Tokens


def arrays(rng, lead=()):
    return {
        "keys": rng.normal(size=(*lead, 3, 4, 5)),
        "queries": rng.normal(size=(*lead, 3, 2)),
        "labels": rng.choice([-1.0, 1.0], size=(*lead, 3)),
        "head": rng.normal(size=(*lead, 5)),
        "mask": np.arange(4) < rng.integers(2, 5, size=(*lead, 3, 1)),
    }


def write(path, given):
    if path.suffix == ".npz":
        np.savez(path, **given)
    else:
        safetensors.numpy.save_file(given, path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_reads_what_numpy_and_safetensors_write(tmp_path, rng, suffix, lead):
    given = arrays(rng, lead)
    loaded = load(write(tmp_path / f"tokens{suffix}", given))
    np.testing.assert_array_equal(loaded.tokens.keys, given["keys"])
    np.testing.assert_array_equal(loaded.tokens.queries[..., 0, :], given["queries"])
    np.testing.assert_array_equal(loaded.tokens.labels[..., 0], given["labels"])
    np.testing.assert_array_equal(loaded.tokens.mask[..., 0, :], given["mask"])
    np.testing.assert_array_equal(loaded.head.weight, given["head"])
    assert loaded.tokens.instances == (lead[0] if lead else None)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_save_and_load_give_the_same_back(tmp_path, rng, suffix):
    given = arrays(rng, (2,))
    tokens = Tokens(
        given["keys"], given["queries"], given["labels"], given["mask"], instance_numbers=[7, 3]
    )
    save_tokens(tmp_path / f"a{suffix}", tokens, LinearHead(given["head"]))
    loaded = load(tmp_path / f"a{suffix}")
    for name in ("keys", "queries", "labels", "mask", "instance_numbers"):
        np.testing.assert_array_equal(getattr(loaded.tokens, name), getattr(tokens, name))
    np.testing.assert_array_equal(loaded.head.weight, given["head"])
    assert [file.name for file in tmp_path.iterdir()] == [f"a{suffix}"]


def test_head_and_mask_are_optional(tmp_path, rng):
    given = arrays(rng)
    del given["head"], given["mask"]
    loaded = load(write(tmp_path / "a.npz", given))
    assert loaded.head is None
    assert loaded.tokens.mask.all()


def bad(name, value):
    return lambda given: given | {name: value(given[name])}


def without(name):
    return lambda given: {key: array for key, array in given.items() if key != name}


def spoiled(array):
    array = array.copy()
    array[0, 1, 2] = np.nan
    return array


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("queries"), r"^queries: a\S+ has no such array; it has head, keys.*\(n, e\)"),
        (lambda given: given | {"querys": given["queries"]}, "^querys: .*known are keys, queries"),
        (bad("keys", spoiled), r"^keys: the entry at \(0, 1, 2\) is nan"),
        (bad("keys", lambda a: a.astype(np.float16)), "^keys: .*float16"),
        (bad("keys", lambda a: a[0]), "^keys: the shape is"),
        (bad("queries", lambda a: a[:2]), "^queries: the shape is"),
        (bad("labels", lambda a: a[:2]), "^labels: the shape is"),
        (bad("head", lambda a: a[:3]), r"^head: its shape is \(3,\).*must be \(5,\)"),
        (bad("mask", lambda a: a.astype(np.float64)), "^mask: its data type is float64"),
        (bad("mask", lambda a: a[:, :2].copy()), "^mask: the shape is"),
    ],
)
def test_names_the_array_that_cannot_be_used(tmp_path, rng, suffix, change, message):
    path = write(tmp_path / f"a{suffix}", change(arrays(rng)))
    with pytest.raises(InvalidInputError, match=message):
        load(path)


def test_never_unpickles(tmp_path, rng):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    given = arrays(rng) | {"keys": np.array([Bomb()], dtype=object)}
    path = write(tmp_path / "a.npz", given)
    with pytest.raises(InvalidInputError, match=r"^keys: the array holds Python objects"):
        load(path)


def test_truncated_archive(tmp_path, rng):
    path = write(tmp_path / "a.npz", arrays(rng))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match=r"a\.npz is damaged"):
        load(path)


def test_damaged_member(tmp_path, rng):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays(rng))
    data = bytearray(stream.getvalue())
    with zipfile.ZipFile(stream) as archive:
        start = archive.infolist()[0].header_offset
    data[start + 100 : start + 140] = bytes(40)
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="keys"):
        load(path)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
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


def test_refuses_to_save_what_the_layout_cannot_hold(tmp_path, rng):
    given = arrays(rng)
    unlabeled = Tokens(given["keys"], given["queries"])
    with pytest.raises(InvalidInputError, match="no labels"):
        save_tokens(tmp_path / "a.npz", unlabeled)
    other_values = Tokens(given["keys"], given["queries"], given["labels"], values=-given["keys"])
    with pytest.raises(InvalidInputError, match="values differ"):
        save_tokens(tmp_path / "a.npz", other_values)
    assert list(tmp_path.iterdir()) == []

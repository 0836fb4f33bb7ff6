import hashlib

import numpy as np
import pytest

from attractor.attention import ConcaveHead, LinearHead
from attractor.files import data_hash
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


@pytest.fixture
def parts(rng):
    return {
        "keys": rng.normal(size=(3, 4, 5)),
        "queries": rng.normal(size=(3, 2)),
        "labels": np.array([1.0, -1.0, 1.0]),
        "mask": np.arange(4) < np.array([[4], [2], [3]]),
        "values": rng.normal(size=(3, 4, 5)),
    }


def test_the_hash_of_one_array_written_out():
    stored = np.arange(6, dtype=">i4").reshape(2, 3)
    expected = (
        b"7 array x"
        + b"6 (2, 3)"
        + b"3 <i4"
        + bytes(byte for number in range(6) for byte in (number, 0, 0, 0))
    )
    assert data_hash(None, x=stored) == hashlib.sha256(expected).hexdigest()


def test_memory_layout_and_order_do_not_matter(rng):
    x, y = rng.normal(size=(3, 4)), np.arange(3)
    other = np.asfortranarray(x).astype(">f8")
    assert data_hash(None, x=x, y=y) == data_hash(None, y=y.astype(">i8"), x=other)


@pytest.mark.parametrize("name", ["keys", "queries", "labels", "mask", "values"])
def test_every_array_of_tokens_counts(parts, name):
    before = data_hash(Tokens(**parts))
    assert data_hash(Tokens(**parts)) == before
    changed = dict(parts)
    changed[name] = changed[name].copy()
    changed[name].flat[0] = not changed[name].flat[0] if name == "mask" else -changed[name].flat[0]
    assert data_hash(Tokens(**changed)) != before
    if name in ("labels", "mask", "values"):
        del changed[name]
        assert data_hash(Tokens(**changed)) != before


def test_instances_keep_their_numbers(parts):
    stacked = {name: np.stack([array, array]) for name, array in parts.items()}
    first = Tokens(**stacked, instance_numbers=[0, 1])
    assert data_hash(first) != data_hash(Tokens(**stacked, instance_numbers=[0, 2]))


def test_the_head_counts(parts):
    tokens, v = Tokens(**parts), np.arange(5.0)
    hashes = {
        data_hash(tokens),
        data_hash(tokens, LinearHead(v)),
        data_hash(tokens, LinearHead(2 * v)),
        data_hash(tokens, ConcaveHead(v, 0.0)),
        data_hash(tokens, weight=v),
    }
    assert len(hashes) == 5


def test_shape_type_and_name_count():
    x = np.zeros(4)
    hashes = {
        data_hash(None),
        data_hash(None, x=x),
        data_hash(None, y=x),
        data_hash(None, x=x.reshape(2, 2)),
        data_hash(None, x=x.astype(np.int64)),
        data_hash(None, x=x[:2], y=x[2:]),
        data_hash(None, x=x[:1], y=x[1:]),
    }
    assert len(hashes) == 7


def test_refuses_objects():
    with pytest.raises(InvalidInputError, match=r"^x: .*object"):
        data_hash(None, x=np.array([{}, None], dtype=object))

import sys

import ml_dtypes
import numpy as np
import pytest

from attractor.files import load
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


def bad(name, value):
    return lambda given: given | {name: value(given[name])}


def add(**arrays):
    return lambda given: given | arrays


def spoiled(array):
    array = array.copy()
    array[0, 1, 2] = np.nan
    return array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (add(queries=None), r"^queries: a\S+ has no such array; it has head, keys.*\(n, e\)"),
        (add(labels=None), r"^labels: a\S+ has no such array"),
        (add(querys=np.ones((3, 2))), "^querys: .*known are keys, queries"),
        (bad("keys", spoiled), r"^keys: the entry at \(0, 1, 2\) is nan"),
        (bad("keys", lambda a: a[0]), "^keys: the shape is"),
        (bad("queries", lambda a: a[:2]), "^queries: the shape is"),
        (bad("labels", lambda a: a[:2]), "^labels: the shape is"),
        (bad("head", lambda a: a[:3]), r"^head: its shape is \(3,\).*must be \(5,\)"),
        (bad("mask", lambda a: a.astype(np.float64)), "^mask: its data type is float64"),
        (bad("mask", lambda a: a[:, :2].copy()), "^mask: the shape is"),
        (add(values=np.ones((3, 4, 2))), r"^head: .*values have 2 numbers.*must be \(2,\)"),
        (add(values=np.ones((3, 3, 2))), "^values: the shape is"),
        (add(initial=np.ones((2, 5))), r"^initial: the shape of W is \(2, 5\)"),
        (add(initial=np.full((5, 2), np.inf)), r"^initial: the entry at \(0, 0\) is inf"),
        (add(initial_K=np.ones((5, 5))), "^initial: the file has initial_K, but 'W' is trained"),
        (add(initial_head=np.ones(5)), "^initial_head: .*place of head, but both"),
        (add(head=None, initial_head=np.ones(5)), "^initial_head: the head stays fixed.*'W'"),
        (add(steps=np.array(2.0)), r"^steps: .*float64"),
        (add(steps=np.array([3])), r"^steps: .*shape \(1,\)"),
        (add(steps=np.array(0)), "^steps: 0 is not a count"),
    ],
)
def test_names_the_array_that_cannot_be_used(make, write, suffix, change, message):
    path = write(change(make()), suffix)
    with pytest.raises(InvalidInputError, match=message):
        load(path)


def test_half_precision_and_rows_of_padding(make, write, suffix, rng):
    keys = rng.normal(size=(3, 4, 5)).astype(np.float16)
    queries = rng.normal(size=(3, 2, 5)).astype(ml_dtypes.bfloat16)
    if suffix == ".npz":  # which knows no bfloat16
        queries = queries.astype(np.float16)
    mask, rows = np.ones((3, 2, 4), bool), np.ones((3, 2), bool)
    mask[1, 1], rows[1, 1] = False, False
    labels = np.ones((3, 2))
    given = make() | dict(keys=keys, queries=queries, mask=mask, rows=rows, labels=labels)
    path = write(given, suffix)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.tokens.keys, keys.astype(float))
    np.testing.assert_array_equal(loaded.tokens.queries, queries.astype(float))
    np.testing.assert_array_equal(loaded.tokens.weights > 0, rows)
    loaded.save(path)
    again = load(path).tokens
    np.testing.assert_array_equal(again.weights, loaded.tokens.weights)
    np.testing.assert_array_equal(again.mask, loaded.tokens.mask)
    with pytest.raises(InvalidInputError, match=r"^mask: the row at \(1, 1\).*give rows"):
        load(write(given | {"rows": None}, suffix))
    with pytest.raises(InvalidInputError, match=r"^rows: its data type is int64"):
        load(write(given | {"rows": rows.astype(int)}, suffix))


def test_values_of_their_own(make, write, suffix, rng):
    values, v = rng.normal(size=(3, 4, 2)), rng.normal(size=2)
    loaded = load(write(make() | {"values": values, "head": v}, suffix))
    np.testing.assert_array_equal(loaded.tokens.values, values)
    np.testing.assert_array_equal(loaded.head.weight, v)
    assert loaded.tokens.key_dimension == 5


def test_a_prompt_needs_no_queries(make, write, suffix):
    given = make() | {"queries": None, "initial": np.arange(5.0), "steps": 7}
    loaded = load(write(given, suffix, parameterization="p"))
    np.testing.assert_array_equal(loaded.tokens.queries, np.ones((3, 1, 1)))
    np.testing.assert_array_equal(loaded.initial, np.arange(5.0))
    assert (loaded.parameterization, loaded.steps) == ("p", 7)


def test_queries_beside_a_prompt_bear_on_nothing_but_w(make, write):
    path = write(make() | {"initial": np.ones(5)}, parameterization="p")
    assert load(path).tokens.query_dimension == 2


def test_starts_of_keys_and_queries(make, write, suffix, rng):
    K, Q = rng.normal(size=(5, 5)), rng.normal(size=(2, 5))
    given = make() | {"initial_K": K, "initial_Q": Q}
    loaded = load(write(given, suffix, parameterization="(K, Q)"))
    assert loaded.parameterization == "KQ"
    np.testing.assert_array_equal(loaded.initial["K"], K)
    np.testing.assert_array_equal(loaded.initial["Q"], Q)
    del given["initial_Q"]
    with pytest.raises(InvalidInputError, match=r"^initial_Q: .*exactly initial_K and initial_Q"):
        load(write(given, suffix, parameterization="KQ"))


def test_zero_factors_can_never_be_left(make, write):
    given = make() | {"initial_K": np.zeros((5, 5)), "initial_Q": np.zeros((2, 5))}
    with pytest.raises(InvalidInputError, match="saddle point"):
        load(write(given, parameterization="KQ"))


@pytest.mark.parametrize("name", ["head", "initial_head"])
def test_where_a_trained_head_starts(make, write, name):
    given = make() | {"head": None, name: np.arange(5.0)}
    loaded = load(write(given, parameterization="v, W"))
    np.testing.assert_array_equal(loaded.head.weight, np.arange(5.0))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"parameterization": "V"}, "^parameterization: there is none named 'V'"),
        ({"optimizer": "adamant"}, "^optimizer: none is called 'adamant'"),
        ({"optimizer": "ngd:speed=1"}, "^optimizer: .*no setting 'speed'"),
        ({"optimizer": "ngd:learning_rate=-1"}, "^learning_rate: "),
    ],
)
def test_texts_that_name_nothing(make, write, suffix, texts, message):
    with pytest.raises(InvalidInputError, match=message):
        load(write(make(), suffix, **texts))


def test_no_module_is_imported_for_an_optimizer(make, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted.py").write_text("def it():\n    raise SystemExit\n")
    for name in ("planted:it", "planted", "ngd:it"):
        with pytest.raises(InvalidInputError, match=r"^optimizer"):
            load(write(make(), optimizer=name))
    assert "planted" not in sys.modules


def test_one_of_several_data_sets(make, write, rng):
    chosen = np.array([[0, 1, 0], [1, 0, 0]])
    start = rng.normal(size=(2, 5, 2))
    loaded = load(write(make((2,)) | {"selection": chosen, "initial": start}))
    second = loaded[1]
    assert isinstance(second.tokens, Tokens)
    np.testing.assert_array_equal(second.tokens.keys, loaded.tokens.keys[1])
    np.testing.assert_array_equal(second.head.weight, loaded.head.weight[1])
    np.testing.assert_array_equal(second.initial, start[1])
    assert second.selection.index.tolist() == chosen[1].tolist()
    assert second.tokens.instance_numbers.tolist() == [1]


def test_each_of_several_data_sets_starts_where_its_own_start_is(make, write, rng):
    start = rng.normal(size=(2, 5, 2))
    cases = load(write(make((2,)) | {"initial": start, "instance_numbers": [7, 3]})).data_sets()
    assert [case.about for case in cases] == ["a.npz, instance 7", "a.npz, instance 3"]
    for case, own in zip(cases, start, strict=True):
        np.testing.assert_array_equal(case.initial, own)


def test_what_several_data_sets_share(make, write, rng):
    v, K, Q = rng.normal(size=5), rng.normal(size=(5, 5)), rng.normal(size=(2, 2, 5))
    given = make((2,)) | {"head": v, "initial_K": K, "initial_Q": Q}
    second = load(write(given, parameterization="KQ"))[1]
    np.testing.assert_array_equal(second.head.weight, v)
    np.testing.assert_array_equal(second.initial["K"], K)
    np.testing.assert_array_equal(second.initial["Q"], Q[1])
    assert second.selection is None

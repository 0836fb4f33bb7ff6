import numpy as np
import pytest

from attractor.attention import ConcaveHead, LinearHead
from attractor.files import load, save_tokens
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

ARRAYS = ("keys", "queries", "values", "labels", "mask", "instance_numbers")


def assert_same(loaded, tokens, head=None, **rest):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(loaded.tokens, name), getattr(tokens, name))
    if head is None:
        assert loaded.head is None
    else:
        np.testing.assert_array_equal(loaded.head.weight, head.weight)
    rest = {"parameterization": "W", "optimizer": None, "steps": None} | rest
    for name in ("parameterization", "optimizer", "steps"):
        assert getattr(loaded, name) == rest[name]
    assert loaded.selection == rest.get("selection")
    start, wanted = loaded.initial, rest.get("initial")
    if isinstance(wanted, dict):
        assert set(start) == set(wanted)
    else:
        start, wanted = {"": start}, {"": wanted}
    for name, array in wanted.items():
        np.testing.assert_array_equal(start[name], array)


@pytest.fixture
def several(make):
    given = make((2,))
    head = LinearHead(given.pop("head"))
    return Tokens(**given, instance_numbers=[7, 3]), head


@pytest.fixture
def one(make):
    given = make()
    head = LinearHead(given.pop("head"))
    return Tokens(**given | {"mask": None}), head


def test_save_and_load_give_the_same_back(tmp_path, several, suffix):
    save_tokens(tmp_path / f"a{suffix}", *several)
    assert_same(load(tmp_path / f"a{suffix}"), *several)
    assert [file.name for file in tmp_path.iterdir()] == [f"a{suffix}"]


def cases(rng):
    """Tokens, head and everything else a file may hold, in every combination that differs."""
    keys, queries = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 2, 2))
    values, v = rng.normal(size=(2, 3, 4, 2)), rng.normal(size=2)
    plain = Tokens(keys[0], queries[0, :, 0], [1, -1, 1], values=values[0])
    several = Tokens(keys, queries, rng.choice([-1.0, 1], size=(2, 3, 2)), values=values)
    prompt = Tokens.prompt_vector(values[0], [1, -1, 1], weights=rng.normal(size=(2, 5)))
    chosen = Selection.from_index(plain, [0, 3, 2])
    mask = rng.random((2, 3, 2, 4)) < 0.5
    mask[..., 0] = True
    scored = Tokens(keys[0], queries[0], np.ones((3, 2)), values=values[0][..., :1])
    v1 = LinearHead([1.0])
    yield plain, LinearHead(v), {"initial": rng.normal(size=(5, 2)), "selection": chosen}
    yield plain, None, {"selection": chosen, "steps": 12}
    yield several, LinearHead(rng.normal(size=(2, 2))), {"selection": Selection(mask, mask[..., 0])}
    yield several, LinearHead(v), {
        "parameterization": "KQ",
        "initial": {"K": rng.normal(size=(2, 5, 5)), "Q": rng.normal(size=(2, 5))},
    }  # fmt: skip
    yield prompt, LinearHead(v), {"parameterization": "p", "initial": rng.normal(size=5)}
    yield prompt, LinearHead(v), {"parameterization": "v, p", "optimizer": "gd", "steps": 3}
    yield scored, v1, {"optimizer": "md:p=3,learning_rate=0.25"}
    yield scored, v1, {"parameterization": "v, W"}
    yield scored, LinearHead([2.0]), {}
    yield Tokens(keys, queries, np.ones((2, 3, 2)), values=values[..., :1]), v1, {}


@pytest.mark.parametrize("number", range(10))
def test_everything_comes_back(tmp_path, rng, suffix, number):
    tokens, head, rest = list(cases(rng))[number]
    save_tokens(tmp_path / f"a{suffix}", tokens, head, **rest)
    assert_same(load(tmp_path / f"a{suffix}"), tokens, head, **rest)


def test_scores_are_written_where_that_is_what_they_are(tmp_path, rng):
    tokens = list(cases(rng))
    names = []
    for number in (6, 7, 8, 4):
        save_tokens(tmp_path / "a.npz", *tokens[number][:2], **tokens[number][2])
        with np.load(tmp_path / "a.npz") as stored:
            names.append(set(stored.files))
    assert "scores" in names[0] and not {"labels", "head", "values"} & names[0]
    assert "initial_head" in names[1] and "scores" not in names[1]
    assert {"head", "values"} <= names[2]
    assert "queries" not in names[3]


def test_the_same_data_give_the_same_bytes(tmp_path, one):
    for name in ("a.npz", "b.npz"):
        save_tokens(tmp_path / name, *one, parameterization="W", optimizer="ngd", steps=3)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ({"parameterization": "V"}, "^parameterization"),
        ({"optimizer": "os:getcwd"}, "^optimizer"),
        ({"steps": 0}, "^steps"),
        ({"steps": 2.5}, "^steps"),
        ({"initial": np.ones(3)}, "^initial: the shape of W"),
        ({"initial": {"K": np.ones((5, 5))}}, r"^initial: it has \['K'\]. Give exactly \['W'\]"),
        ({"initial": np.ones((5, 5)), "parameterization": "KQ"}, "^initial: it is one array"),
        (
            {"selection": Selection(np.ones((3, 2, 4), bool), np.zeros((3, 2), bool))},
            "^selection: its mask",
        ),
    ],
)
def test_refuses_what_load_would(tmp_path, one, rest, message):
    with pytest.raises(InvalidInputError, match=message):
        save_tokens(tmp_path / "a.npz", *one, **rest)
    assert list(tmp_path.iterdir()) == []


def test_refuses_what_the_layout_cannot_hold(tmp_path, one):
    tokens, head = one
    unlabeled = Tokens(tokens.keys, tokens.queries)
    with pytest.raises(InvalidInputError, match="no labels"):
        save_tokens(tmp_path / "a.npz", unlabeled)
    with pytest.raises(InvalidInputError, match="linear heads alone"):
        save_tokens(tmp_path / "a.npz", tokens, ConcaveHead(head.weight, 1.0))
    with pytest.raises(InvalidInputError, match=r"^path"):
        save_tokens(tmp_path / "a.txt", tokens)
    assert list(tmp_path.iterdir()) == []

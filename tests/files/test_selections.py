import numpy as np
import pytest

from attractor.files import load
from attractor.support.errors import InvalidInputError


@pytest.fixture
def full(make):
    """Arrays without a mask."""
    return lambda lead=(): make(lead) | {"mask": None}


@pytest.mark.parametrize("lead", [(), (2,), (1,)])
def test_numbers_of_tokens(full, write, suffix, lead):
    chosen = np.broadcast_to([0, 3, 1], (*lead, 3)).copy()
    for shape in (chosen.shape, (*chosen.shape, 1)):
        loaded = load(write(full(lead) | {"selection": chosen.reshape(shape)}, suffix))
        assert loaded.selection.index.tolist() == chosen.tolist()
        assert loaded.selection.mask.shape == loaded.tokens.mask.shape


def test_numbers_of_tokens_for_several_queries(full, write, rng):
    given = full() | {"queries": rng.normal(size=(3, 2, 2)), "labels": np.ones((3, 2))}
    chosen = np.array([[0, 3], [1, 1], [2, 0]])
    loaded = load(write(given | {"selection": chosen}))
    assert loaded.selection.index.tolist() == chosen.tolist()


def test_a_single_sequence(write):
    given = {"keys": np.eye(3)[None], "queries": np.ones((1, 2)), "labels": [1.0]}
    assert load(write(given | {"selection": np.array([2])})).selection.index.tolist() == [2]


def test_several_tokens_in_a_row(full, write, suffix):
    chosen = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1]], dtype=bool)
    loaded = load(write(full() | {"selection": chosen}, suffix))
    np.testing.assert_array_equal(loaded.selection.mask[:, 0], chosen)
    assert loaded.selection.ties == 0


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (np.array([0, 1]), r"the shape is \(2,\)|its shape is \(2,\).*Give \(3,\)"),
        (np.array([0, 1, 4]), "masked or does not exist"),
        (np.array([0, 1, -1]), "masked or does not exist"),
        (np.array([0.0, 1, 2]), "integers"),
        (np.array(1), "its shape is"),
        (np.zeros((3, 4), dtype=bool), "chooses no token"),
        (np.ones((3, 3), dtype=bool), r"its shape is \(3, 3\)"),
    ],
)
def test_selections_that_do_not_fit(full, write, chosen, message):
    with pytest.raises(InvalidInputError, match=f"^selection: .*({message})"):
        load(write(full() | {"selection": chosen}))


@pytest.mark.parametrize("chosen", [np.array([0, 3, 0]), np.ones((3, 4), dtype=bool)])
def test_padding_cannot_be_chosen(full, write, chosen):
    given = full() | {"mask": np.arange(4) < np.array([[4], [2], [3]])}
    with pytest.raises(InvalidInputError, match=r"^selection: .*masked"):
        load(write(given | {"selection": chosen}))

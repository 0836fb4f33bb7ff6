import numpy as np
import pytest

from attractor.corpora.linear import EmbeddedContexts
from attractor.support.errors import InvalidInputError

EMBEDDINGS = np.arange(6.0).reshape(3, 2)
PROBABILITIES = np.array([[0.5, 0.5, 0, 0], [0, 0.25, 0.75, 0], [0, 0, 0, 1]])


def test_entropy_and_support_are_those_of_the_distributions():
    contexts = EmbeddedContexts(EMBEDDINGS, PROBABILITIES, [1, 2, 1])
    np.testing.assert_array_equal(contexts.support, PROBABILITIES > 0)
    np.testing.assert_allclose(contexts.frequencies, [0.25, 0.5, 0.25])
    own = np.log(2) / 4 - (0.25 * np.log(0.25) + 0.75 * np.log(0.75)) / 2
    np.testing.assert_allclose(contexts.entropy, own, rtol=1e-15)
    assert (contexts.classes, contexts.dimension, contexts.count) == (4, 2, 3)
    assert contexts.instances is None


def test_one_hot_contexts_have_no_entropy():
    contexts = EmbeddedContexts.one_hot(EMBEDDINGS, [3, 0, 3], 4)
    np.testing.assert_array_equal(contexts.probabilities.argmax(-1), [3, 0, 3])
    assert contexts.entropy == 0 and not np.signbit(contexts.entropy)
    np.testing.assert_allclose(contexts.frequencies, 1 / 3)


def test_instances_keep_their_numbers():
    stacked = EmbeddedContexts(np.stack([EMBEDDINGS] * 3), np.stack([PROBABILITIES] * 3))
    assert len(stacked) == 3 and len(list(stacked)) == 3
    np.testing.assert_array_equal(stacked[1:].instance_numbers, [1, 2])
    assert stacked[2].instances is None and stacked[2].batched().instance_numbers == [2]
    assert stacked.entropy.shape == (3,)
    with pytest.raises(InvalidInputError, match="no axis of instances"):
        stacked[0][0]


def test_nothing_can_be_changed_afterwards():
    probabilities = PROBABILITIES.copy()
    contexts = EmbeddedContexts(EMBEDDINGS, probabilities)
    probabilities[0] = 0
    assert contexts.probabilities[0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        contexts.probabilities[0, 0] = 1


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("embeddings", (np.ones(3), PROBABILITIES)),
        ("embeddings", (np.full((3, 2), np.nan), PROBABILITIES)),
        ("probabilities", (EMBEDDINGS, PROBABILITIES[:2])),
        ("probabilities", (EMBEDDINGS, np.ones((3, 1)))),
        ("probabilities", (EMBEDDINGS, PROBABILITIES * 0.9)),
        ("probabilities", (EMBEDDINGS, PROBABILITIES + np.array([1, -1, 0, 0]))),
        ("frequencies", (EMBEDDINGS, PROBABILITIES, [1, 1])),
        ("frequencies", (EMBEDDINGS, PROBABILITIES, [1, 0, 1])),
    ],
)
def test_bad_input_is_named(argument, given):
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        EmbeddedContexts(*given)


@pytest.mark.parametrize(
    ("argument", "labels", "classes"),
    [("labels", [0, 1, 4], 4), ("labels", [0.0, 1.0, 2.0], 4), ("classes", [0, 0, 0], 1)],
)
def test_bad_labels_are_named(argument, labels, classes):
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        EmbeddedContexts.one_hot(EMBEDDINGS, labels, classes)

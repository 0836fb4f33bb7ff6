import numpy as np
import pytest

from attractor.corpora.linear import random_contexts
from attractor.support.errors import InvalidInputError


def test_random_contexts_are_as_described():
    contexts = random_contexts(20)
    assert contexts.embeddings.shape == (20, 50, 60)
    assert (contexts.support.sum(-1) == 6).all() and contexts.classes == 10
    assert np.mean(contexts.entropy) == pytest.approx(1.45, abs=0.02)
    assert contexts.embeddings.std() == pytest.approx(1, abs=0.01)
    assert contexts.support.mean((0, 1)) == pytest.approx(0.6, abs=0.06)


def test_instances_do_not_depend_on_how_many_there_are():
    many, few = random_contexts(3, seed=4), random_contexts(2, seed=4)
    np.testing.assert_array_equal(many.embeddings[:2], few.embeddings)
    np.testing.assert_array_equal(many.probabilities[:2], few.probabilities)
    assert (many.embeddings[0] != many.embeddings[1]).all()
    assert (random_contexts(seed=5).embeddings != random_contexts(seed=4).embeddings).all()


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("instances", {"instances": 0}),
        ("contexts", {"contexts": 0}),
        ("dimension", {"dimension": 1.5}),
        ("classes", {"classes": 1}),
        ("support", {"support": 11}),
        ("seed", {"seed": -1}),
    ],
)
def test_bad_arguments_are_named(argument, change):
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        random_contexts(**change)

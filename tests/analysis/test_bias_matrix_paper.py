"""The bias matrix at paper size: 20 data sets of (6, 8, 10), 6,000 steps."""

import numpy as np
import pytest

from attractor.datasets import unit_tokens
from attractor.maps.bias import bias_matrix, standard_methods

pytestmark = pytest.mark.slow

OWN = {
    "normalized GD": "frobenius",
    "(K, Q) normalized GD": "nuclear",
    "spectral descent": "spectral",
    "sign descent": "l_inf",
    "greedy coordinate": "l_1",
    "mirror descent, p = 1.75": "l_1.75",
    "mirror descent, p = 2": "frobenius",
    "mirror descent, p = 3": "l_3",
}


@pytest.fixture(scope="module")
def matrix():
    return bias_matrix(*unit_tokens(6, 8, 10, seeds=20), methods=standard_methods("paper", 6000))


@pytest.mark.parametrize("method", OWN)
def test_its_own_norm_is_the_one_it_maximizes(matrix, method):
    own = OWN[method]
    assert matrix.own_norm(method) == own
    assert matrix.ratio(method, own).median >= 0.98
    assert matrix.enough(method) >= 17
    assert matrix.highest(method)[own] >= 19
    assert matrix.answer(method).norm == own


def test_every_solution_is_certified_and_no_ratio_exceeds_one(matrix):
    assert float(matrix.data["gap"].max()) < 1e-9
    assert float(matrix.data["margin_ratio"].max()) <= 1 + 1e-9


def test_weight_decay_stops_the_growth_of_keys_and_queries(matrix):
    norms = np.linalg.norm(matrix.data["W"].sel(optimizer="(K, Q) with weight decay"), axis=(1, 2))
    assert 110 < np.median(norms) < 150
    free = np.linalg.norm(matrix.data["W"].sel(optimizer="(K, Q) normalized GD"), axis=(1, 2))
    assert np.median(free) > 10_000
    assert 0.9 < matrix.ratio("(K, Q) with weight decay", "nuclear").median < 0.96


def test_matched_starts_agree_on_every_selection():
    tokens, head = unit_tokens(6, 8, 10, seeds=20)
    found = bias_matrix(tokens, head, methods=standard_methods("quick", 6000), matched=True)
    assert found.same_selection >= 19
    for method in set(OWN) - {"mirror descent, p = 2"}:
        assert found.answer(method).norm == OWN[method]

"""That descent reaches the best tokens from any start holds for one sequence, not for several."""

import numpy as np
import pytest

import attractor as at
from attractor.papers import Outcome, examine, get_claim
from attractor.papers.max_margin.claims.descent import random_equal_scores, small_random_sequences
from attractor.papers.max_margin.data import trapped_sequence

pytestmark = pytest.mark.usefixtures("optimized")  # they train for long

CLAIM = get_claim("max-margin/global-convergence")
STARTS = [(0, 0), (1, 0), (2, 0), (3, 0), (5, 0), (0, -5)]
BEST, TRAPPED = np.array([1, 1]) / 2**0.5, np.array([1, 0])


@pytest.mark.parametrize(
    ("optimizer", "close"),
    [(at.normalized_gradient_descent(0.1), 1e-4), (at.gradient_descent(1.0), 1e-4)],
    ids=("normalized", "constant"),
)
def test_every_start_of_the_counterexample_goes_where_it_was_found_to(optimizer, close):
    case = trapped_sequence()
    starts = np.array(STARTS, dtype=float)[None]
    run = at.train(
        case.tokens, case.head, optimizer, steps=30_000, seeds=6, initial=starts,
        parameterization="p", record=[3000],
    )  # fmt: skip
    way = (run.W() - run.W(3000))[0, :, :, 0]  # of constant steps the start fades like 1 / log t
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    np.testing.assert_allclose(way[:4] @ BEST, 1, atol=close)
    np.testing.assert_allclose(way[4:] @ TRAPPED, 1, atol=close)


def test_the_claim_fails_on_the_papers_kind_of_data_and_holds_beside():
    outcomes = [examine(CLAIM, case).outcome for case in CLAIM.data(0)]
    assert outcomes == [Outcome.HOLDS, Outcome.HOLDS, Outcome.FAILS, Outcome.FAILS]


def test_the_longest_token_of_small_random_data_has_length_3():
    for case in small_random_sequences(0, 5):
        assert np.linalg.norm(case.tokens.keys, axis=-1).max() == pytest.approx(3)
        assert np.linalg.norm(case.initial) == pytest.approx(8)


def test_one_in_some_small_random_data_sets_is_a_counterexample():
    found = [examine(CLAIM, case).outcome for case in small_random_sequences(0, count=20)]
    assert 1 <= found.count(Outcome.FAILS) <= 10
    assert found.count(Outcome.HOLDS) >= 10


def test_trapped_runs_take_the_direction_of_their_tie_classes():
    case = random_equal_scores(14)
    assert examine(CLAIM, case).outcome is Outcome.FAILS
    found = examine(get_claim("max-margin/selected-direction"), case)
    assert found.outcome is Outcome.HOLDS, found.reason
    assert found.measured.details["selections"] > 1
    assert found.measured.details["at other than locally optimal selections"] == 0

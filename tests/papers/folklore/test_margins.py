"""What a run misses of the largest margin, and when that settles where it ends."""

import numpy as np
import pytest

from attractor.geometry import Frobenius, Spectral
from attractor.papers import Outcome, all_claims
from attractor.papers.check import check_claim
from attractor.papers.folklore.margins import missing_margin
from attractor.papers.transformers_as_svms.random_data import enclosed_token, random_unit_tokens

NORM = Spectral()
CASE = random_unit_tokens(500)
SOLUTION = CASE.solution(NORM).W
AWAY = np.linalg.norm(SOLUTION) * np.eye(4)


def matrices(before, now):
    """The solution, with so much of another matrix added after a third of the steps and at last."""
    return np.stack([SOLUTION + before * AWAY, SOLUTION + now * AWAY])


def test_of_a_solution_nothing_is_missing():
    measured = missing_margin(7 * matrices(0, 0), CASE, NORM)
    assert abs(measured.value) < 1e-6 and measured.checked == 1


def test_it_is_one_less_the_margin_over_the_largest():
    W = matrices(0.1, 0.1)[1]
    problem = CASE.solution(Frobenius()).problem
    ratio = (
        problem.margins(W).min() / np.linalg.norm(W) * np.linalg.norm(CASE.solution(Frobenius()).W)
    )
    measured = missing_margin(np.stack([W, W]), CASE, Frobenius())
    assert measured.value == pytest.approx(1 - ratio) and 0.01 < measured.value < 1


@pytest.mark.parametrize(
    ("before", "now", "on_its_way"), [(0.1, 0.1, False), (0.1, 0.05, True), (0.05, 0.1, False)]
)
def test_a_run_that_comes_nearer_may_end_anywhere_below(before, now, on_its_way):
    measured = missing_margin(matrices(before, now), CASE, NORM)
    assert measured.interval == ((0.0, measured.value) if on_its_way else None)


def test_it_says_nothing_of_tokens_that_no_matrix_keeps():
    case = enclosed_token("W")
    measured = missing_margin(np.zeros((2, 2, 2)), case, Frobenius())
    assert measured.checked == 0 and "infeasible" in measured.details["margin problem"]


OUTCOMES = {
    "muon-margin": Outcome.FAILS,
    "adam-margin": Outcome.NOT_SETTLED,
    "key-query-margin": Outcome.FAILS,
    "weight-decay-margin": Outcome.FAILS,
}
"""What comes of beliefs on their data; all others hold."""


@pytest.mark.slow
@pytest.mark.parametrize("name", all_claims("folklore"))
def test_outcomes_are_those_that_the_documentation_says(name):
    found = check_claim(all_claims("folklore")[name], find_smallest=False)
    assert found.outcome is OUTCOMES.get(name.partition("/")[2], Outcome.HOLDS)

"""What a run misses of the largest margin, and when that settles where it ends."""

import numpy as np
import pytest

from attractor.geometry import Frobenius, Spectral
from attractor.papers import Case, Outcome, all_claims, check_claim, examine
from attractor.papers.data import random_unit_tokens
from attractor.tokens import Tokens
from attractor_further.folklore.margins import missing_margin

NORM = Spectral()
CASE = random_unit_tokens(500)
SOLUTION = CASE.solution(NORM).W
AWAY = np.linalg.norm(SOLUTION) * np.eye(4)


STEPS = np.geomspace(1 / 27, 1, 45)


def matrices(extra):
    """The solution, with so much of another matrix added at every record."""
    return SOLUTION + np.broadcast_to(extra, 45)[:, None, None] * AWAY


def test_of_a_solution_nothing_is_missing():
    measured = missing_margin(7 * matrices(0), CASE, NORM)
    assert abs(measured.value) < 1e-6 and measured.checked == 1


def test_it_is_one_less_the_margin_over_the_largest():
    W = matrices(0.1)
    problem = CASE.solution(Frobenius()).problem
    ratio = (
        problem.margins(W[-1]).min()
        / np.linalg.norm(W[-1])
        * np.linalg.norm(CASE.solution(Frobenius()).W)
    )
    measured = missing_margin(W, CASE, Frobenius())
    assert measured.value == pytest.approx(1 - ratio) and 0.01 < measured.value < 1


@pytest.mark.parametrize(
    "extra",
    [
        0.05 * STEPS**-0.5,
        0.5 / np.log(10_000 * STEPS),  # less than a tenth of what is missing in each tripling
        0.5 / np.log(300_000 * STEPS),
        0.1 + 0.03 * (1 - STEPS),  # the faster the longer it runs
    ],
)
def test_a_run_that_still_comes_nearer_may_end_anywhere_below(extra):
    measured = missing_margin(matrices(extra), CASE, NORM)
    assert not measured.settles(measured.value / 10)
    assert measured.settles(1.1 * measured.value)


@pytest.mark.parametrize(
    "extra",
    [
        0.1,
        0.1 + 1e-4 / STEPS,  # to a place of its own
        0.1 + 0.001 * (-1.0) ** np.arange(45),
        0.1 + 0.03 * np.log(STEPS) / np.log(27),  # away
    ],
)
def test_a_run_at_rest_is_settled(extra):
    measured = missing_margin(matrices(extra), CASE, NORM)
    assert measured.settles(0.5 * measured.value)


@pytest.mark.parametrize("size", [10.0**-k for k in range(9)])
def test_a_run_whose_scores_are_small_has_hardly_begun_as_long_as_it_grows(size):
    growing = size * STEPS[:, None, None] * matrices(0.3) / np.abs(matrices(0.3)).max()
    early = missing_margin(growing, CASE, NORM)
    assert not early.settles(early.value / 2)
    for run in (growing * 1e4 / size, size * matrices(0.3)):  # saturated, and at rest
        ended = missing_margin(run, CASE, NORM)
        assert ended.value == pytest.approx(early.value)
        assert ended.settles(ended.value / 2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-4, 1e-2, 1.0])
def test_keys_of_any_size_fail_nowhere_where_the_belief_holds(size):
    claim = all_claims("folklore")["folklore/weight-decay-margin"]
    case = claim.holding()
    tokens = Tokens(
        size * case.tokens.keys, case.tokens.queries, case.tokens.labels, values=case.tokens.values
    )
    found = examine(claim, case.replace(tokens=tokens))
    assert found.outcome in (Outcome.HOLDS, Outcome.NOT_SETTLED), found.reason


def test_it_says_nothing_of_tokens_that_no_matrix_keeps():
    keys = [[[0.5, 0], [1, 0], [0, 0]]]
    case = Case.from_scores(keys, [[1.0, 0, 0]], queries=[[1.0, 0]], parameterization="W")
    measured = missing_margin(np.zeros((3, 2, 2)), case, Frobenius())
    assert measured.checked == 0 and "infeasible" in measured.details["margin problem"]


OUTCOMES = {
    "muon-margin": Outcome.FAILS,
    "adam-margin": Outcome.NOT_SETTLED,
    "key-query-margin": Outcome.FAILS,
    "weight-decay-low-rank": Outcome.FAILS,
    "weight-decay-margin": Outcome.FAILS,
}
"""What comes of beliefs on their data; all others hold."""


@pytest.mark.slow
@pytest.mark.parametrize("name", all_claims("folklore"))
def test_outcomes_are_those_that_the_documentation_says(name):
    found = check_claim(all_claims("folklore")[name], find_smallest=False)
    assert found.outcome is OUTCOMES.get(name.partition("/")[2], Outcome.HOLDS)

"""Claims on in-context regression on all of their data, those that fail among them."""

import numpy as np
import pytest

from attractor.papers import Outcome, RegressionCase, all_claims, examine
from attractor.papers.check import check_claim
from attractor.papers.large_prompt.claims.heavy_tails import balanced_risk
from attractor.papers.large_prompt.regression_data import independent
from attractor.prompt.regression import leading_order, trained_limit

CLAIMS = {name: claim for name, claim in all_claims().items() if claim.takes is RegressionCase}
FAILING = ("large-prompt/parameter-limit", "large-prompt/initial-scale")
"""Statements that are wrong as they are read or printed, with data that show it."""


def test_parameters_trained_to_the_end_do_not_tend_to_those_of_infinite_prompts():
    claim = CLAIMS["large-prompt/parameter-limit"]
    found = examine(claim, independent(5, (64, 1024)))
    assert found.outcome is Outcome.FAILS
    assert found.measured.details["b at 64 tokens"] == pytest.approx(1.816, abs=6e-4)
    assert found.measured.details["b at 1024 tokens"] == pytest.approx(2.707, abs=6e-4)
    assert found.measured.details["target"] == pytest.approx(5**0.25, rel=1e-9)


def test_the_leading_order_is_not_visible_where_tails_are_heavy():
    case = independent(5)
    exact = float(balanced_risk(case, np.array([1024.0]))[0])
    assert exact == pytest.approx(0.0933, abs=6e-5)
    head = trained_limit(case.task).blocks
    assert leading_order(case.task, head).risk(1024) == pytest.approx(7.9, abs=0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize("name", CLAIMS)
def test_outcome_on_all_data(name):
    found = check_claim(CLAIMS[name], find_smallest=False)
    assert found.outcome is (Outcome.FAILS if name in FAILING else Outcome.HOLDS)
    held = [finding for finding in found.findings if finding.outcome is Outcome.HOLDS]
    assert held

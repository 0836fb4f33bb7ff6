"""Claims on in-context regression on all of their data, those that fail among them."""

import numpy as np
import pytest

from attractor.papers import Outcome, RegressionCase, all_claims, examine
from attractor.papers.large_prompt.claims.heavy_tails import balanced_risk
from attractor.papers.large_prompt.regression import independent, unequal
from attractor.papers.ledger.check import check_claim
from attractor.prompts.regression import RegressionTask, leading_order, trained_limit

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


def test_a_trained_risk_with_a_floor_or_another_power_is_no_limit_of_zero():
    claim = CLAIMS["large-prompt/trained-risk-limit"]
    stopped = independent(5, time=3.0)  # its risk on infinite prompts is 2e-8
    assert claim.measured(independent(5), 0).value < 1e-3
    assert claim.measured(stopped, 0).value > 1
    right = claim.object(independent(5))
    for wrong in (
        lambda length: right(length) + 1e-6,
        lambda length: right(1_000_000) * (length / 1e6) ** -0.99,
    ):
        assert examine(claim.about(wrong), independent(5)).outcome is Outcome.FAILS


def test_the_risk_falls_at_the_rate_of_the_gradient_it_is_that_of():
    claim = CLAIMS["large-prompt/risk-falls"]
    case = independent(5, (64,))
    right = claim.object(case)
    assert examine(claim, case).measured.value < 1e-5
    slower = claim.about(lambda *args: 0.999 * right(*args))
    longer = claim.about(lambda case, length, flow: right(case, 65, flow))
    for wrong in (slower, longer):
        assert examine(wrong, case).outcome is Outcome.FAILS


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (RegressionCase(RegressionTask(2 * np.eye(4))), "3 inputs at most: there are 4 inputs"),
        (RegressionCase(RegressionTask(4 * np.eye(1))), "horizon at most 1.25: the horizon is 2"),
    ],
)
def test_the_exponent_of_heavy_tails_is_judged_where_it_can_be_seen(case, reason):
    found = examine(CLAIMS["large-prompt/heavy-tail-exponent"], case)
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET and found.reason == reason


@pytest.mark.slow
@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize("name", CLAIMS)
def test_outcome_on_all_data(name):
    found = check_claim(CLAIMS[name], find_smallest=False)
    assert found.outcome is (Outcome.FAILS if name in FAILING else Outcome.HOLDS)
    held = [finding for finding in found.findings if finding.outcome is Outcome.HOLDS]
    assert held


CONDITIONS = [1, 1e4, 1e8, 1e10, 1e12, 1e13]


def of_condition(condition, unit=1.0, dimension=5):
    """Inputs along turned axes, whose variances fall evenly in orders of magnitude."""
    axes = np.linalg.qr(np.random.default_rng(7).standard_normal((dimension, dimension)))[0]
    covariance = unit * axes @ np.diag(np.geomspace(1, 1 / condition, dimension)) @ axes.T
    return (covariance + covariance.T) / 2


def with_queries(covariance, queries=None):
    return RegressionCase(RegressionTask(covariance, queries), (256,), 0.2)


@pytest.mark.parametrize("unit", [1e-6, 0.5, 1e6])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", ["trained-horizon", "trained-prediction"])
def test_what_holds_for_every_covariance_does_for_badly_conditioned_ones(name, condition, unit):
    claim = CLAIMS[f"large-prompt/{name}"]
    case = with_queries(of_condition(condition, unit))
    assert examine(claim, case).outcome is Outcome.HOLDS
    assert examine(claim.exchanged(), case).outcome is Outcome.FAILS


@pytest.mark.parametrize("least", [1.0, 1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("factor", [2.0, 0.0, 1.01])
def test_queries_are_unlike_inputs_in_a_direction_of_any_variance(least, factor):
    axes = np.linalg.qr(np.random.default_rng(8).standard_normal((3, 3)))[0]
    inputs, queries = (
        axes @ np.diag([1.0, 0.5, last]) @ axes.T for last in (least, factor * least)
    )
    case = with_queries((inputs + inputs.T) / 2, (queries + queries.T) / 2)
    found = examine(CLAIMS["large-prompt/trained-horizon"], case)
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET
    assert found.reason.startswith("queries like inputs")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_queries_that_differ_from_inputs_by_rounding_are_like_them(condition):
    inputs = of_condition(condition)
    values, axes = np.linalg.eigh(inputs)
    queries = axes @ np.diag(values) @ axes.T
    case = with_queries(inputs, (queries + queries.T) / 2)
    assert examine(CLAIMS["large-prompt/trained-horizon"], case).outcome is Outcome.HOLDS


TRAINED_TO_A_LIMIT = ("trained-limit", "unbalanced-limit")


def with_queries_along_the_last(variance, name):
    case = unequal().replace(task=RegressionTask(np.diag([1.0, 2.0]), np.diag([1.0, variance])))
    return case.replace(initial_value=1.0) if name == "unbalanced-limit" else case


@pytest.mark.parametrize("variance", [1.0, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("name", TRAINED_TO_A_LIMIT)
def test_training_ends_at_its_limit_however_rare_queries_are_in_a_direction(name, variance):
    case = with_queries_along_the_last(variance, name)
    assert examine(CLAIMS[f"large-prompt/{name}"], case).outcome is Outcome.HOLDS


@pytest.mark.parametrize("variance", [0.0, 1e-17])
@pytest.mark.parametrize("name", TRAINED_TO_A_LIMIT)
def test_training_ends_elsewhere_where_there_are_none(name, variance):
    claim, case = CLAIMS[f"large-prompt/{name}"], with_queries_along_the_last(variance, name)
    found = examine(claim, case)
    assert found.outcome is Outcome.ASSUMPTION_NOT_MET
    assert found.reason.startswith("queries in all directions")
    if variance == 0:
        assert claim.measured(case, 0).value > 0.1


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_training_is_followed_until_it_rests_in_every_unit(unit):
    task = RegressionTask(unit * np.diag([1.0, 2.0]))
    case = RegressionCase(task, (20,), 0.1 / unit)
    assert examine(CLAIMS["large-prompt/trained-limit"], case).outcome is Outcome.HOLDS

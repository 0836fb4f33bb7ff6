"""What the statements on long prompts say of single heads."""

import numpy as np
import pytest

from attractor.files import load
from attractor.papers import Outcome, examine, get_claim
from attractor.papers.large_prompt.claims.concentration import exponent_at_unit_scale, from_two
from attractor.papers.large_prompt.data import (
    fixed_query,
    gaussian_case,
    line,
    random_head,
    without_scores,
)
from attractor.papers.large_prompt.finite_prompts import LENGTHS, average_errors
from attractor.papers.ledger.check import check_claim
from attractor.prompts.finite_length import averaged_output_error, finite_length_error


def found(name, case, seed=0):
    return examine(get_claim(f"large-prompt/{name}"), case, seed)


def test_affine_attention_and_random_signs():
    case = fixed_query((2.0,))
    assert found("affine-attention", case).measured.value < 1e-13
    control = examine(get_claim("large-prompt/affine-attention").exchanged(), case)
    assert control.measured.value == pytest.approx(2 - np.tanh(2), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_affine_attention_for_random_heads_of_every_rank(seed):
    for dimension, rank in ((1, 1), (2, 2), (3, 2), (3, 3)):
        case = random_head(seed + 1, dimension, rank=rank)
        assert found("affine-attention", case, seed).measured.value < 1e-11
        assert found("gaussian-outputs", case, seed).measured.value < 1e-9


def test_scores_too_wide_for_the_quadrature_are_left_out():
    wide = found("affine-attention", random_head(0, 2, horizon=100.0))
    assert wide.outcome in (Outcome.VACUOUS, Outcome.HOLDS) and wide.measured.checked < 8


@pytest.mark.parametrize("what", ["output", "value-gradient", "score-gradient"])
def test_the_printed_bounds_fail_at_one_token(tmp_path, what):
    claim = get_claim(f"large-prompt/{what}-concentration")
    result = check_claim(claim, [random_head(0, 2, rank=1, centered=True, horizon=0.3)])
    assert result.outcome is Outcome.FAILS
    smallest = result.counterexample
    assert smallest.case.U.tolist() == [[0.0]] and smallest.case.V.tolist() == [[1.0]]
    details = smallest.measured.details
    assert (details["at length"], details["bound"]) == (1.0, 0.0)
    assert details["error"] == pytest.approx(1.0, rel=1e-6)
    smallest.case.save(tmp_path / "head.npz")
    (again,) = load(tmp_path / "head.npz").data_sets()
    assert examine(claim, again).measured == smallest.measured
    repaired = examine(get_claim(f"{claim.name}-repaired"), without_scores())
    assert repaired.outcome is Outcome.HOLDS


@pytest.mark.parametrize("what", ["output", "value-gradient", "score-gradient"])
def test_standard_normal_tokens_attain_the_bound_from_two_tokens_on(what):
    assert exponent_at_unit_scale(line(1.0)) == pytest.approx((np.sqrt(5) - 1) / 2)
    worst = found(f"{what}-concentration", from_two(line(1.0))).measured
    assert worst.details["at length"] == 2 and worst.value == pytest.approx(1, abs=1e-9)
    assert 0.02 < worst.details["error over bound at 1e12 tokens"] < 0.1


@pytest.mark.parametrize("name", ["output-concentration", "score-gradient-concentration"])
def test_a_quarter_more_in_the_exponent_breaks_the_bound(name):
    claim = get_claim(f"large-prompt/{name}")
    for deviation in (0.95, 1.0, 1.1):
        case = from_two(line(deviation))
        more = claim.about(exponent_at_unit_scale(case) + 0.25)
        assert examine(claim, case).outcome is Outcome.HOLDS
        assert examine(more, case).outcome is Outcome.FAILS


def test_with_many_equal_directions_the_constants_still_serve():
    """Powers of log L beyond the bound's own raise its constant there, and no false alarm."""
    eight = gaussian_case(0.72 * np.eye(8), np.eye(8), np.eye(8), about="eight directions")
    assert found("output-concentration-repaired", eight).outcome is Outcome.HOLDS


def test_averages_over_queries_on_a_line():
    errors = average_errors(line(1.0), 0)
    exact = averaged_output_error(1.0, LENGTHS)
    assert errors.output == pytest.approx(exact, rel=2e-5)
    assert errors.value_gradient == pytest.approx(exact, rel=2e-5)
    # a prompt of one token has covariance zero, and z^2 has mean one
    assert errors.score_gradient[0] == pytest.approx(1.0, rel=1e-6)


def test_averages_over_queries_in_a_plane_are_over_drawn_ones():
    case = random_head(0, 2, horizon=0.4, centered=True)
    queries = case.queries.sample(48, seed=5)
    each = finite_length_error(case.token_moments[1], case.U, case.V, queries, 100.0)
    drawn = average_errors(case, 5)
    for one, average in zip(each, drawn, strict=True):
        assert average[LENGTHS == 100] == pytest.approx(one.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("deviation", "slope", "limit"), [(0.85, 0.757, 0.7783), (1.0, 0.602, 0.6180)]
)
def test_exponents_of_averaged_errors(deviation, slope, limit):
    measured = found("averaged-exponent", line(deviation)).measured
    between = measured.details["between 1e11 and 1e12 tokens"]
    assert between == pytest.approx(slope, abs=1e-3)
    assert measured.details["exponent"] == pytest.approx(limit, abs=1e-3)


@pytest.mark.parametrize("horizon", [0.71, 0.75, 1.25])
def test_the_averaged_exponent_is_told_from_its_near_misses(horizon):
    claim = get_claim("large-prompt/averaged-exponent")
    case = line(horizon)
    assert examine(claim, case).outcome is Outcome.HOLDS
    for other in (1 / (1 + horizon**2), claim.object(case) - 0.02):
        assert examine(claim.about(other), case).outcome is Outcome.FAILS


def test_beyond_a_horizon_the_averaged_exponent_is_not_judged():
    wide = found("averaged-exponent", line(2.0))
    assert wide.outcome is Outcome.ASSUMPTION_NOT_MET
    assert wide.reason == "horizon at most 1.25: the horizon is 2"


@pytest.mark.parametrize(("horizon", "limit"), [(0.2, 1.0879), (0.3, 1.2255), (0.5, 2.1213)])
def test_limits_of_averaged_errors(horizon, limit):
    measured = found("averaged-limit", line(horizon)).measured
    assert measured.details["L times the error"] / horizon**2 == pytest.approx(limit, abs=1e-4)
    assert measured.value < 1e-5


def test_many_directions_of_scores_hide_the_exponent_at_every_length_in_use():
    first, second = averaged_output_error(np.ones(8), [1e11, 1e12])
    assert np.log10(first / second) == pytest.approx(0.485, abs=1e-3)
    many = gaussian_case(*[np.eye(8)] * 3, about="eight directions")
    told = found("averaged-exponent", many)
    assert told.outcome is Outcome.ASSUMPTION_NOT_MET
    assert told.reason == "scores along few directions: the variance is 8 times the largest"


def test_a_narrow_horizon_has_no_exponent_of_its_own():
    narrow = found("averaged-exponent", line(0.5))
    assert narrow.outcome is Outcome.ASSUMPTION_NOT_MET
    assert narrow.reason == "horizon above 0.707: the horizon is 0.5"


@pytest.mark.parametrize("name", ["output-rate", "score-gradient-rate", "output-bias"])
def test_sharp_rates_for_random_heads(name):
    for seed in (3, 4):
        assert found(name, random_head(seed, 3, horizon=0.6), seed).measured.value < 1e-4


def test_queries_with_wide_scores_are_left_out_of_sharp_rates():
    wide = fixed_query((3.0,))
    for name in ("output-rate", "output-bias", "exact-errors"):
        assert found(name, wide).outcome is Outcome.VACUOUS


def test_a_head_without_scores_or_values_is_no_counterexample():
    for case in (without_scores(), line(1.0).replace(head=without_scores().head)):
        for name in ("output-rate", "score-gradient-rate", "output-bias", "affine-attention"):
            assert found(name, case).outcome is not Outcome.FAILS

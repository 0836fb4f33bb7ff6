"""What attention that leaves the best tokens costs a head, and the excess loss of such heads."""

import equinox as eqx
import mpmath
import numpy as np
import pytest

import attractor as at
from attractor.attention.mixing import log_excess_of_mixtures, measure_mixing
from attractor.attention.rows import attention_rows
from attractor.support.precision import double_precision

excess_of = eqx.filter_jit(log_excess_of_mixtures)  # as in paths: one program, not seventy


def tokens_of(values, labels=None):
    values = np.asarray(values, dtype=float)
    n, T = values.shape[:2]
    labels = np.ones(n) if labels is None else labels
    return at.Tokens(np.zeros((n, T, 2)), np.ones((n, 1)), labels, values=values)


def mixing_of(tokens, head):
    scores = at.token_scores(tokens, head)
    return measure_mixing(tokens, head, scores >= scores.max(-1, keepdims=True) - 1e-12)


def test_a_linear_head_costs_the_gaps_of_its_scores():
    found = mixing_of(tokens_of([[[1.0], [1.0], [0.5], [-2.0]]]), at.LinearHead([1.0]))
    assert found.holds
    assert (found.least, found.largest) == pytest.approx((0.5, 3.0))
    assert found.uneven < 1e-15


def test_a_concave_head_costs_what_its_slope_says():
    """1.3 u - 0.3 u^2 from 1 towards 0: the quotient is 0.7 + 0.3 q."""
    found = mixing_of(tokens_of([[[1.0], [0.0]]]), at.ConcaveHead([1.3], 0.3))
    assert (found.least, found.largest) == pytest.approx((0.7, 1.0))


@pytest.mark.parametrize(
    ("head", "values", "holds"),
    [
        (at.ConcaveHead([2.0], 1.5), [[[1.0], [0.0]]], False),  # highest between the tokens
        (at.ReLUHead([[1.0, -1.0]]), [[[1.0], [-1.0], [0.0]]], False),  # the best ones cancel
        (at.ReLUHead(np.eye(2)), [[[2.0, 0.0], [0.0, 2.0], [-1.0, 0.5]]], True),
        (at.ReLUHead(-np.eye(2), [-1.0, -1.0]), [[[0.0, 1.0], [-1.0, 3.0], [-3.0, 0.0]]], True),
    ],
)
def test_it_holds_where_no_mixture_is_better_and_all_best_ones_are_equal(head, values, holds):
    assert mixing_of(tokens_of(values), head).holds is holds


def test_a_row_of_best_tokens_alone_costs_nothing():
    found = mixing_of(tokens_of([[[1.0], [1.0]]]), at.LinearHead([1.0]))
    assert found.holds and found.least == np.inf


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("loss", ["logistic", "exponential", "linear"])
def test_the_excess_is_that_of_many_digits(size, loss):
    random = np.random.default_rng(3)
    values = np.where(np.arange(5) < 2, 1.0, random.random((2, 5)))[..., None]
    tokens, head = tokens_of(values, labels=np.ones(2)), at.ConcaveHead([1.3], 0.3)
    scores = size * random.standard_normal((2, 1, 5))
    best = values[:, None, :, 0] == 1
    with double_precision():
        found = excess_of(at.attention.get_loss(loss), scores, best, head, attention_rows(tokens))
    with mpmath.workdps(120):
        losses = {
            "logistic": lambda u: mpmath.log(1 + mpmath.exp(-u)),
            "exponential": lambda u: mpmath.exp(-u),
            "linear": lambda u: -u,
        }
        v, penalty = mpmath.mpf(1.3), mpmath.mpf(0.3)

        def head_of(u):
            return v * u - penalty * u**2

        total = mpmath.mpf(0)
        for row, each in zip(scores[:, 0], values[..., 0], strict=True):
            weights = [mpmath.exp(mpmath.mpf(float(score))) for score in row]
            mean = mpmath.fdot(weights, [mpmath.mpf(float(u)) for u in each]) / sum(weights)
            total += losses[loss](head_of(mean)) - losses[loss](head_of(mpmath.mpf(1)))
        wanted = float(mpmath.log(total / 2))
    assert float(found) == pytest.approx(wanted, rel=1e-13, abs=1e-13)


def test_the_excess_is_unknown_where_a_mixture_is_better():
    tokens = tokens_of([[[1.0], [0.0]]])
    with double_precision():
        found = excess_of(
            at.attention.get_loss("logistic"),
            np.zeros((1, 1, 2)),
            np.array([[[True, False]]]),
            at.ConcaveHead([2.0], 1.5),
            attention_rows(tokens),
        )
    assert np.isnan(found)

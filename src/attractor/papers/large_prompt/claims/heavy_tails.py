"""The decay of the trained head's risk with the length, which heavy tails of scores slow down."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Comparison, Exponent, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.data import gaussian_case
from attractor.papers.large_prompt.finite_prompts import (
    EXTRAPOLATED,
    extrapolated_exponent,
    long_prompt_errors,
)
from attractor.papers.large_prompt.regression import (
    FEW_INPUTS,
    MODERATE,
    NARROW,
    NOISELESS,
    SAME_QUERIES,
    WIDE,
    correlated,
    horizon,
    independent,
    random_task,
    rounding,
    unequal,
)
from attractor.papers.ledger.claim import once
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.finite_length import averaged_error_of_output, error_exponent
from attractor.prompts.regression import leading_order, trained_limit

_TOLERANCE = 1e-9
_LIMIT = np.array([1e12, 1e36])
"""Lengths at which limits are measured: the last leaves nothing but the limit."""


def balanced_risk(
    case: RegressionCase, lengths: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """The exact risk of the balanced trained head on finite prompts, labels without noise.

    The prediction is ``w^T`` times the output of attention over the inputs alone, and ``b S A`` is
    the identity, so that ``2 R = b^2 t E |m_hat - S A x_q|^2`` with ``t`` the variance of a weight.

    Args:
        case: A task without noise in the labels of the prompt.
        lengths: Numbers of tokens.
    """
    task = case.task
    head = trained_limit(task).blocks
    error = averaged_error_of_output(
        task.covariance, head.key_query, np.eye(task.dimension), task.query_covariance, lengths
    )
    return float(head.value_label) ** 2 * task.weight_variance * error / 2


def _off_horizon(case: RegressionCase, seed: int, power: Exponent) -> Measurement:
    b = float(trained_limit(case.task).blocks.value_label)
    details = {"horizon": horizon(case), "b": b}
    off = abs(horizon(case) / b**power - 1)
    return Measurement(off / (_TOLERANCE + rounding(case.task.covariance)), details=details)


TRAINED_HORIZON = REGRESSION_CLAIMS.claim(
    "trained-horizon",
    "at the trained head the horizon is 1/b: scores are widest where b is small",
    statement="limit of training in in-context linear regression, its scores",
    assuming=(SAME_QUERIES,),
    contrast=Comparison(
        f"relative distance of the horizon from 1/b, over {_TOLERANCE:g} and d eps times the "
        "condition number of the covariance",
        _off_horizon,
        lambda *_: Exponent(-1),
        "the same from 1/b^2",
        lambda *_: Exponent(-2),
        bound=1.0,
        reason="queries are like inputs to as much, and the inverse of the covariance is known to "
        "the latter",
    ),
    data=lambda seed: [correlated(), independent(5), unequal(), random_task(seed)],
    note="for independent inputs H^2 = d^(-1/2): below four inputs it exceeds 1/2, and the risk at "
    "the balanced head falls more slowly than 1/L",
)


@once
def _exponent(case: RegressionCase) -> float:
    """The exponent of the balanced head's risk, which is a multiple of the error of its output."""
    task, A = case.task, trained_limit(case.task).blocks.key_query
    laws = (task.covariance, task.query_covariance)
    head = gaussian_case(A, np.eye(task.dimension), *laws, about=case.about)
    return extrapolated_exponent(long_prompt_errors(head, EXTRAPOLATED))


def _off_exponent(case: RegressionCase, seed: int, named: Exponent) -> Measurement:
    found = _exponent(case)
    return Measurement(abs(found - named), details={"exponent": found, "horizon": horizon(case)})


HEAVY_TAIL_EXPONENT = REGRESSION_CLAIMS.claim(
    "heavy-tail-exponent",
    "with few inputs the risk of the balanced head falls like L^-alpha, alpha below one",
    statement="training on long prompts reaches the optimal risk, the rate at the balanced head",
    assuming=(NOISELESS, SAME_QUERIES, WIDE, FEW_INPUTS, MODERATE),
    contrast=Comparison(
        "distance from (sqrt(1 + 4/H^2) - 1)/2 of the exponent that risks at 1e12, 1e24 and 1e36 "
        "tokens have beside a power of log L",
        _off_exponent,
        lambda case, seed: Exponent(error_exponent(horizon(case))),
        "its distance from 1/(1 + H^2)",
        lambda case, seed: Exponent(1 / (1 + horizon(case) ** 2)),
        bound=0.01,
        reason="what further terms leave is at most 0.0065 for up to three inputs and horizons "
        "from 0.71 to 1.25, where 1/(1 + H^2) is at least 0.053 away",
    ),
    data=lambda seed: [independent(1), independent(2), independent(3)],
    note="for one input H = 1 and the exponent is .618; derived by a heuristic that exact "
    "integrals confirm, and no theorem of the paper, which gives no rate",
)


def _coefficient(case: RegressionCase, seed: int) -> float:
    return float(leading_order(case.task, trained_limit(case.task).blocks).coefficient)


def _typical_coefficient(case: RegressionCase, seed: int) -> float:
    """The same with every query of the score variance of the average one."""
    task, head = case.task, trained_limit(case.task).blocks
    a = head.key_query
    variance = np.trace(a.T @ task.covariance @ a @ task.query_covariance)
    label = task.weight_variance * float(np.trace(task.covariance))
    along = task.weight_variance * float(np.trace(task.query_covariance))
    return float(np.exp(variance) * (float(head.value_label) ** 2 * label + along) / 2)


def _off_leading_order(case: RegressionCase, seed: int, coefficient: float) -> Measurement:
    before, found = case.once("limit", lambda: balanced_risk(case, _LIMIT)) * _LIMIT
    details = {"L times the risk": float(found), "coefficient": coefficient}
    details |= {"L times the risk at 1e12 tokens": float(before)}
    return Measurement(float(abs(found / coefficient - 1)), details=details)


LEADING_ORDER = REGRESSION_CLAIMS.claim(
    "leading-order",
    "at the balanced head L times the risk tends to E exp(s^2)(...) over Gaussian queries",
    statement="training on long prompts reaches the optimal risk, its leading order in 1/L",
    assuming=(NOISELESS, SAME_QUERIES, NARROW),
    contrast=Comparison(
        "relative distance of L times the risk at 1e36 tokens from its limit",
        _off_leading_order,
        _coefficient,
        "the same with all queries of the average score variance",
        _typical_coefficient,
        bound=1e-4,
        reason="what is left falls like a power of L that is small near a horizon of 0.707: for "
        "nine independent inputs, H = 0.577, it is 0.1 at 1e12 tokens and 5e-7 at 1e36",
    ),
    data=lambda seed: [correlated(), independent(16), independent(9), random_task(seed)],
    note="for five independent inputs the coefficient is 8.1e3, so that 1/L is not visible at any "
    "length in use; correlated ones of correlation 1/2 have 88",
)

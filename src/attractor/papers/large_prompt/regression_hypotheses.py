"""The hypotheses of statements on in-context regression, as checks that run on a task."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from attractor.papers.large_prompt.regression_data import correlated, independent, noisy, unequal
from attractor.papers.ledger.claim import Assumption, Check
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.regression import initial_scale_bounds, limit_horizon, trained_limit
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.task import RegressionTask

_ROUNDING = 1e-9
_FEWEST_TOKENS = 16
_LONGEST_TIME = 5.0
_NARROW = 0.6
_MODERATE = 1.25
_FEW_INPUTS = 3
MOST_INPUTS = 64
"""Independent inputs up to which exact flows on finite prompts are followed here."""
_MOST_DEPENDENT = 20


def _independent(case: RegressionCase) -> Check:
    task = case.task
    identity = np.eye(task.dimension)
    off = max(
        float(np.abs(matrix - identity).max())
        for matrix in (task.covariance, task.query_covariance)
    )
    standard = off <= _ROUNDING and abs(task.weight_variance - 1) <= _ROUNDING
    found = f"{task.dimension} inputs, covariances off the identity by {off:.3g}, "
    met = standard and task.dimension <= MOST_INPUTS
    return Check(met, found + f"weights of variance {task.weight_variance:.3g}")


INDEPENDENT = Assumption[RegressionCase](
    "independent inputs",
    f"Inputs, query and weights are independent standard normal, at most {MOST_INPUTS} of each, so "
    "that risks of finite prompts are known exactly.",
    _independent,
    correlated,
)


def _followed(case: RegressionCase) -> Check:
    s, queries = case.task.covariance, case.task.query_covariance
    off = float(np.abs(s @ queries - queries @ s).max())
    common = off <= _ROUNDING * float(np.abs(s).max() * np.abs(queries).max())
    few = case.task.dimension <= _MOST_DEPENDENT or _independent(case).met
    found = f"{case.task.dimension} inputs, the covariances {'' if common else 'do not '}commute"
    return Check(common and few, found)


FOLLOWED = Assumption[RegressionCase](
    "flows that can be followed",
    "Inputs of the query have the axes of the prompt's, and there are at most "
    f"{_MOST_DEPENDENT}, or {MOST_INPUTS} independent ones, so that exact flows take a minute.",
    _followed,
    lambda: correlated(_MOST_DEPENDENT + 1),
)


NOISELESS = Assumption[RegressionCase](
    "labels without noise",
    "Labels of the prompt have no noise.",
    lambda case: Check(
        case.task.label_noise == 0, f"noise of variance {case.task.label_noise:.3g}"
    ),
    lambda: noisy(independent()),
)
SOME_NOISE = NOISELESS.negated("some noise", "Labels of the prompt have noise.", independent)


def rounding(covariance: Float[np.ndarray, "d d"]) -> float:
    """What rounding leaves of a covariance, relative to it in the direction of least variance.

    The entries are known to an eps of the largest, which is the condition number times as much of
    the least variance; and so is an inverse.
    """
    variances = np.linalg.eigvalsh(covariance)
    return len(variances) * float(np.finfo(np.float64).eps * variances[-1] / variances[0])


def _same_queries(case: RegressionCase) -> Check:
    s = case.task.covariance
    variances, axes = np.linalg.eigh(s)
    standard = axes / np.sqrt(variances)  # inputs have variance one along these, each counts alike
    difference = standard.T @ (case.task.query_covariance - s) @ standard
    off = float(np.linalg.norm(difference, ord=2))
    return Check(
        off <= _ROUNDING + rounding(s), f"variances differ by a factor of up to 1 +- {off:.3g}"
    )


SAME_QUERIES = Assumption[RegressionCase](
    "queries like inputs",
    "Inputs of the query have the covariance of the prompt's.",
    _same_queries,
    lambda: independent().replace(task=replace(independent().task, query_covariance=2 * np.eye(5))),
)


def _queried(case: RegressionCase) -> Check:
    variances = np.linalg.eigvalsh(case.task.query_covariance)
    least = len(variances) * np.finfo(np.float64).eps * variances[-1]
    found = f"their variances are from {max(variances[0], 0):.3g} to {variances[-1]:.3g}"
    return Check(bool(variances[0] > least), found)


def unqueried(case: RegressionCase) -> RegressionCase:
    """The case with no query along its last input."""
    queries = case.task.query_covariance.copy()
    queries[-1] = queries[:, -1] = 0
    return case.replace(
        task=replace(case.task, query_covariance=queries),
        about=f"{case.about}, no query along the last one",
    )


QUERIES_EVERYWHERE = Assumption[RegressionCase](
    "queries in all directions",
    "Inputs of the query vary in all directions: what a head does in others is never trained.",
    _queried,
    lambda: unqueried(unequal()),
)


def _balanced(case: RegressionCase) -> Check:
    found = f"||A|| = {case.initial_scale:.4g} and b = {case.value:.4g}"
    return Check(abs(case.value - case.initial_scale) <= _ROUNDING * case.value, found)


BALANCED = Assumption[RegressionCase](
    "balanced start",
    "Training starts with ||A|| = b, and c = v = 0.",
    _balanced,
    lambda: independent().replace(initial_value=1.0),
)


UNBALANCED = BALANCED.negated(
    "start without balance", "Training starts with ||A|| other than b, and c = v = 0.", independent
)


def _small_start(case: RegressionCase) -> Check:
    bound = initial_scale_bounds(case.task.covariance).large_prompt
    found = f"the scale is {case.initial_scale:.4g}, the bound {bound:.4g}"
    return Check(case.initial_scale < bound, found)


SMALL_START = Assumption[RegressionCase](
    "scale below the bound",
    "The scale of the start is below sqrt(2) / (d^(1/4) ||Sigma||).",
    _small_start,
    lambda: independent().replace(initial_scale=1.5),
)


def _lengths(case: RegressionCase) -> str:
    return f"prompts of {', '.join(f'{length:,}' for length in case.lengths)} tokens"


SEVERAL_LENGTHS = Assumption[RegressionCase](
    "several lengths",
    "Prompts of two lengths or more are given.",
    lambda case: Check(len(case.lengths) > 1, _lengths(case)),
    lambda: independent(5, (256,)),
)
SOME_TOKENS = Assumption[RegressionCase](
    "prompts of some length",
    f"No prompt is shorter than {_FEWEST_TOKENS} tokens.",
    lambda case: Check(min(case.lengths) >= _FEWEST_TOKENS, _lengths(case)),
    lambda: independent(5, (4, 256)),
)
SHORT_PROMPTS = Assumption[RegressionCase](
    "short prompts",
    f"Prompts have 3 to {_FEWEST_TOKENS} tokens.",
    lambda case: Check(
        3 <= min(case.lengths) and max(case.lengths) <= _FEWEST_TOKENS, _lengths(case)
    ),
    lambda: independent(5, (256,)),
)


def _time(case: RegressionCase) -> str:
    return "until it converges" if math.isinf(case.time) else f"for a time of {case.time:.4g}"


FIXED_TIME = Assumption[RegressionCase](
    "a fixed time",
    f"Gradient flow runs for a given time, {_LONGEST_TIME:g} at most.",
    lambda case: Check(case.time <= _LONGEST_TIME, _time(case)),
    independent,
)
LONG_TRAINING = Assumption[RegressionCase](
    "training until it rests",
    "Gradient flow runs until it converges.",
    lambda case: Check(math.isinf(case.time), _time(case)),
    lambda: independent(time=2.0),
)


def horizon(case: RegressionCase) -> float:
    """The horizon of the balanced trained head."""
    return trained_limit(case.task).horizon


def _scaled(dimension: int, variance: float) -> RegressionCase:
    task = RegressionTask(variance * np.eye(dimension))
    return RegressionCase(task, about=f"{dimension} inputs of variance {variance:g}")


WIDE = Assumption[RegressionCase](
    "horizon above 0.707",
    "At the balanced trained head the average of exp(s^2) over queries is infinite.",
    lambda case: Check(horizon(case) ** 2 > 0.5, f"the horizon is {horizon(case):.4g}"),
    lambda: independent(9),
)
FEW_INPUTS = Assumption[RegressionCase](
    f"{_FEW_INPUTS} inputs at most",
    "At the balanced trained head scores vary alike along all inputs, and with many of them powers "
    "of log L hide the exponent at every length in use.",
    lambda case: Check(
        case.task.dimension <= _FEW_INPUTS, f"there are {case.task.dimension} inputs"
    ),
    lambda: _scaled(4, 2.0),
)
MODERATE = Assumption[RegressionCase](
    f"horizon at most {_MODERATE:g}",
    "At the balanced trained head scores are so narrow that exponents which are near to one "
    "another for wide ones can be told apart.",
    lambda case: Check(horizon(case) <= _MODERATE, f"the horizon is {horizon(case):.4g}"),
    lambda: _scaled(1, 4.0),
)
NARROW = Assumption[RegressionCase](
    f"horizon at most {_NARROW:g}",
    "At the balanced trained head the average of exp(s^2) over queries is finite by a margin.",
    lambda case: Check(horizon(case) <= _NARROW, f"the horizon is {horizon(case):.4g}"),
    lambda: independent(1),
)


def perfect_horizon(case: RegressionCase) -> float:
    """The horizon of ``A = Sigma^-1 / b`` with ``b`` as at the start."""
    zeros = np.zeros(case.task.dimension)
    inverse = np.linalg.inv(case.task.covariance)
    head = Blocks(inverse / case.value, zeros, zeros, np.array(case.value))
    return float(limit_horizon(case.task, head))


NARROW_START = Assumption[RegressionCase](
    f"value with a horizon of at most {_NARROW:g}",
    "With b as at the start, the A that predicts exactly from infinite prompts has narrow scores.",
    lambda case: Check(
        perfect_horizon(case) <= _NARROW,
        f"b is {case.value:.4g} and the horizon {perfect_horizon(case):.4g}",
    ),
    lambda: independent(4),
)

REGRESSION_HYPOTHESES = (
    INDEPENDENT,
    FOLLOWED,
    NOISELESS,
    SAME_QUERIES,
    QUERIES_EVERYWHERE,
    BALANCED,
    SMALL_START,
    SEVERAL_LENGTHS,
    SOME_TOKENS,
    SHORT_PROMPTS,
    FIXED_TIME,
    LONG_TRAINING,
    WIDE,
    FEW_INPUTS,
    MODERATE,
    NARROW,
    NARROW_START,
)
"""The hypotheses reported of a user's regression task."""

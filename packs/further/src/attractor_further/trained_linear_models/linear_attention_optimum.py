"""Linear attention on finite prompts: its best head, its training, and its error on new tasks."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from attractor import InvalidInputError
from attractor.papers import Claims, Comparison, Measurement, once
from attractor.papers.data import correlated, random_task, unequal
from attractor.papers.given import BALANCED, LONG_TRAINING, NOISELESS, QUERIES_EVERYWHERE
from attractor.papers.measures import balanced_head, off_balanced, time_to_rest
from attractor.prompts import RegressionCase
from attractor.prompts.regression import (
    Blocks,
    linear_attention_flow,
    linear_attention_optimum,
    linear_attention_risk,
)
from attractor_further.trained_linear_models import PRECONDITIONED_DESCENT, TRAINED_LINEAR_MODELS

_PRECONDITIONED_DESCENT = Claims(PRECONDITIONED_DESCENT, RegressionCase, TRAINED_LINEAR_MODELS.name)
_TRAINED_LINEAR_MODELS = Claims(TRAINED_LINEAR_MODELS, RegressionCase)

_OTHERS = 200
_SHORT = 20
_PROMPTS = 4000


def _moment(case: RegressionCase) -> Float[np.ndarray, "d d"]:
    """``Gam``."""
    length, s = case.lengths[0], case.task.covariance
    return (1 + 1 / length) * s + np.trace(s) / length * np.eye(len(s))


def _best_product(case: RegressionCase, seed: int) -> Float[np.ndarray, "d d"]:
    """``Gam^-1``, from its formula."""
    return np.linalg.inv(_moment(case))


def _best_product_of_infinite(case: RegressionCase, seed: int) -> Float[np.ndarray, "d d"]:
    return np.linalg.inv(case.task.covariance)


def _smallest_excess(
    case: RegressionCase, seed: int, product: Float[np.ndarray, "d d"]
) -> Measurement:
    """The smallest risk of other heads over that of one with ``b A = product``, less 1.

    Others differ in all blocks, by a thousandth of it up to as much as it.
    """
    length = case.lengths[0]
    best = balanced_head(product)
    claimed = float(linear_attention_risk(case.task, best, length))
    draws = np.random.default_rng([seed, 11])
    smallest = math.inf
    for size in np.geomspace(1e-3, 1, _OTHERS) * float(best.value_label):
        moved = (size * draws.standard_normal(np.shape(block)) for block in best)
        other = Blocks(*(block + move for block, move in zip(best, moved, strict=True)))
        smallest = min(smallest, float(linear_attention_risk(case.task, other, length)))
    scaled = Blocks(0.99 * best.key_query, *best[1:])  # toward the mean of the prompt
    smallest = min(smallest, float(linear_attention_risk(case.task, scaled, length)))
    return Measurement(smallest / claimed - 1, _OTHERS + 1, {"risk": claimed, "length": length})


LINEAR_OPTIMUM = _PRECONDITIONED_DESCENT.claim(
    "linear-attention-optimum",
    "the best head of linear attention has b A = ((1 + 1/L) Sigma + (tr Sigma)/L)^-1",
    statement="global minimizer of one layer of linear attention",
    assuming=(NOISELESS,),
    contrast=Comparison(
        "smallest risk among other heads over that of the minimizer, less 1",
        _smallest_excess,
        _best_product,
        "the same over the minimizer of infinite prompts, b A = Sigma^-1",
        _best_product_of_infinite,
        bound=0.0,
        reason="a minimizer has no larger risk than any other head",
        sense=">=",
    ),
    data=lambda seed: [
        unequal().replace(lengths=(_SHORT,)),
        correlated().replace(lengths=(10,)),
        random_task(seed).replace(lengths=(50,)),
    ],
)


@once
def _trained(case: RegressionCase) -> Blocks:
    """The head of linear attention trained until it converges."""
    times = np.array([0, time_to_rest(case, _moment(case))])
    return linear_attention_flow(case.task, case.start, times, case.lengths[0]).last


def _off(case: RegressionCase, seed: int, product: Float[np.ndarray, "d d"]) -> Measurement:
    """Relative distance of the trained head from the balanced one with ``b A = product``."""
    return off_balanced(_trained(case), product, {"length": case.lengths[0]})


LINEAR_TRAINED_LIMIT = _TRAINED_LINEAR_MODELS.claim(
    "linear-attention-limit",
    "b of linear attention tends to tr(Gam^-2)^(1/4) and A to Gam^-1 / b",
    statement="convergence of gradient flow of linear attention",
    assuming=(NOISELESS, BALANCED, LONG_TRAINING, QUERIES_EVERYWHERE),
    contrast=Comparison(
        "relative distance of the trained A, c, v and b from the limit",
        _off,
        _best_product,
        "the same from the limit with Sigma in place of Gam, that of infinite prompts",
        _best_product_of_infinite,
        bound=1e-9,
        reason="the flow is followed to 1e-13 until it converges",
    ),
    data=lambda seed: [
        unequal().replace(lengths=(_SHORT,)),
        random_task(seed, 2).replace(lengths=(50,)),
    ],
    note="Gam = (1 + 1/L) Sigma + (tr Sigma)/L; the query is no token of the prompt here",
)


def error_on_new_tasks(
    s: Float[np.ndarray, "d d"],
    label_moment: Float[np.ndarray, "d"],
    product_covariance: Float[np.ndarray, "d d"],
    *,
    best_linear_error: float,
    trained_length: float,
    length: float,
) -> float:
    """Mean squared error of trained linear attention on prompts of one law of ``(x, y)``.

    The head was trained without noise on prompts of ``trained_length`` tokens with this covariance
    of inputs; the law of labels is any. With ``Gam = (1 + 1/N) S + tr(S)/N I`` and
    ``a = S^{-1} E[y x]`` it is ``best_linear_error + (1/L) tr(Cov(y x) Gam^-2 S) +
    (1/N^2) |(S + tr(S) I) a|^2`` in the metric ``Gam^-2 S``.

    Args:
        s: Covariance ``S`` of the inputs, whose mean is zero, of prompt and query.
        label_moment: ``E[y x]``.
        product_covariance: Covariance of the vector ``y x``.
        best_linear_error: Mean squared error of the best linear predictor.
        trained_length: Length ``N`` of the prompts trained on; may be ``math.inf``.
        length: Length ``L`` of the prompts predicted from.

    Raises:
        InvalidInputError: If the covariance is singular.

    Source:
        Zhang, Frei, Bartlett, "Trained Transformers Learn Linear Models In-Context" (JMLR 25,
        2024), the error of the trained layer on a new task.
    """
    if not np.linalg.eigvalsh(s)[0] > len(s) * np.finfo(np.float64).eps * np.abs(s).max():
        raise InvalidInputError(
            "covariance", "it is not positive definite", "Leave out inputs that others determine"
        )
    spread = s + np.trace(s) * np.eye(len(s))
    inverse = np.linalg.inv(s + spread / trained_length)
    a = np.linalg.solve(s, label_moment)
    bias = inverse @ spread @ a / trained_length
    sampling = np.trace(product_covariance @ inverse @ s @ inverse) / length
    return float(best_linear_error + sampling + bias @ s @ bias)


def _test_error(case: RegressionCase, trained_length: float) -> float:
    """Mean over weights of the error on new tasks."""
    task, s = case.task, case.task.covariance
    lengths = {"trained_length": trained_length, "length": case.lengths[-1]}
    total = 0.0
    # The error is quadratic in the weights, so unit vectors give its mean over them.
    for w in np.eye(task.dimension) * math.sqrt(task.weight_variance):
        moment = s @ w
        fourth = float(w @ moment) * s + np.outer(moment, moment)
        total += error_on_new_tasks(s, moment, fourth, best_linear_error=0.0, **lengths)
    return total


@once
def _sampled_error(case: RegressionCase, seed: int) -> tuple[float, float]:
    """The same by sampling prompts, with its standard error."""
    task, trained, length = case.task, case.lengths[0], case.lengths[-1]
    draws = np.random.default_rng([seed, 13])
    d = task.dimension
    root = np.linalg.cholesky(task.covariance)
    head = linear_attention_optimum(task, trained).product
    weights = math.sqrt(task.weight_variance) * draws.standard_normal((_PROMPTS, d))
    inputs = draws.standard_normal((_PROMPTS, length, d)) @ root.T
    labels = np.einsum("pld,pd->pl", inputs, weights)
    predicted = np.einsum("pld,pl->pd", inputs, labels) / length @ head
    errors = np.sum(((predicted - weights) @ root) ** 2, axis=-1)
    return float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(_PROMPTS))


def _off_test_error(case: RegressionCase, seed: int, claimed: float) -> Measurement:
    found, error = _sampled_error(case, seed)
    details = {"formula": claimed, "sampled": found, "standard error": error}
    details |= {"trained on": case.lengths[0], "predicted from": case.lengths[-1]}
    return Measurement(abs(found - claimed) / error, _PROMPTS, details)


def _short_then_longer() -> RegressionCase:
    return unequal().replace(lengths=(5, 40), about="trained on 5 tokens, queried with 40")


TEST_ERROR = _TRAINED_LINEAR_MODELS.claim(
    "linear-attention-test-error",
    "the error on new tasks is that of the best predictor, a term in 1/L and one in 1/N^2",
    statement="prediction error of trained linear attention on new tasks",
    assuming=(NOISELESS,),
    contrast=Comparison(
        "distance of the formula from sampled prompts, in standard errors",
        _off_test_error,
        lambda case, seed: _test_error(case, case.lengths[0]),
        "the same without the length trained on, as if that were infinite",
        lambda case, seed: _test_error(case, math.inf),
        bound=4.5,
        reason="of so many normal numbers one in 100,000 is further off",
    ),
    data=lambda seed: [_short_then_longer(), correlated(3).replace(lengths=(4, 60))],
    holding=_short_then_longer,
    note="trained on prompts of the first length given, queried with prompts of the last",
)

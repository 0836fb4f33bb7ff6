"""Two softmax heads of opposite signs and small scores: linear attention, one token behind."""

from __future__ import annotations

import math

import numpy as np

from attractor.papers.claim import Comparison, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.regression_data import correlated, independent, noisy, unequal
from attractor.papers.ledger.claim import once
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.regression import small_score_optimum, small_score_risk
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.linear_attention import linear_attention_risk

_PROMPTS, _TOKENS, _SCALES = 20_000, 3, (0.05, 0.1)


@once
def _sampled_risk(case: RegressionCase, seed: int) -> tuple[float, float]:
    """Risk of two opposite softmax heads of small scores, with its standard error."""
    task, draws = case.task, np.random.default_rng([seed, 19])
    product = small_score_optimum(task, _TOKENS).product
    d = task.dimension
    inputs = draws.standard_normal((_PROMPTS, _TOKENS, d)) @ np.linalg.cholesky(task.covariance).T
    weights = math.sqrt(task.weight_variance) * draws.standard_normal((_PROMPTS, d))
    queries = draws.standard_normal((_PROMPTS, d)) @ task.query_factor.T
    labels = np.einsum("pld,pd->pl", inputs, weights)
    labels = labels + math.sqrt(task.label_noise) * draws.standard_normal(labels.shape)
    scores = np.einsum("pld,pd->pl", inputs, queries @ product.T)
    target = np.sum(weights * queries, axis=-1)
    errors = []
    for scale in _SCALES:
        up, down = (np.exp(sign * scale * scores) for sign in (1, -1))
        outputs = [np.sum(p * labels, -1) / p.sum(-1) for p in (up, down)]
        errors.append((outputs[0] - outputs[1]) / (2 * scale) - target)
    first, second = (error**2 / 2 for error in errors)
    slope = (_SCALES[1] / _SCALES[0]) ** 2
    limits = (slope * first - second) / (slope - 1)  # errors are even in the scale
    return float(limits.mean()), float(limits.std(ddof=1) / math.sqrt(_PROMPTS))


def _linear_risk(case: RegressionCase, tokens: int) -> float:
    """The risk of linear attention, of the product ``b A`` of the opposite heads."""
    zeros = np.zeros(case.task.dimension)
    product = small_score_optimum(case.task, _TOKENS).product
    head = Blocks(product, zeros, zeros, np.array(1.0))
    return float(linear_attention_risk(case.task, head, tokens))


def _off(case: RegressionCase, seed: int, claimed: float) -> Measurement:
    """Distance of the sampled risk from a claimed one, in standard errors."""
    found, error = _sampled_risk(case, seed)
    details = {"sampled": found, "standard error": error, "claimed": claimed}
    return Measurement(abs(found - claimed) / error, _PROMPTS, details)


SMALL_OPPOSITE_HEADS = REGRESSION_CLAIMS.claim(
    "small-opposite-heads",
    "two opposite softmax heads of small scores are linear attention with one token less",
    statement="two softmax heads of opposite signs, their limit of small scores",
    assuming=(),
    contrast=Comparison(
        f"distance of the risk of linear attention on one token less than {_TOKENS} from that of "
        "sampled prompts, in standard errors",
        _off,
        lambda case, seed: small_score_risk(
            case.task, small_score_optimum(case.task, _TOKENS).product, _TOKENS
        ),
        "the same with as many tokens and the same product b A",
        lambda case, seed: _linear_risk(case, _TOKENS),
        bound=4.5,
        reason="of so many normal numbers one in 100,000 is further off",
    ),
    data=lambda seed: [unequal(), correlated(), noisy(independent(5))],
    note="derived here, and no statement of the paper; two scales of scores are extrapolated to "
    "zero",
)

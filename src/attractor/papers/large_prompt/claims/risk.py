"""Risks of heads trained on finite prompts, and the best ones there are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.stats
from jaxtyping import Float
from scipy.interpolate import make_interp_spline

from attractor.papers.claim import Comparison, Measurement
from attractor.papers.large_prompt.claims import REGRESSION_CLAIMS
from attractor.papers.large_prompt.claims.heavy_tails import balanced_risk
from attractor.papers.large_prompt.regression_data import correlated, independent, noisy, unequal
from attractor.papers.large_prompt.regression_flows import finite_flow
from attractor.papers.large_prompt.regression_hypotheses import (
    BALANCED,
    FOLLOWED,
    INDEPENDENT,
    LONG_TRAINING,
    NOISELESS,
    SAME_QUERIES,
    SHORT_PROMPTS,
    SMALL_START,
    SOME_NOISE,
    SOME_TOKENS,
)
from attractor.papers.ledger.claim import once
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.finite_length import prompt_moments
from attractor.prompts.regression import (
    SoftmaxOptimum,
    finite_prompt_limit,
    leading_order,
    opposite_heads_optimum,
    small_score_optimum,
    small_score_risk,
    softmax_risk,
)
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.flows.isotropic_flow import (
    IsotropicFlow,
    isotropic_finite_flow,
    isotropic_optimum,
)
from attractor.prompts.regression.risks.linear_attention import (
    linear_attention_optimum,
    linear_attention_risk,
    ridge_risk,
)

_START = (BALANCED, SMALL_START)
_LONG = (65_536, 1_000_000)
_SHORT = (64, 256)


def _leading_order(case: RegressionCase, seed: int) -> Callable[[int], float]:
    """``C / L``, with ``C`` the least that a head has which predicts exactly from all tokens."""
    zeros, b = np.zeros(case.task.dimension), finite_prompt_limit(case.task)
    head = Blocks(np.linalg.inv(case.task.covariance) / b, zeros, zeros, np.array(b))
    return leading_order(case.task, head).risk


def _trained_on_infinite(case: RegressionCase, seed: int) -> Callable[[int], float]:
    return lambda length: float(balanced_risk(case, np.array([float(length)]))[0])


def _off_decay(case: RegressionCase, seed: int, named: Callable[[int], float]) -> Measurement:
    """The largest relative distance of the trained risk of long prompts from another."""
    found = {length: float(finite_flow(case, length).risk[-1]) for length in _LONG}
    details = {f"risk at {length:,} tokens": risk for length, risk in found.items()}
    off = max(abs(risk / named(length) - 1) for length, risk in found.items())
    return Measurement(off, len(found), details)


TRAINED_RISK_LIMIT = REGRESSION_CLAIMS.claim(
    "trained-risk-limit",
    "the risk trained to the end on prompts of L tokens falls to zero like C / L",
    statement="training on long prompts reaches the optimal risk",
    assuming=(SAME_QUERIES, FOLLOWED, *_START, NOISELESS, LONG_TRAINING),
    contrast=Comparison(
        "largest relative distance of the trained risk at 65,536 and a million tokens from C / L, "
        "with C = tr(Sigma) (t - 1) (1 - 2/t)^-k / 2, t = 1 + k + sqrt(1 + k^2), k = 1 + d/2",
        _off_decay,
        _leading_order,
        "its distance from the risk on as many tokens of the head trained on infinite prompts",
        _trained_on_infinite,
        bound=0.01,
        reason="what is left falls like a power of L between 0.6 and 1: at 65,536 tokens it is "
        ".006 for d = 1, .001 for d = 5 and .003 for d = 64",
    ),
    data=lambda seed: [independent(5), independent(2), independent(1), correlated(), unequal()],
    note="the theorem asks for less, no rate and a limit of zero; a risk with a floor or another "
    "power of L is off at one of the lengths. Nothing is said about parameters, which go "
    "elsewhere. For d = 5 independent inputs the trained risk is .5191 at 64 tokens and .0451 at "
    "1,024, where the balanced head has .0933",
)


_DOUBLINGS, _FIRST, _NODES = 17, 2.0**-7, 16
"""From the first time to 1,024 the flow is integrated over, each doubling with so many nodes."""
_SPACING, _RADII, _TAIL, _DEGREE = 0.05, 96, 8.0, 5
_Gradient = Callable[[RegressionCase, int, IsotropicFlow], Float[np.ndarray, "2 time"]]
"""Of a length: the derivatives of the risk in ``||A||`` and ``b`` along a flow."""


def _finite_gradient(
    case: RegressionCase, length: int, flow: IsotropicFlow
) -> Float[np.ndarray, "2 time"]:
    """That of ``E_r[b^2 (E ghat^2 + (d - 1 + n) q) - 2 b r E ghat + r^2] / 2`` at ``s = a r``.

    The averages over prompts are exact at evenly spaced ``s``, and splines in between.
    """
    d, a, b = flow.dimension, flow.a[:, None], flow.b[:, None]
    nodes, weights = np.polynomial.legendre.leggauss(_RADII)
    low, high = max(0.0, math.sqrt(d) - _TAIL), math.sqrt(d) + _TAIL
    r = (low + high) / 2 + (high - low) / 2 * nodes  # lengths of a query
    weights = weights * scipy.stats.chi.pdf(r, d)
    s = np.arange(0, a.max() * r.max() + _SPACING, _SPACING)
    moments = prompt_moments(s, length)
    squares = moments.output_error + s * (2 * moments.mean_output - s)
    squares = squares + (d - 1 + case.task.label_noise) * moments.sum_of_squared_weights
    mean = make_interp_spline(s, moments.mean_output, k=_DEGREE)
    square = make_interp_spline(s, squares, k=_DEGREE)
    in_a = b * r * (b * square(a * r, 1) / 2 - r * mean(a * r, 1))
    in_b = b * square(a * r) - r * mean(a * r)
    return np.stack([in_a / math.sqrt(d), in_b]) @ (weights / weights.sum())


def _infinite_gradient(
    case: RegressionCase, length: int, flow: IsotropicFlow
) -> Float[np.ndarray, "2 time"]:
    """That of the risk of infinite prompts, ``d (a b - 1)^2 / 2``."""
    d, a, b = flow.dimension, flow.a, flow.b
    return d * (a * b - 1) * np.stack([b / math.sqrt(d), a])


def _off_gradient_flow(case: RegressionCase, seed: int, gradient: _Gradient) -> Measurement:
    """Relative distance of what risk and parameters change by from integrals of a gradient."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    starts = _FIRST * 2.0 ** np.arange(_DOUBLINGS)
    times = (starts[:, None] * (3 + nodes) / 2).ravel()
    weights = (starts[:, None] * weights / 2).ravel()
    ends = (_FIRST, _FIRST * 2.0**_DOUBLINGS)
    off, rise = 0.0, -math.inf
    for length in case.lengths:
        flow = _flow(case, length, (0.0, ends[0], *times, ends[1]))
        along = gradient(case, length, flow)[:, 2:-1]
        moved = np.array([float(one[-1] - one[1]) for one in flow.parameters])
        fallen = float(flow.risk[1] - flow.risk[-1])
        off = max(
            off,
            float(np.linalg.norm(moved + along @ weights) / np.linalg.norm(moved)),
            abs(float((along**2).sum(0) @ weights) / fallen - 1),
        )
        rise = max(rise, float(np.diff(flow.risk).max()))
    return Measurement(off, len(case.lengths), {"largest rise of the risk": rise})


@once
def _flow(case: RegressionCase, length: int, times: tuple[float, ...]) -> IsotropicFlow:
    d, noise = case.task.dimension, case.task.label_noise
    return isotropic_finite_flow(
        d, length, case.initial_scale, np.array(times), label_noise=noise, tolerance=1e-9
    )


RISK_FALLS = REGRESSION_CLAIMS.claim(
    "risk-falls",
    "in training on finite prompts the risk falls at the rate of its squared gradient, never rises",
    statement="training on long prompts reaches the optimal risk, the risk falls on the way",
    assuming=(INDEPENDENT, *_START, SOME_TOKENS),
    contrast=Comparison(
        "largest relative distance of the fall of the risk and of the way of (||A||, b), up to "
        "time 1,024, from the integrals of its squared gradient and of minus its gradient",
        _off_gradient_flow,
        lambda *_: _finite_gradient,
        "the same for the gradient of the risk of infinite prompts",
        lambda *_: _infinite_gradient,
        bound=1e-5,
        reason="the flow's tables of averages leave a gradient of some 5e-9 where it rests, for a "
        "time of 1,000; quadrature is finer",
    ),
    data=lambda seed: [independent(5, _SHORT), independent(5), independent(2)],
    note="the flow on infinite prompts passes the best head of finite ones, which shrinks toward "
    "the mean of the prompt on purpose",
)


_SAMPLES = 4000
_ERRORS = 4.5
_NARROWER = 0.64
"""Scores of a pair that is not the best, over those of the best."""


@once
def _best(case: RegressionCase, length: int) -> float:
    """The risk of the best softmax head."""
    noise = case.task.label_noise
    return isotropic_optimum(case.task.dimension, length, label_noise=noise).risk


def _linear(case: RegressionCase, length: int) -> float:
    """The risk of the best linear attention."""
    return linear_attention_optimum(case.task, length).risk


def _order(case: RegressionCase, seed: int, falling: tuple[str, str]) -> Measurement:
    """The smallest relative distance between predictors that are next to one another in risk.

    Args:
        case: The data.
        seed: Names the prompts that the risk of ridge regression is averaged over.
        falling: Names of the attentions, that of the larger risk first; ridge regression is last.
    """
    smallest, details = math.inf, {}
    for length in case.lengths:
        risks = {"softmax": _best(case, length), "linear": _linear(case, length)}
        ridge = ridge_risk(case.task, length, samples=_SAMPLES, seed=seed)
        above = float(ridge.risk + _ERRORS * ridge.standard_error)
        first, second = (risks[name] for name in falling)
        details[f"at {length} tokens"] = f"{first:.4g}, {second:.4g}, {float(ridge.risk):.4g}"
        smallest = min(smallest, first / second - 1, min(first, second) / above - 1)
    return Measurement(smallest, 2 * len(case.lengths), details)


RISK_ORDER = REGRESSION_CLAIMS.claim(
    "order-of-predictors",
    "on finite prompts ridge regression beats linear attention, and that one softmax head",
    statement="comparison of softmax attention, linear attention and ridge regression",
    assuming=(INDEPENDENT, SOME_TOKENS, SOME_NOISE),
    contrast=Comparison(
        "smallest risk of softmax over linear attention, and of that over ridge regression, less 1",
        _order,
        lambda *_: ("softmax", "linear"),
        "the same with softmax and linear attention exchanged",
        lambda *_: ("linear", "softmax"),
        bound=0.0,
        reason="risks of attention are exact, and that of ridge regression is taken 4.5 standard "
        "errors higher",
        sense=">=",
    ),
    data=lambda seed: [
        noisy(independent(5, (64, 256, 1024))),
        noisy(independent(2, (16, 256))),
    ],
    note="all of the best of their kind, of softmax among heads with A = a I and no score from "
    "labels or value of inputs; the distance of softmax from linear attention closes like "
    "one over the length. Where labels have no noise ridge regression is exact",
    exchange="it names an order, whose only neighbors are exchanges",
)


def _below(
    case: RegressionCase, seed: int, risk: Callable[[RegressionCase, int], float]
) -> Measurement:
    """The largest risk of two small opposite heads, over that of another predictor, less 1."""
    largest, details = -math.inf, {}
    for length in case.lengths:
        pair, other = small_score_optimum(case.task, length).risk, risk(case, length)
        details[f"at {length} tokens"] = f"{pair:.5g} and {other:.5g}"
        largest = max(largest, pair / other - 1)
    return Measurement(largest, len(case.lengths), details)


TWO_HEADS_BEAT_ONE = REGRESSION_CLAIMS.claim(
    "two-heads-beat-one",
    "two softmax heads of opposite signs reach a lower risk than the best single one",
    statement="comparison of one softmax head with two heads of opposite signs",
    assuming=(INDEPENDENT, SOME_TOKENS),
    contrast=Comparison(
        "largest risk of two opposite heads of small scores over that of the best head, less 1",
        _below,
        lambda *_: _best,
        "the same over that of linear attention on as many tokens, which they reach on one more",
        lambda *_: _linear,
        bound=0.0,
        reason="both risks are exact",
    ),
    data=lambda seed: [independent(5, (64, 256, 1024)), noisy(independent(5, (64, 256, 1024)))],
    note="the single head is the best with A = a I and no score from labels or value of inputs. "
    "It adds the mean of the prompt to its prediction, opposite signs cancel it; "
    "no statement of the paper, whose heads are single",
    exchange="a risk that is larger than that of one head is beaten too",
)


@once
def _best_pair(case: RegressionCase, length: int) -> SoftmaxOptimum:
    """The best two opposite heads."""
    return opposite_heads_optimum(case.task, length)


def _pair(case: RegressionCase, length: int) -> float:
    """Their risk."""
    return _best_pair(case, length).risk


def _narrow_pair(case: RegressionCase, length: int) -> float:
    """The risk of heads with the same product of scores and values, and narrower scores."""
    best = _best_pair(case, length).blocks
    narrow = best._replace(
        key_query=_NARROWER * best.key_query, value_label=best.value_label / _NARROWER
    )
    return float(softmax_risk(case.task, narrow, length).risk)


def _on_the_way(
    case: RegressionCase, seed: int, risk: Callable[[RegressionCase, int], float]
) -> Measurement:
    """The least share of the way from linear attention on one token less to that on as many."""
    shares, details = [], {}
    for length in case.lengths:
        less, as_many, found = _linear(case, length - 1), _linear(case, length), risk(case, length)
        shares.append(min(less - found, found - as_many) / (less - as_many))
        details[f"at {length} tokens"] = f"{less:.5g}, {found:.5g}, {as_many:.5g}"
    return Measurement(min(shares), len(shares), details)


FINITE_OPPOSITE_HEADS = REGRESSION_CLAIMS.claim(
    "finite-opposite-heads",
    "on short prompts two opposite heads are best with finite scores, behind linear attention",
    statement="two softmax heads of opposite signs on finite prompts",
    assuming=(SHORT_PROMPTS,),
    contrast=Comparison(
        "least distance of their risk from that of linear attention on as many tokens and on one "
        "less, over the distance of the two",
        _on_the_way,
        lambda *_: _pair,
        f"the same of heads with scores of {_NARROWER} of these and values of one over that",
        lambda *_: _narrow_pair,
        bound=0.1,
        reason="all risks are exact; small scores are linear attention on one token less",
        sense=">=",
    ),
    data=lambda seed: [correlated().replace(lengths=(5, 10)), noisy(independent(3, (5, 10)))],
    note="derived here, and no statement of the paper, whose heads are single. On long prompts the "
    "best scores are small and the share falls to zero",
)


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

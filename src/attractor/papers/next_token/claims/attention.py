"""Training attention: its direction, the attention on optimal tokens, and the loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.two_stages.two_stage_measures import direction_distance
from attractor.margin.selection import Selection
from attractor.papers.claim import Comparison, Exponent, Measurement
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims._published_bounds import (
    Approach,
    direction_contrast,
    norm_contrast,
)
from attractor.papers.next_token.claims.solution import ASSUMPTIONS, raised_alone
from attractor.papers.next_token.data import (
    grammar,
    missing_relations,
    random_orders,
    realizable,
    rolled_out,
)
from attractor.papers.next_token.training import (
    attention_solution,
    attention_weights,
    explains,
    exponent,
    feed_forward_solution,
    longest_context,
    measured,
    plan,
    slope,
)

_LEAST = 1e-20
"""``1 - cos`` below which a direction is exact, to rounding."""


def _data(seed: int) -> Sequence[CorpusCase]:
    return [
        grammar(),
        *(random_orders(number) for number in range(seed, seed + 2)),
        rolled_out(seed),
        missing_relations(),
    ]


def _norms_over_way(case: CorpusCase, seed: int) -> Float[np.ndarray, "step"]:
    found = measured(case, seed)
    return found["norm"].to_numpy() / (found["step"].to_numpy() * plan(case).rates[1])


ATTENTION_NORM = CLAIMS.claim(
    "attention-norm",
    "the norm of attention lies between t eta/(2 |W*|) and t eta",
    statement="norm of attention",
    assuming=ASSUMPTIONS,
    contrast=norm_contrast(
        _norms_over_way,
        attention_solution,
        "rounding; where W goes straight, the upper bound is met with equality",
    ),
    data=_data,
    holding=lambda: random_orders(0),
    note="what is proved has the length of the longest context in the lower bound as well, which "
    "follows from this one. It never binds: the norm is about 2 |W*| times as large",
    exchange="twice either bound is one: the norm is t eta to one per cent",
)


def _distance(case: CorpusCase, seed: int, direction: Float[np.ndarray, "d d"]) -> Measurement:
    return Measurement(float(direction_distance(attention_weights(case, seed)[-1], direction)))


ATTENTION_DIRECTION = CLAIMS.claim(
    "attention-direction",
    "attention tends to the direction of its max-margin solution",
    statement="directional convergence of attention",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "1 - cos of attention and the max-margin solution in the end",
        _distance,
        lambda case, seed: attention_solution(case).W,
        "1 - cos to scores of one for optimal tokens and zero for all others",
        lambda case, seed: case.table.T @ raised_alone(case) @ case.table,
        bound=2e-3,
        reason="what is not along W* stays as large, while the norm grows to more than 14 times "
        "that of W*; the solutions of other constraints are 1e-2 or more away",
    ),
    data=_data,
    note="the published bound on 1 - cos says nothing yet, see attention-direction-bound",
)


def _approach(case: CorpusCase, seed: int) -> Approach:
    """With the published bound but for its constant; a distance that is rounding counts as none."""
    found, norm = measured(case, seed), float(attention_solution(case).value)
    steps, distance = found["step"].to_numpy().astype(float), found["distance"].to_numpy()
    shape = len(case.samples) * longest_context(case) ** 4 * norm**4 * np.log(steps) ** 2
    distance = np.where(distance < _LEAST, 0.0, distance)
    return Approach(steps, distance, shape / (steps * plan(case).rates[1]))


ATTENTION_DIRECTION_BOUND = CLAIMS.claim(
    "attention-direction-bound",
    "1 - cos of attention and its solution is at most 54 N L^4 |W*|^4 log(t)^2/(t eta)",
    statement="directional convergence of attention, the bound",
    assuming=ASSUMPTIONS,
    contrast=direction_contrast(_approach, 54.0, "54 N L^4 |W*|^4 log(t)^2/(t eta)"),
    data=_data,
    note="as printed. It never binds: a constant ten million times smaller would do, and the bound "
    "is more than one, and so says nothing, up to about 1e12 of the published steps; it falls like "
    "log(t)^2/t while 1 - cos falls like 1/t^2. One optimal and one other token under every query "
    "make the direction exact",
    exchange="an upper bound, of which twice is one as well",
)


def _off_exponent(case: CorpusCase, seed: int, expected: Exponent) -> Measurement:
    """Distance of the exponent of ``1 - cos`` in t from another."""
    found = measured(case, seed)
    distance = found["distance"].to_numpy()
    if distance[-1] < _LEAST:  # exact from the first step
        return Measurement(np.nan, 0)
    fitted = exponent(distance, found["step"].to_numpy().astype(float))
    return Measurement(abs(fitted - expected), 1, {"exponent": fitted})


ATTENTION_DIRECTION_RATE = CLAIMS.claim(
    "attention-direction-rate",
    "1 - cos of attention and its solution falls like 1/t^2",
    statement="directional convergence of attention, its rate",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "distance of the exponent of 1 - cos in t from -2",
        _off_exponent,
        lambda *_: Exponent(-2),
        "distance of the exponent from -1, that of the published bound",
        lambda *_: Exponent(-1),
        bound=0.1,
        reason="what is not along W* stays, while the norm grows; lower orders of 1/t",
    ),
    data=_data,
    note="derived, not quoted: published is an upper bound that falls like log(t)^2/t, see "
    "attention-direction-bound; one optimal and one other token under every query make the "
    "direction exact, and the claim vacuous",
)


def _attention(case: CorpusCase, seed: int) -> Float[np.ndarray, "step N T"]:
    """Attention in every context at every record, that of the start first."""
    samples = case.samples
    keys = case.table[np.maximum(samples.contexts, 0)]
    W = attention_weights(case, seed)
    W = np.concatenate([np.zeros_like(W[:1]), W])
    scores = np.einsum("ntd,sde,ne->snt", keys, W, case.table[samples.queries], optimize=True)
    scores = np.where(samples.mask, scores, -np.inf)
    return np.where(samples.mask, softmax(scores, axis=-1), np.nan)


def _optimal(case: CorpusCase, seed: int) -> Selection:
    """The tokens that explain the labels of contexts that have others."""
    mask = explains(case) & _others(case, seed).mask.any(-1, keepdims=True)
    return Selection(mask, mask.sum(-1) > 1)


def _others(case: CorpusCase, seed: int) -> Selection:
    mask = case.samples.mask & ~explains(case)
    return Selection(mask, mask.sum(-1) > 1)


def _largest_fall(case: CorpusCase, seed: int, chosen: Selection) -> Measurement:
    """The largest fall of the attention on chosen tokens, or what it lacks of ``1/L``."""
    found, floor = _attention(case, seed)[:, chosen.mask], 1 / longest_context(case)
    fall, least = float((-np.diff(found, axis=0)).max()), float(found.min())
    details = {"largest fall": fall, "least": least, "one over the longest context": floor}
    return Measurement(float(np.maximum(fall, floor - least)), found.shape[1], details)


OPTIMAL_ATTENTION_GROWS = CLAIMS.claim(
    "optimal-attention-grows",
    "the attention on an optimal token never falls, and stays at least 1/L",
    statement="attention on optimal tokens does not decrease",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "largest fall of the attention on an optimal token between records, or lack of 1/L",
        _largest_fall,
        _optimal,
        "the same for the attention on all other tokens",
        _others,
        bound=1e-12,
        reason="rounding; from zero attention starts at one over the length of the context",
    ),
    data=realizable,
    note="where another token occurs more often than the optimal one, attention can fall at first; "
    "its limit is the same",
)


def _attention_elsewhere(case: CorpusCase, seed: int, rate: float) -> Measurement:
    """The largest logarithm of ``(1 - phi) (1 + L exp(-r t)) / (L exp(-r t))``, r per step."""
    found = measured(case, seed)
    decay = np.log(longest_context(case)) - rate * found["step"].to_numpy()
    bound = decay - np.logaddexp(0, decay)
    excess = found["log_other_attention"].to_numpy() - bound
    return Measurement(float(excess.max()), len(excess))


def published_rate(case: CorpusCase) -> float:
    """The published rate ``eta / (4 L |W*|^2)`` of attention, per step."""
    norm = float(attention_solution(case).value)
    return plan(case).rates[1] / (4 * longest_context(case) * norm**2)


def true_rate(case: CorpusCase) -> float:
    """The rate ``eta / |W*|`` of attention once W goes along W*, per step."""
    return plan(case).rates[1] / float(attention_solution(case).value)


OPTIMAL_ATTENTION_BOUND = CLAIMS.claim(
    "optimal-attention-bound",
    "optimal tokens get attention of 1/(1 + L exp(-C t)) or more, C = eta/(4 L |W*|^2)",
    statement="convergence of attention on optimal tokens",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "largest logarithm of the attention on other tokens over its bound",
        _attention_elsewhere,
        lambda case, seed: published_rate(case),
        "the same with a quarter more than the true rate, C = 1.25 eta/|W*|",
        lambda case, seed: 1.25 * true_rate(case),
        bound=1e-9,
        reason="the bound itself, and rounding at its ends",
    ),
    data=realizable,
    note="published for T and t beyond all practical sizes; it holds at every step, and in the end "
    "with a rate 4 L |W*| times as large",
    exchange="the true rate is 4 L |W*| times the published one",
)


def rate_contrast(words: str, name: str) -> Comparison[CorpusCase, float]:
    """The distance of a rate at which a measure falls from the true one, and the published one.

    Args:
        words: The rate, in words.
        name: The measure, a logarithm.
    """

    def off_rate(case: CorpusCase, seed: int, rate: float) -> Measurement:
        found = measured(case, seed)
        fitted = -slope(found[name].to_numpy(), found["step"].to_numpy())
        return Measurement(abs(fitted / rate - 1), 1, {"over eta/|W*|": fitted / true_rate(case)})

    return Comparison(
        f"relative distance of the rate of {words} from eta/|W*|",
        off_rate,
        lambda case, seed: true_rate(case),
        "its relative distance from eta/(4 L |W*|^2), the rate that is published",
        lambda case, seed: published_rate(case),
        bound=0.02,
        reason="margins grow by eta/|W*| a step once W goes along W*",
    )


OPTIMAL_ATTENTION_RATE = CLAIMS.claim(
    "optimal-attention-rate",
    "the attention on other tokens falls like exp(-t eta/|W*|)",
    statement="convergence of attention on optimal tokens, its rate",
    assuming=ASSUMPTIONS,
    contrast=rate_contrast("their attention", "log_other_attention"),
    data=realizable,
    note="published is the slower rate as an upper bound, which the true one satisfies",
)


def _excess_loss(case: CorpusCase, seed: int, rate: float) -> Measurement:
    """The largest logarithm of the loss over its bound for a rate C0, and over that in the end.

    In the end all attention is on optimal tokens, and the loss is what stage one leaves.
    """
    found, (steps, _) = measured(case, seed), plan(case).steps
    size, longest = case.corpus.vocabulary_size, longest_context(case)
    late = longest * np.exp(-published_rate(case) * found["step"].to_numpy())
    bound = np.log(size) - steps * rate * (1 - 2 * late / (late + 1))
    excess = np.log(found["loss"].to_numpy()) - bound
    floor = np.log1p((size - 1) * np.exp(-steps * _true_rate(case)))
    in_the_end = float(np.log(floor) - np.log(size) + steps * rate)
    details = {"in training": float(excess.max()), "in the end": in_the_end}
    return Measurement(float(max(excess.max(), in_the_end)), len(excess) + 1, details)


def _published_rate(case: CorpusCase) -> float:
    """``C0 = eta0 / (4 |W_ov*|^2)``."""
    return plan(case).rates[0] / (4 * float(feed_forward_solution(case).value) ** 2)


def _true_rate(case: CorpusCase) -> float:
    """``eta0 / |W_ov*|``, by which a step of stage one adds to the gaps of logits."""
    return plan(case).rates[0] / float(feed_forward_solution(case).value)


ATTENTION_LOSS = CLAIMS.claim(
    "attention-loss",
    "the loss is at most V exp(-T C0 (1 - 2L/(L + exp(C1 t)))), C0 = eta0/(4 |W_ov*|^2)",
    statement="convergence of the loss",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "largest logarithm of the loss over its bound, in training and in the end",
        _excess_loss,
        lambda case, seed: _published_rate(case),
        "the same with a quarter more than the true rate, C0 = 1.25 eta0/|W_ov*|",
        lambda case, seed: 1.25 * _true_rate(case),
        bound=0.0,
        reason="the bound itself",
    ),
    data=realizable,
    note="published for T and t beyond all practical sizes; it holds at every step, and in the end "
    "with a rate C0 that is 4 |W_ov*| times as large",
    exchange="twice the published rate is 4 |W_ov*| / 2 times below the true",
)


EXCESS_LOSS_RATE = CLAIMS.claim(
    "excess-loss-rate",
    "the loss above that of all attention on optimal tokens falls like exp(-t eta/|W*|)",
    statement="linear convergence of the loss",
    assuming=ASSUMPTIONS,
    contrast=rate_contrast("the excess loss", "log_excess_loss"),
    data=realizable,
    note="the published excess is over V exp(-T C0), an upper bound of the floor; that over the "
    "floor itself, log(1 + (V - 1) exp(-gap)), is measured here",
)

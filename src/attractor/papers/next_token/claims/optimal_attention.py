"""The attention on the tokens that explain labels."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.corpora.files.corpus import CorpusCase
from attractor.margin.selection import Selection
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims.attention_path import ASSUMPTIONS
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import (
    attention_solution,
    attention_weights,
    explains,
    longest_context,
    measured,
    plan,
    slope,
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


def _excess(case: CorpusCase, seed: int, rate: float) -> Measurement:
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
        _excess,
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

"""Attention over tokens of finitely many values: it selects, and is not linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from attractor.papers import Comparison, Measurement, once
from attractor.papers.given import DISCRETE_TOKENS
from attractor.prompts import HeadCase
from attractor.prompts.measures import Empirical
from attractor_further.in_context_convergence.data import CLAIMS, features, random_features
from attractor_further.shapes import Outputs, Queries

_QUERIES = 4
_LENGTH = 4096
_PROMPTS = 100
_FEWEST = 10
_GAP = 40.0
_ROUNDING = 1e-9


Scores = Float[np.ndarray, "query k"]
"""Scores of values, or attention on them."""


class Values(NamedTuple):
    """The values that tokens take, and their frequencies."""

    values: Float[np.ndarray, "value d"]
    frequencies: Float[np.ndarray, "value"]


@once
def token_values(case: HeadCase) -> Values:
    """The values that tokens take, and their frequencies, where their law is of samples."""
    law = case.tokens
    assert isinstance(law, Empirical)
    points = np.asarray(law.points, dtype=np.float64)
    count = np.ones(len(points)) if law.weights is None else np.asarray(law.weights)
    values, place = np.unique(points, axis=0, return_inverse=True)
    frequencies = np.bincount(place.ravel(), count, minlength=len(values))
    return Values(values[frequencies > 0], (frequencies / frequencies.sum())[frequencies > 0])


def _weights(case: HeadCase, queries: Queries) -> Scores:
    """Attention on each value over infinitely many tokens: softmax of ``log p_k + v_k^T U z``."""
    values, frequencies = token_values(case)
    return softmax(np.log(frequencies) + queries @ case.U.T @ values.T, axis=-1)


def _selected(case: HeadCase, queries: Queries) -> Outputs:
    return _weights(case, queries) @ token_values(case).values @ case.V.T


def _affine(case: HeadCase, queries: Queries) -> Outputs:
    """The output over Gaussian tokens of the same mean and covariance."""
    values, frequencies = token_values(case)
    mean = frequencies @ values
    covariance = (frequencies[:, None] * (values - mean)).T @ (values - mean)
    return (mean + queries @ case.U.T @ covariance) @ case.V.T


@once
def _counts(case: HeadCase, seed: int) -> Int[np.ndarray, "prompt value"]:
    """How often each value occurs in prompts of drawn tokens."""
    draws = np.random.default_rng([seed, 37])
    return draws.multinomial(_LENGTH, token_values(case).frequencies, _PROMPTS)


@once
def _finite(case: HeadCase, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, and the outputs of drawn prompts: their mean and its standard error.

    Queries under which a prompt counts as fewer than ten tokens are left out: their outputs depend
    on prompts too rare to be drawn.
    """
    values, frequencies = token_values(case)
    drawn = case.queries.sample(_QUERIES, seed=seed)
    concentration = (_weights(case, drawn) ** 2 / frequencies).sum(-1)
    queries = drawn[concentration * _FEWEST <= _LENGTH]
    scores = queries @ case.U.T @ values.T
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    outputs = np.empty((_PROMPTS, len(queries), len(case.V)))
    for prompt, count in enumerate(_counts(case, seed)):
        weights = scores * count  # softmax over the tokens of a prompt, equal ones added
        outputs[prompt] = weights / weights.sum(-1, keepdims=True) @ values @ case.V.T
    return queries, outputs.mean(0), outputs.std(0, ddof=1) / np.sqrt(_PROMPTS)


def _off_finite(
    case: HeadCase, seed: int, limit: Callable[[HeadCase, Queries], Outputs]
) -> Measurement:
    """The largest difference of long prompts from a limit, in standard errors and biases."""
    queries, found, error = _finite(case, seed)
    if not len(queries):
        return Measurement(np.nan, 0)
    # The bias of a prompt is of the order of its variance, over the size of the values.
    size = max(float(np.abs(token_values(case).values @ case.V.T).max()), np.finfo(float).tiny)
    allowed = error + error**2 * _PROMPTS / size + _ROUNDING * size
    return Measurement(float((np.abs(found - limit(case, queries)) / allowed).max()), found.size)


def _data(seed: int) -> Sequence[HeadCase]:
    return [features(), features(6, dominant=20), random_features(seed)]


DISCRETE_ATTENTION = CLAIMS.claim(
    "discrete-attention",
    "over discrete tokens attention is the softmax of log p_k + v_k^T U z, not affine",
    statement="attention over features that occur with given probabilities",
    assuming=(DISCRETE_TOKENS,),
    contrast=Comparison(
        "largest difference of prompts of 4,096 drawn tokens from the softmax of "
        "log p_k + v_k^T U z, in standard errors",
        _off_finite,
        lambda *_: _selected,
        "the same for the affine map of Gaussian tokens with that mean and covariance",
        lambda *_: _affine,
        bound=6.0,
        reason="of some hundred nearly normal numbers one exceeds 6 with probability 1e-6",
    ),
    data=_data,
    note="orthonormal features are those of the paper; any finite set of values is covered",
)


def _highest(scores: Scores, frequencies: Float[np.ndarray, "k"]) -> Scores:
    """All attention on the value of the highest score."""
    return np.eye(len(frequencies))[scores.argmax(-1)]


def _most_frequent(scores: Scores, frequencies: Float[np.ndarray, "k"]) -> Scores:
    """All attention on the value that occurs most often."""
    return np.eye(len(frequencies))[np.full(len(scores), frequencies.argmax())]


def _off_selection(
    case: HeadCase, seed: int, selected: Callable[[Scores, Float[np.ndarray, "k"]], Scores]
) -> Measurement:
    """The largest difference of attention in drawn prompts, for long queries, from a selection.

    Queries are as long as makes the gap between the best scores a fixed one beyond what
    frequencies can make up for; those with tied best scores are left out, as are prompts in which
    a value does not occur.
    """
    values, frequencies = token_values(case)
    counts = _counts(case, seed)
    counts = counts[counts.all(-1)]
    drawn = case.queries.sample(_QUERIES, seed=seed)
    scores = drawn @ case.U.T @ values.T
    if len(values) < 2 or not len(counts):
        return Measurement(np.nan, 0)
    ordered = np.sort(scores, axis=-1)
    gap = ordered[:, -1] - ordered[:, -2]
    clear = gap > _ROUNDING * np.abs(scores).max(-1)
    if not clear.any():
        return Measurement(np.nan, 0)
    longer = scores[clear] * ((_GAP + np.ptp(np.log(counts))) / gap[clear])[:, None]
    attention = softmax(longer + np.log(counts)[:, None], axis=-1)
    difference = np.abs(attention - selected(scores[clear], frequencies))
    return Measurement(float(difference.max()), len(longer))


DISCRETE_SELECTION = CLAIMS.claim(
    "discrete-selection",
    "for long queries all attention is on the feature of the highest score, however rare",
    statement="attention concentrates on the feature of the query",
    assuming=(DISCRETE_TOKENS,),
    contrast=Comparison(
        "largest difference, in drawn prompts of 4,096 tokens, of attention from all on the value "
        "of the highest score, for queries whose best score leads by 40 and more",
        _off_selection,
        lambda *_: _highest,
        "the same from all attention on the most frequent value",
        lambda *_: _most_frequent,
        bound=1e-9,
        reason="other values have exp(-40) of the weight each, whatever their frequency",
    ),
    data=_data,
    note="the opposite of Gaussian tokens, over which the output grows with the query for ever; "
    "training is not run here",
)

"""Attention over tokens of finitely many values: it selects, and is not linear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.files.head import HeadCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import FEATURE_CLAIMS
from attractor.papers.large_prompt.data import Outputs, Queries, features, random_features
from attractor.papers.large_prompt.head_hypotheses import DISCRETE_TOKENS
from attractor.papers.once import once_a_case
from attractor.prompt.measures.empirical import Empirical

_QUERIES = 4
_LENGTH = 4096
_PROMPTS = 100
_FEWEST = 10
_GAP = 40.0
_ROUNDING = 1e-9


class Values(NamedTuple):
    """The values that tokens take, and their frequencies."""

    values: Float[np.ndarray, "value d"]
    frequencies: Float[np.ndarray, "value"]


@once_a_case
def token_values(case: HeadCase) -> Values:
    """The values that tokens take, and their frequencies, where their law is of samples."""
    law = case.tokens
    assert isinstance(law, Empirical)
    points = np.asarray(law.points, dtype=np.float64)
    count = np.ones(len(points)) if law.weights is None else np.asarray(law.weights)
    values, place = np.unique(points, axis=0, return_inverse=True)
    frequencies = np.bincount(place.ravel(), count, minlength=len(values))
    return Values(values[frequencies > 0], (frequencies / frequencies.sum())[frequencies > 0])


def _weights(case: HeadCase, queries: Queries) -> Float[np.ndarray, "query k"]:
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


@once_a_case
def _finite(case: HeadCase, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, and the outputs of drawn prompts: their mean and its standard error.

    Queries under which a prompt counts as fewer than ten tokens are left out: their outputs depend
    on prompts too rare to be drawn.
    """
    values, frequencies = token_values(case)
    drawn = case.queries.sample(_QUERIES, seed=seed)
    concentration = (_weights(case, drawn) ** 2 / frequencies).sum(-1)
    queries = drawn[concentration * _FEWEST <= _LENGTH]
    counts = np.random.default_rng([seed, 37]).multinomial(_LENGTH, frequencies, _PROMPTS)
    scores = queries @ case.U.T @ values.T
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    outputs = np.empty((_PROMPTS, len(queries), len(case.V)))
    for prompt, count in enumerate(counts):
        weights = scores * count  # softmax over the tokens of a prompt, equal ones added
        outputs[prompt] = weights / weights.sum(-1, keepdims=True) @ values @ case.V.T
    return queries, outputs.mean(0), outputs.std(0, ddof=1) / np.sqrt(_PROMPTS)


def _off_finite(case: HeadCase, seed: int, selecting: bool) -> Measurement:
    """The largest difference of long prompts from a limit, in standard errors and biases."""
    queries, found, error = _finite(case, seed)
    if not len(queries):
        return Measurement(np.nan, 0)
    claimed = (_selected if selecting else _affine)(case, queries)
    # The bias of a prompt is of the order of its variance, over the size of the values.
    size = max(float(np.abs(token_values(case).values @ case.V.T).max()), np.finfo(float).tiny)
    allowed = error + error**2 * _PROMPTS / size + _ROUNDING * size
    return Measurement(float((np.abs(found - claimed) / allowed).max()), found.size)


def _data(seed: int) -> Sequence[HeadCase]:
    return [features(), features(6, dominant=20), random_features(seed)]


DISCRETE_ATTENTION = FEATURE_CLAIMS.claim(
    "discrete-attention",
    "over discrete tokens attention is the softmax of log p_k + v_k^T U z, not affine",
    statement="attention over features that occur with given probabilities",
    assuming=(DISCRETE_TOKENS,),
    contrast=Contrast(
        "largest difference of prompts of 4,096 drawn tokens from the softmax of "
        "log p_k + v_k^T U z, in standard errors",
        lambda case, seed: _off_finite(case, seed, True),
        "the same for the affine map of Gaussian tokens with that mean and covariance",
        lambda case, seed: _off_finite(case, seed, False),
        bound=6.0,
        reason="of some hundred nearly normal numbers one exceeds 6 with probability 1e-6",
    ),
    data=_data,
    note="orthonormal features are those of the paper; any finite set of values is covered",
)


def _least_on(case: HeadCase, seed: int, frequent: bool) -> Measurement:
    """The least attention on the best value for long queries, or on the most frequent one.

    Queries are as long as makes the gap between the best scores a fixed one beyond what
    frequencies can make up for; those with tied best scores are left out.
    """
    values, frequencies = token_values(case)
    if len(values) < 2:
        return Measurement(np.nan, 0)
    drawn = case.queries.sample(_QUERIES, seed=seed)
    scores = drawn @ case.U.T @ values.T
    ordered = np.sort(scores, axis=-1)
    gap = ordered[:, -1] - ordered[:, -2]
    clear = gap > _ROUNDING * np.abs(scores).max(-1)
    if not clear.any():
        return Measurement(np.nan, 0)
    wanted = _GAP + np.ptp(np.log(frequencies))
    longer = drawn[clear] * (wanted / gap[clear])[:, None]
    weights = _weights(case, longer)
    rows = np.arange(len(longer))
    chosen = np.full(len(longer), frequencies.argmax()) if frequent else scores[clear].argmax(-1)
    return Measurement(float(weights[rows, chosen].min()), len(longer))


DISCRETE_SELECTION = FEATURE_CLAIMS.claim(
    "discrete-selection",
    "for long queries all attention is on the feature of the highest score, however rare",
    statement="attention concentrates on the feature of the query",
    assuming=(DISCRETE_TOKENS,),
    contrast=Contrast(
        "least attention on the value of the highest score, for queries that lead by 40 and more",
        lambda case, seed: _least_on(case, seed, False),
        "the same for the most frequent value",
        lambda case, seed: _least_on(case, seed, True),
        bound=1 - 1e-9,
        reason="other values have exp(-40) of the weight each, whatever their frequency",
        sense=">=",
    ),
    data=_data,
    note="the opposite of Gaussian tokens, over which the output grows with the query for ever; "
    "training is not run here",
)

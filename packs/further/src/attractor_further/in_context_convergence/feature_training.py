"""Training attention over orthonormal features: its rate, and the order of the features."""

from __future__ import annotations

import numpy as np
import scipy.integrate
from jaxtyping import Float
from scipy.special import softmax

from attractor.papers import Assumption, Check, Comparison, Exponent, Measurement, once
from attractor.papers.given import DISCRETE_TOKENS
from attractor.prompts import HeadCase
from attractor_further.in_context_convergence.data import CLAIMS, features, random_features
from attractor_further.in_context_convergence.discrete_features import token_values

_END = 1e8
RECORDED = np.concatenate([[0.0], np.geomspace(1e-2, _END, 300)])
"""Times of gradient flow at which attention is recorded."""
_LEARNED = 0.9
"""Attention on a feature beyond which it counts as learned."""


def _orthonormal(case: HeadCase) -> Check:
    values = token_values(case).values
    if len(values) < 2 or len(values) > values.shape[1]:
        return Check(False, f"{len(values):,} values in R^{values.shape[1]}")
    error = float(np.abs(values @ values.T - np.eye(len(values))).max())
    return Check(error <= 1e-9, f"{len(values)} values, off by {error:.2g}")


_ORTHONORMAL = Assumption[HeadCase](
    "orthonormal features",
    "The values of tokens are orthonormal, and two at least.",
    _orthonormal,
    lambda: random_features(0),
)


def _dominant(case: HeadCase) -> Check:
    frequencies = np.sort(token_values(case).frequencies)
    ratio = float(frequencies[-1] / frequencies[-2])
    return Check(ratio >= 2, f"the most frequent one occurs {ratio:.3g} times as often as the next")


_DOMINANT = Assumption[HeadCase](
    "a dominant feature",
    "One feature is at least twice as frequent as any other.",
    _dominant,
    features,
)


@once
def attention_on_own(case: HeadCase) -> Float[np.ndarray, "feature step"]:
    """Attention on the feature of the query along gradient flow from zero scores.

    With tasks ``w`` of identity covariance the loss over infinitely many tokens is
    ``sum_k p_k |v_k - sum_j A_kj v_j|^2 / 2``, the score matrix moves in the products ``v_j v_k^T``
    alone, and the queries do not interact.
    """
    frequencies = token_values(case).frequencies
    return np.stack([_row(frequencies, feature) for feature in range(len(frequencies))])


def _row(frequencies: Float[np.ndarray, "feature"], feature: int) -> Float[np.ndarray, "step"]:
    own = np.eye(len(frequencies))[feature]

    def descent(_: float, scores: Float[np.ndarray, "feature"]) -> Float[np.ndarray, "feature"]:
        attention = softmax(np.log(frequencies) + scores)
        missed = own - attention
        return frequencies[feature] * attention * (missed - attention @ missed)

    flow = scipy.integrate.solve_ivp(
        descent, (0.0, _END), np.zeros(len(own)), "LSODA", RECORDED, rtol=1e-9, atol=1e-12
    )
    scores = flow.y.T
    others = np.delete(np.log(frequencies) + scores, feature, axis=1)
    gap = others - (np.log(frequencies[feature]) + scores[:, [feature]])
    return 1 / (1 + np.exp(gap).sum(-1))


def _off_exponent(case: HeadCase, seed: int, expected: Exponent) -> Measurement:
    """Largest distance of the exponent of ``(1 - attention)^2`` in time from the one expected."""
    missed = 1 - attention_on_own(case)
    late = RECORDED >= _END / 10
    start, end = np.flatnonzero(late)[[0, -1]]
    exponents = 2 * np.log(missed[:, end] / missed[:, start])
    exponents /= np.log(RECORDED[end] / RECORDED[start])
    error = np.abs(exponents - expected).max()
    return Measurement(float(error), len(exponents), {"exponents": exponents.tolist()})


_TRAINED = (DISCRETE_TOKENS, _ORTHONORMAL)

FEATURE_TRAINING_RATE = CLAIMS.claim(
    "feature-training-rate",
    "trained from zero, the square of what attention misses falls like one over time",
    statement="convergence of training to attention on the feature of the query",
    assuming=_TRAINED,
    contrast=Comparison(
        "largest distance of the exponent of (1 - attention on the own feature)^2 from -1",
        _off_exponent,
        lambda *_: Exponent(-1.0),
        "the same distance from -2",
        lambda *_: Exponent(-2.0),
        bound=0.02,
        reason="lower orders at times of 1e7 to 1e8",
    ),
    data=lambda seed: [features(), features(6, dominant=20), features(3, dominant=2)],
    note="gradient flow over infinitely many tokens; the paper trains by gradient descent on "
    "finite prompts",
)


def _lead(case: HeadCase, seed: int, order: list[int]) -> Measurement:
    """Ratio of the least time that features take to be learned to that of the one before them."""
    first, *others = order
    learned = attention_on_own(case) >= _LEARNED
    if not (others and learned[:, -1].all()):
        return Measurement(np.nan, 0)
    times = RECORDED[learned.argmax(-1)]
    ratio = times[others].min() / times[first]
    return Measurement(float(ratio), len(others), {"times": times.tolist()})


def _by_frequency(case: HeadCase) -> list[int]:
    """The features, frequent ones first."""
    return np.argsort(-token_values(case).frequencies).tolist()


FREQUENT_FEATURE_FIRST = CLAIMS.claim(
    "frequent-feature-first",
    "the dominant feature is learned first, the rare ones later",
    statement="training on features of different frequency",
    assuming=(*_TRAINED, _DOMINANT),
    contrast=Comparison(
        "least time to attention of 0.9 on any other feature, over that for the dominant one",
        _lead,
        lambda case, seed: _by_frequency(case),
        "the same for the second most frequent feature and those after it",
        lambda case, seed: _by_frequency(case)[1:],
        bound=1.5,
        reason="times are known to 10 percent, and one feature is twice as frequent",
        sense=">=",
    ),
    data=lambda seed: [features(6, dominant=20), features(3, dominant=2)],
    note="gradient flow over infinitely many tokens",
)

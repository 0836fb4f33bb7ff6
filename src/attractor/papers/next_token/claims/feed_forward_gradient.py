"""The direction of the gradient of the feed-forward layer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.corpora.files.corpus import CorpusCase
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.corpus_hypotheses import ORTHONORMAL, REALIZABLE
from attractor.papers.measurements.near_misses import turned
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import (
    feed_forward_solution,
    feed_forward_weights,
    first_stage,
    with_collocation,
)
from attractor.support.randomness import generator

_ANGLES = np.linspace(0, np.pi, 13)
_GAPS = np.array([0.1, 1.0, 5.0, 30.0])
"""Gaps of the logits that a matrix along the solution would have."""
_HALF_A_RADIAN = 0.5


def feed_forward_gradients(
    case: CorpusCase, W: Float[np.ndarray, "step V d"]
) -> Float[np.ndarray, "step V d"]:
    """The gradients of ``- sum_x log softmax(W x)_n(x)``.

    The entry of the label is minus the sum of the others, so that it has digits where its
    probability is one.
    """
    known, labels = with_collocation(case)
    logits = np.einsum("xd,svd->sxv", case.table[known], W)
    is_label = labels[:, None] == np.arange(case.corpus.vocabulary_size)
    found = np.where(is_label, 0.0, softmax(logits, axis=-1))
    found = np.where(is_label, -found.sum(-1, keepdims=True), found)
    return np.einsum("sxv,xd->svd", found, case.table[known])


def _needed(
    case: CorpusCase, W: Float[np.ndarray, "step V d"], direction: Float[np.ndarray, "V d"]
) -> Float[np.ndarray, "step"]:
    """The a of ``<W/|W|, g> = (1 + a) <U, g>`` at each matrix; infinite where U is no descent."""
    gradients = feed_forward_gradients(case, W)
    along_own = (W * gradients).sum((-1, -2)) / np.linalg.norm(W, axis=(-1, -2))
    along = (direction * gradients).sum((-1, -2)) / np.linalg.norm(direction)
    return np.where(along < 0, along_own / along - 1, np.inf)


def _beyond_published(
    case: CorpusCase, seed: int, direction: Float[np.ndarray, "V d"]
) -> Measurement:
    """The largest a needed, less the published one, where training goes."""
    runs = [first_stage(case, seed), first_stage(case, seed, random=True)]
    W = np.concatenate([feed_forward_weights(run) for run in runs])
    norm, norms = float(feed_forward_solution(case).value), np.linalg.norm(W, axis=(-1, -2))
    published = 2 * norm * np.log(2 * case.corpus.vocabulary_size) / norms
    needed = _needed(case, W, direction)
    details = {"largest a needed": float(needed.max()), "least published": float(published.min())}
    return Measurement(float((needed - published).max()), len(W), details)


def _solution(case: CorpusCase, seed: int) -> Float[np.ndarray, "V d"]:
    return feed_forward_solution(case).W


def _turned_solution(case: CorpusCase, seed: int) -> Float[np.ndarray, "V d"]:
    return turned(feed_forward_solution(case).W, _HALF_A_RADIAN, seed)


_STATEMENT = "gradient of the feed-forward layer along its own direction and the solution's"

FEED_FORWARD_GRADIENT = CLAIMS.claim(
    "feed-forward-gradient",
    "along its own direction the loss falls at most little faster than along the solution",
    statement=_STATEMENT,
    assuming=(REALIZABLE, ORTHONORMAL),
    contrast=Comparison(
        "largest a of <W/|W|, grad> = (1 + a) <W*/|W*|, grad>, less 2|W*| log(2V)/|W|",
        _beyond_published,
        _solution,
        "the same with W* turned by half a radian",
        _turned_solution,
        bound=1e-9,
        reason="rounding; the inequality has slack at every step, and directions more than "
        "arccos(1/(1 + a)) from W* do not meet it",
    ),
    data=realizable,
    note="checked from zero and from a random start, until logits have gaps of 240 or more: where "
    "|W| is small the published a is large and leaves out few directions. No a is needed at all, "
    "see feed-forward-gradient-without-correction",
)


def _needed_anywhere(
    case: CorpusCase, seed: int, direction: Float[np.ndarray, "V d"]
) -> Measurement:
    """The largest a needed at matrices of many lengths and of every angle with the solution."""
    solution, draws = feed_forward_solution(case), generator(seed, purpose="matrices")
    across = draws.normal(size=(len(_ANGLES), *solution.W.shape))
    across -= (across * solution.W).sum((-1, -2), keepdims=True) * solution.W / solution.value**2
    across *= solution.value / np.linalg.norm(across, axis=(-1, -2), keepdims=True)
    angle = _ANGLES[:, None, None]
    rays = np.cos(angle) * solution.W + np.sin(angle) * across
    W = (_GAPS[:, None, None, None] * rays).reshape(-1, *solution.W.shape)
    return Measurement(float(_needed(case, W, direction).max()), len(W))


FEED_FORWARD_GRADIENT_EXACT = CLAIMS.claim(
    "feed-forward-gradient-without-correction",
    "at no matrix does the loss fall faster along its own direction than along the solution",
    statement=f"{_STATEMENT}, without the correction",
    assuming=(REALIZABLE, ORTHONORMAL),
    contrast=Comparison(
        "largest a of <W/|W|, grad> = (1 + a) <W*/|W*|, grad>, wherever W is",
        _needed_anywhere,
        _solution,
        "the same with W* turned by half a radian",
        _turned_solution,
        bound=1e-9,
        reason="rounding: along W* it is an equality",
    ),
    data=realizable,
    note="derived, not quoted: the loss is convex in the gaps and the same whatever their order, "
    "so that it falls most at given sum of gaps where all are the same, and W* is along the sum of "
    "their gradients",
)

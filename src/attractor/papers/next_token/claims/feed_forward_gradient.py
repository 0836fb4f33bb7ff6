"""The direction of the gradient of the feed-forward layer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.files.corpus import CorpusCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.corpus_hypotheses import ORTHONORMAL, REALIZABLE
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import (
    feed_forward_solution,
    feed_forward_weights,
    first_stage,
    with_collocation,
)


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


def _shortfall(case: CorpusCase, seed: int, sign: float) -> Measurement:
    """The shortfall of ``<W/|W|, g>`` from ``(1 + c(W)) <W*/|W*|, g>``, over ``|<W*/|W*|, g>|``."""
    solution = feed_forward_solution(case)
    runs = [first_stage(case, seed), first_stage(case, seed, random=True)]
    W = np.concatenate([feed_forward_weights(run) for run in runs])
    gradients = feed_forward_gradients(case, W)
    norms, norm = np.linalg.norm(W, axis=(-1, -2)), float(solution.value)
    along_own = (W * gradients).sum((-1, -2)) / norms
    along_solution = (solution.W * gradients).sum((-1, -2)) / norm
    correction = 2 * norm * np.log(2 * case.corpus.vocabulary_size) / norms
    missed = (1 + sign * correction) * along_solution - along_own
    return Measurement(float((missed / np.abs(along_solution)).max()), len(W))


FEED_FORWARD_GRADIENT = CLAIMS.claim(
    "feed-forward-gradient",
    "along its own direction the loss falls at most little faster than along the solution",
    statement="gradient of the feed-forward layer along its own direction and the solution's",
    assuming=(REALIZABLE, ORTHONORMAL),
    contrast=Contrast(
        "largest shortfall of <W/|W|, grad> from (1 + 2|W*| log(2V)/|W|) <W*/|W*|, grad>",
        lambda case, seed: _shortfall(case, seed, 1.0),
        "the same with the sign of the correction reversed",
        lambda case, seed: _shortfall(case, seed, -1.0),
        bound=1e-9,
        reason="rounding; the inequality has slack at every step",
    ),
    data=realizable,
    note="checked from zero and from a random start",
)

"""The direction of the gradient of attention along the path of training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.files.corpus import CorpusCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims.attention_path import ASSUMPTIONS
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import (
    attention_solution,
    attention_weights,
    feed_forward_weights,
    longest_context,
    measured,
    plan,
    settled_after,
    two_stages,
)
from attractor.papers.once import once_a_case


class _Gradients(NamedTuple):
    """Gradients at every record but the start, and their products with W and the solution."""

    norms: Float[np.ndarray, "step"]
    along_own: Float[np.ndarray, "step"]
    along_solution: Float[np.ndarray, "step"]
    weights: Float[np.ndarray, "step"]


@once_a_case
def _gradients(case: CorpusCase, seed: int) -> _Gradients:
    W, norm = attention_weights(case, seed), float(attention_solution(case).value)
    W_ov = feed_forward_weights(two_stages(case, seed).feed_forward)[-1]
    found = np.stack([_gradient(case, W_ov, matrix) for matrix in W])
    norms = np.linalg.norm(W, axis=(-1, -2))
    return _Gradients(
        np.linalg.norm(found, axis=(-1, -2)),
        (found * W).sum((-1, -2)) / norms,
        (found * attention_solution(case).W).sum((-1, -2)) / norm,
        norms,
    )


def _gradient(
    case: CorpusCase, W_ov: Float[np.ndarray, "V d"], W: Float[np.ndarray, "d d"]
) -> Float[np.ndarray, "d d"]:
    """The gradient of the cross-entropy in attention, from differences that keep their digits."""
    samples = case.samples
    keys = case.table[np.maximum(samples.contexts, 0)]
    queries = case.table[samples.queries]
    scores = np.where(samples.mask, np.einsum("ntd,de,ne->nt", keys, W, queries), -np.inf)
    attention = softmax(scores, axis=-1)
    logits = np.einsum("nt,ntd,vd->nv", attention, keys, W_ov)
    # The entry of the label is minus the sum of the others, not its probability less one, which
    # has no digits left once that probability is one.
    is_label = samples.labels[:, None] == np.arange(logits.shape[1])
    missed = np.where(is_label, 0.0, softmax(logits, axis=-1))
    missed = np.where(is_label, -missed.sum(-1, keepdims=True), missed)
    gain = np.einsum("nv,vd,ntd->nt", missed, W_ov, keys)
    # Likewise the softmax derivative is a sum over pairs, not a difference from the mean gain.
    pairs = attention[:, :, None] * attention[:, None] * (gain[:, :, None] - gain[:, None])
    pulls = np.einsum("ntk,ntd->nd", pairs, keys)
    return np.einsum("n,nd,ne->de", samples.frequencies, pulls, queries)


def _least_ratio(case: CorpusCase, seed: int, factor: float) -> Measurement:
    """The least cosine of descent with the solution, over a factor times the optimal attention."""
    found = _gradients(case, seed)
    cosine = -found.along_solution / found.norms
    optimal = measured(case, seed)["least_optimal_attention"].to_numpy()
    ratio = float((cosine / (factor * optimal)).min())
    return Measurement(ratio, len(cosine), {"least cosine": float(cosine.min())})


DESCENT_ALONG_SOLUTION = CLAIMS.claim(
    "descent-along-attention-solution",
    "the cosine of descent with W* is at least the optimal attention over 2 |W*|",
    statement="cosine of the gradient of attention with the max-margin solution",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "least cosine of the descent direction with W*, over its bound",
        lambda case, seed: _least_ratio(
            case, seed, 1 / (2 * float(attention_solution(case).value))
        ),
        "the same with the norm multiplied in place of divided by",
        lambda case, seed: _least_ratio(case, seed, 2 * float(attention_solution(case).value)),
        bound=1.0,
        reason="the bound itself",
        sense=">=",
    ),
    data=realizable,
)


def _share_of_correction(case: CorpusCase, seed: int) -> Measurement:
    """The largest a needed in ``<g, W/|W|> >= (1 + a) <g, W*/|W*|>``, over the published one."""
    found = _gradients(case, seed)
    steps = two_stages(case, seed).attention.steps[1:]
    late = steps >= settled_after(case, plan(case).rates[1])
    if not late.any():
        return Measurement(np.nan, 0)
    norm, longest = float(attention_solution(case).value), longest_context(case)
    published = (
        4 * len(case.samples) * longest**2 * norm**2
        * (1 + np.log(2 * longest * found.weights)) / found.weights
    )  # fmt: skip
    needed = found.along_own / found.along_solution - 1
    details = {"needed": float(needed[late].max()), "published": float(published[late].min())}
    return Measurement(float((needed / published)[late].max()), int(late.sum()), details)


DESCENT_ALONG_OWN = CLAIMS.claim(
    "descent-along-own-direction",
    "late in training the loss falls along W at most little faster than along W*",
    statement="gradient of attention along its own direction and the solution's",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "largest a for which <grad, W/|W|> is (1 + a) <grad, W*/|W*|>, over the published a",
        _share_of_correction,
        "the same, compared with the published a with its sign reversed",
        _share_of_correction,
        bound=1.0,
        reason="the bound itself",
        wrong_bound=-1.0,
    ),
    data=realizable,
    note="claimed from step 8 L |W*|^2/eta on; no a is needed where the published one is large. "
    "The proof uses the closed form of W*, which orders with missing relations may not have",
)

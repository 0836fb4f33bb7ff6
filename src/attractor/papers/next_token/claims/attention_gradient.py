"""The gradient of attention, and descent along it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.special import log_softmax, softmax

from attractor.corpora.files.corpus import CorpusCase
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.corpus_hypotheses import CHOICE, ORTHONORMAL, REALIZABLE
from attractor.papers.ledger.claim import once
from attractor.papers.measurements.near_misses import turned
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims.solution import ASSUMPTIONS
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import (
    attention_solution,
    attention_weights,
    explains,
    feed_forward_weights,
    longest_context,
    plan,
    settled_after,
    two_stages,
)
from attractor.support.precision import double_precision

_GAP = 2.0
_PAIRS = 10
Averaging = Callable[[Float[np.ndarray, "N T"], Bool[np.ndarray, "N T"]], Float[np.ndarray, "N T"]]
"""Weights of the tokens of contexts in a mean, from attention and from where tokens are."""


def _identity_error(case: CorpusCase, seed: int, averaging: Averaging) -> Measurement:
    """The largest error of the identity over random matrices, over the largest value."""
    draws = np.random.default_rng([seed, 5])
    size, dimension = case.table.shape
    follows = case.structure.collocation.next_token
    W_ov = np.zeros((size, dimension))
    for token in np.flatnonzero(follows >= 0):
        W_ov[follows[token]] += _GAP * case.table[token]
    matrices, others = draws.standard_normal((2, _PAIRS, dimension, dimension))
    pairs = list(zip(matrices, others, strict=True))
    stated = [(_stated(case, W, averaging) * other).sum() for W, other in pairs]
    with double_precision():
        gradient = jax.jit(jax.grad(lambda W: _loss(case, W_ov, W)))
        found = [(np.asarray(gradient(jnp.asarray(W))) * other).sum() for W, other in pairs]
    error = np.abs(np.array(stated) - np.array(found)).max() / np.abs(found).max()
    return Measurement(float(error), _PAIRS)


def _loss(case: CorpusCase, W_ov: np.ndarray, W: Array) -> Array:
    """The cross-entropy of the distinct samples, for automatic differentiation."""
    samples = case.samples
    keys = case.table[np.maximum(samples.contexts, 0)]
    scores = jnp.einsum("ntd,de,ne->nt", keys, W, case.table[samples.queries])
    attention = jax.nn.softmax(jnp.where(samples.mask, scores, -jnp.inf), axis=-1)
    logits = jnp.einsum("nt,ntd,vd->nv", attention, keys, W_ov)
    logs = jax.nn.log_softmax(logits, axis=-1)
    return -(samples.frequencies * logs[np.arange(len(samples)), samples.labels]).sum()


def _as_attended(
    attention: Float[np.ndarray, "N T"], mask: Bool[np.ndarray, "N T"]
) -> Float[np.ndarray, "N T"]:
    return attention


def _plain(
    attention: Float[np.ndarray, "N T"], mask: Bool[np.ndarray, "N T"]
) -> Float[np.ndarray, "N T"]:
    return mask / mask.sum(-1, keepdims=True)


def _stated(case: CorpusCase, W: np.ndarray, averaging: Averaging) -> Float[np.ndarray, "d d"]:
    """The gradient as published, with tokens compared to a mean of their context."""
    samples, follows = case.samples, case.structure.collocation.next_token
    tokens = np.maximum(samples.contexts, 0)
    keys, queries = case.table[tokens], case.table[samples.queries]
    scores = np.where(samples.mask, np.einsum("ntd,de,ne->nt", keys, W, queries), -np.inf)
    attention = softmax(scores, axis=-1)
    logits = np.zeros((len(samples), len(follows)))
    for row, chosen, weights in zip(logits, tokens, attention, strict=True):
        np.add.at(row, follows[chosen], _GAP * weights)
    predicted = softmax(logits, axis=-1)
    gain = np.take_along_axis(predicted, follows[tokens], axis=1) - explains(case)
    mean = np.einsum("nt,ntd->nd", averaging(attention, samples.mask), keys)
    pulls = np.einsum("nt,nt,ntd->nd", gain, attention, keys - mean[:, None])
    return _GAP * np.einsum("n,nd,ne->de", samples.frequencies, pulls, queries)


GRADIENT_IDENTITY = CLAIMS.claim(
    "attention-gradient-identity",
    "with equal gaps the gradient is a sum over optimal tokens and one over all others",
    statement="gradient of attention for equal logit gaps",
    assuming=(REALIZABLE, ORTHONORMAL, CHOICE),
    contrast=Comparison(
        "largest error of the identity against automatic differentiation, at random matrices",
        _identity_error,
        lambda *_: _as_attended,
        "the same with the plain mean of a context in place of the one that attention weights",
        lambda *_: _plain,
        bound=1e-10,
        reason="rounding: it is algebra",
    ),
    data=realizable,
)


_LAGGING = (7.0, 50.0)
"""Margin of a query that lags behind, and that of all others."""
_MOST_LAGGING = 50
_HALF_A_RADIAN = 0.5
_SMALL = 0.05
"""The published correction that the path is followed to: it leaves out angles above 0.31."""
_CONTINUED = 20


class _Gradients(NamedTuple):
    """Gradients at several matrices, and the least attention on optimal tokens there.

    Each gradient is known up to a positive factor.
    """

    W: Float[np.ndarray, "step d d"]
    gradients: Float[np.ndarray, "step d d"]
    optimal: Float[np.ndarray, "step"]

    def along(self, direction: Float[np.ndarray, "*step d d"]) -> Float[np.ndarray, "step"]:
        """Products of the gradients with directions of length one."""
        lengths = np.linalg.norm(direction, axis=(-1, -2))
        return (self.gradients * direction).sum((-1, -2)) / lengths

    def needed(self, direction: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "step"]:
        """The a of ``<W/|W|, g> = (1 + a) <U, g>``; infinite where U is no descent."""
        along = self.along(direction)
        return np.where(along < 0, self.along(self.W) / along - 1, np.inf)


def _gradients(case: CorpusCase, seed: int, W: Float[np.ndarray, "step d d"]) -> _Gradients:
    W_ov = feed_forward_weights(two_stages(case, seed).feed_forward)[-1]
    found = [_gradient(case, W_ov, matrix) for matrix in W]
    gradients, optimal = zip(*found, strict=True)
    return _Gradients(W, np.stack(gradients), np.array(optimal))


@once
def _on_path(case: CorpusCase, seed: int) -> _Gradients:
    """At every record of training but the start."""
    return _gradients(case, seed, attention_weights(case, seed))


def _gradient(
    case: CorpusCase, W_ov: Float[np.ndarray, "V d"], W: Float[np.ndarray, "d d"]
) -> tuple[Float[np.ndarray, "d d"], float]:
    """The gradient of the cross-entropy in attention up to a factor, and the optimal attention.

    It comes from differences that keep their digits, and from logarithms, so that it is known
    where attention on other tokens is below all floating-point numbers.
    """
    samples = case.samples
    keys = case.table[np.maximum(samples.contexts, 0)]
    queries = case.table[samples.queries]
    scores = np.where(samples.mask, np.einsum("ntd,de,ne->nt", keys, W, queries), -np.inf)
    logs = log_softmax(scores, axis=-1)
    attention = np.exp(logs)
    logits = np.einsum("nt,ntd,vd->nv", attention, keys, W_ov)
    # The entry of the label is minus the sum of the others, not its probability less one, which
    # has no digits left once that probability is one.
    is_label = samples.labels[:, None] == np.arange(logits.shape[1])
    missed = np.where(is_label, 0.0, softmax(logits, axis=-1))
    missed = np.where(is_label, -missed.sum(-1, keepdims=True), missed)
    gain = np.einsum("nv,vd,ntd->nt", missed, W_ov, keys)
    # Likewise the softmax derivative is a sum over pairs, not a difference from the mean gain.
    differences = gain[:, :, None] - gain[:, None]
    with np.errstate(divide="ignore"):
        size = logs[:, :, None] + logs[:, None] + np.log(np.abs(differences))
        size += np.log(samples.frequencies)[:, None, None]
    pairs = np.sign(differences) * np.exp(size - size.max())
    pulls = np.einsum("ntk,ntd->nd", pairs, keys)
    optimal = float(np.where(explains(case), attention, 0.0).sum(-1).min())
    return np.einsum("nd,ne->de", pulls, queries), optimal


@once
def _with_one_lagging(case: CorpusCase, seed: int) -> _Gradients:
    """At multiples of the solution of which the column of one query after another is smaller."""
    queries = np.unique(case.structure.orders.edges[:, 0])[:_MOST_LAGGING]
    least, most = _LAGGING
    lagging = np.arange(case.corpus.vocabulary_size) == queries[:, None, None]
    scores = attention_solution(case).W @ case.table.T
    return _gradients(case, seed, (np.where(lagging, least, most) * scores) @ case.table)


def _least_ratio(case: CorpusCase, seed: int, constant: float) -> Measurement:
    """The least cosine of descent with the solution, over the optimal attention times a constant.

    Along the path all queries are learned alike, and the bound is far. Where one query lags behind
    all descent is in its column, and where that has two tokens alone the bound is near.
    """
    solution = attention_solution(case).W
    every = _on_path(case, seed), _with_one_lagging(case, seed)
    cosines = [-one.along(solution) / np.linalg.norm(one.gradients, axis=(-1, -2)) for one in every]
    least = [
        float((cosine / (constant * one.optimal)).min())
        for cosine, one in zip(cosines, every, strict=True)
    ]
    details = {"least cosine": float(cosines[0].min()), "on the path of training": least[0]}
    return Measurement(min(least), sum(map(len, cosines)), details)


DESCENT_ALONG_SOLUTION = CLAIMS.claim(
    "descent-along-attention-solution",
    "the cosine of descent with W* is at least the optimal attention over 2 |W*|",
    statement="cosine of the gradient of attention with the max-margin solution",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "least cosine of the descent direction with W*, over its bound",
        _least_ratio,
        lambda case, seed: 1 / (2 * float(attention_solution(case).value)),
        "the same with a bound of the optimal attention over |W*|",
        lambda case, seed: 1 / float(attention_solution(case).value),
        bound=1.0,
        reason="the bound itself",
        sense=">=",
    ),
    data=realizable,
    note="published of the path of training, where it is far from binding; measured there and "
    "where one query lags behind all others, where it binds to within sqrt(2)",
)


def _correction(case: CorpusCase, norms: Float[np.ndarray, "step"]) -> Float[np.ndarray, "step"]:
    """The published a at matrices of given norms."""
    norm, longest = float(attention_solution(case).value), longest_context(case)
    most = 4 * len(case.samples) * longest**2 * norm**2
    return most * (1 + np.log(2 * longest * norms)) / norms


@once
def _late(case: CorpusCase, seed: int) -> _Gradients:
    """The path from the published step on, and its continuation along the solution."""
    solution, steps = attention_solution(case), two_stages(case, seed).attention.steps[1:]
    found = _on_path(case, seed)
    path = found.W[steps >= settled_after(case, plan(case).rates[1])]
    if not len(path):
        return _Gradients(path, path, np.zeros(0))
    reached = far = float(np.linalg.norm(path[-1]))
    while _correction(case, np.array([far]))[0] > _SMALL:
        far *= 2
    further = np.geomspace(1, far / reached, _CONTINUED)[1:, None, None] - 1
    continued = path[-1] + further * reached * solution.W / float(solution.value)
    return _gradients(case, seed, np.concatenate([path, continued]))


def _share_of_correction(
    case: CorpusCase, seed: int, direction: Float[np.ndarray, "d d"]
) -> Measurement:
    """The largest a needed in ``<g, W/|W|> >= (1 + a) <g, U>``, over the published one."""
    found = _late(case, seed)
    if not len(found.W):
        return Measurement(np.nan, 0)
    needed = found.needed(direction)
    published = _correction(case, np.linalg.norm(found.W, axis=(-1, -2)))
    details = {
        "needed": float(needed.max()),
        "published, at the first step": float(published[0]),
        "published, at the last": float(published[-1]),
    }
    return Measurement(float((needed / published).max()), len(found.W), details)


DESCENT_ALONG_OWN = CLAIMS.claim(
    "descent-along-own-direction",
    "late in training the loss falls along W at most little faster than along W*",
    statement="gradient of attention along its own direction and the solution's",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "largest a for which <grad, W/|W|> is (1 + a) <grad, W*/|W*|>, over the published a",
        _share_of_correction,
        lambda case, seed: attention_solution(case).W,
        "the same with W* turned by half a radian",
        lambda case, seed: turned(attention_solution(case).W, _HALF_A_RADIAN, seed),
        bound=1.0,
        reason="the bound itself",
    ),
    data=realizable,
    note="claimed from step 8 L |W*|^2/eta on. The published a is above 10 there, and so leaves "
    "out only directions that the loss hardly falls along: the path is continued along W*, to "
    "norms where a is 0.05. The proof uses the closed form of W*, which orders with missing "
    "relations may not have",
)

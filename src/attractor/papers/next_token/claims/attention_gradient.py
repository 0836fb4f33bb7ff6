"""The gradient of attention, for feed-forward layers whose logits have one gap."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.special import softmax

from attractor.corpora.files.corpus import CorpusCase
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.corpus_hypotheses import CHOICE, ORTHONORMAL, REALIZABLE
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import explains
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

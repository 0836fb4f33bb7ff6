"""Cross-entropy with soft labels of a linear decoder: excess and gradient at every magnitude.

The loss of a context splits into a part within its support and one from outside. With ``s`` the
softmax restricted to the support S and q the probability that the decoder gives to tokens outside,

    KL(p || softmax) = KL(p || s) - log(1 - q),
    softmax - p      = (s - p) + q (t - s),

with ``t`` the softmax restricted to the outside. The first part vanishes at a finite matrix, the
second only at infinity, where q may be e^-5000: it carries a log scale of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.attention.gradients.levels import sum_by_levels
from attractor.attention.scaled import Scaled, common_log_scale, relative
from attractor.corpora.linear.contexts import EmbeddedContexts

_TIE_ROUNDINGS = 4
"""Roundings of the terms of two logits below which their difference is none."""
_SERIES = 0.3
"""Size below which ``exp(x) - 1 - x`` is summed up as a series, of this many terms."""
_TERMS = 13
_LARGEST = 700.0
"""Logarithm of about the largest number."""
_EXACT = -36.0
"""Logarithm below which ``log(1 + exp(x))`` is ``exp(x)`` to rounding."""


class Targets(NamedTuple):
    """Contexts as arrays of the loss.

    Attributes:
        embeddings: The embeddings.
        probabilities: Of the tokens that follow each context.
        log_probabilities: Their logarithms; zero outside the support.
        support: Where they are positive.
        log_frequencies: Logarithms of the frequencies.
    """

    embeddings: Float[Any, "*instances m d"]
    probabilities: Float[Any, "*instances m V"]
    log_probabilities: Float[Any, "*instances m V"]
    support: Bool[Any, "*instances m V"]
    log_frequencies: Float[Any, "*instances m"]


class Rows(NamedTuple):
    """The contribution of each context to loss and gradient.

    Attributes:
        within: ``s - p``, zero outside the support.
        beyond: ``t - s`` in units of ``exp(log_beyond) / q``.
        log_terms: Logarithms of the sizes of the entries of ``beyond``, in these units.
        log_beyond: Logarithm of the probability of the likeliest token outside the support; minus
            infinity where there is none.
        log_excess: Logarithm of ``KL(p || softmax)``.
    """

    within: Float[Array, "m V"]
    beyond: Float[Array, "m V"]
    log_terms: Float[Array, "m V"]
    log_beyond: Float[Array, "m"]
    log_excess: Float[Array, "m"]


def targets_of(contexts: EmbeddedContexts) -> Targets:
    """Contexts as arrays of the loss, with their axis of instances if they have one."""
    support = contexts.support
    return Targets(
        contexts.embeddings,
        contexts.probabilities,
        np.log(np.where(support, contexts.probabilities, 1.0)),
        support,
        np.log(contexts.frequencies),
    )


def rows_of(W: Float[Array, "V d"], targets: Targets) -> Rows:
    """The contribution of each context to the loss and to its gradient."""
    inside, p = targets.support, targets.probabilities
    logits = targets.embeddings @ W.T
    ratio, deviation = _ratios(W, logits, targets)
    weights, change = p * jnp.exp(deviation), jnp.expm1(deviation)
    total = weights.sum(-1, keepdims=True)
    shift = (p * change).sum(-1, keepdims=True)
    near = total > 0.5
    s = weights / total
    # Near p the difference softmax - p would cancel: it is formed from the changes instead.
    within = jnp.where(near, p * (change - shift) / jnp.where(near, total, 1), s - p)
    log_total = jnp.where(near, jnp.log1p(shift), jnp.log(total))
    delta = jnp.where(inside, deviation - log_total, 0)  # log s - log p
    rest = p * _exponential_rest(jnp.minimum(delta, 1))
    excess = jnp.where(delta > 1, s - p - p * delta, rest).sum(-1)

    log_inside = ratio + log_total[..., 0]
    outside = jnp.where(inside, -jnp.inf, logits)
    top = outside.max(-1)
    bare = jnp.isneginf(top)  # no token is outside
    gap = outside - jnp.where(bare, 0, top)[..., None]
    others = jnp.exp(gap)
    log_mass = jnp.log(jnp.where(bare, 1, others.sum(-1)))
    odds = jnp.where(bare, -jnp.inf, top + log_mass - log_inside)
    log_s = jnp.where(inside, delta + targets.log_probabilities, 0)
    return Rows(
        within,
        jnp.where(inside, -s * others.sum(-1, keepdims=True), others),
        jnp.where(inside, log_s + log_mass[..., None], gap),
        jnp.where(bare, -jnp.inf, top - jnp.logaddexp(log_inside, top + log_mass)),
        jnp.logaddexp(jnp.log(excess), _log_softplus(odds)),
    )


def log_excess_of(rows: Rows, targets: Targets) -> Float[Array, ""]:
    """Logarithm of ``CE(W) - H``, minus infinity for zero."""
    return jax.nn.logsumexp(rows.log_excess + targets.log_frequencies)


def scaled_gradient_of(rows: Rows, targets: Targets) -> Scaled:
    """``sum_j pi_j (softmax(W h_j) - p_j) h_j^T`` with one scale for all entries.

    Each context is measured in its own largest entry, and only where they are added up are all
    brought to the largest.
    """
    log_within = jnp.log(jnp.abs(rows.within).max(-1))
    log_rows = jnp.maximum(log_within, rows.log_beyond)
    # Beyond that bound ``within`` is zero.
    mantissa = rows.within * jnp.exp(jnp.minimum(-_finite(log_rows), _LARGEST))[..., None]
    mantissa += rows.beyond * relative(rows.log_beyond, _finite(log_rows))[..., None]
    log_rows += targets.log_frequencies
    common = common_log_scale(log_rows)
    return Scaled((mantissa * relative(log_rows, common)[..., None]).T @ targets.embeddings, common)


def entrywise_gradient_of(rows: Rows, targets: Targets) -> Scaled:
    """The same with a scale for every entry.

    A token that is improbable after every context has tiny entries beside those of others, and
    with one-hot embeddings so has every context of its own.
    """
    log_within = jnp.log(jnp.abs(rows.within))
    log_beyond = rows.log_terms + rows.log_beyond[..., None]
    log_terms = jnp.maximum(log_within, log_beyond)
    unit = _finite(log_terms)
    mantissa = jnp.sign(rows.within) * relative(log_within, unit)
    mantissa += jnp.where(targets.support, -1, 1) * relative(log_beyond, unit)
    log_terms = jnp.where(mantissa != 0, log_terms, -jnp.inf) + targets.log_frequencies[..., None]
    largest = common_log_scale(log_terms)

    def pull(share: Array) -> Array:
        return (mantissa * share).T @ targets.embeddings

    def first(floor: Array) -> Array:
        return pull(jnp.where(log_terms >= floor, relative(log_terms, largest), 0))

    return sum_by_levels(first, pull, log_terms, largest)


def _ratios(W: Array, logits: Array, targets: Targets) -> tuple[Array, Array]:
    """The largest ``logit - log p`` of each support, and by how much those of its tokens are less.

    Logits that give the tokens their probabilities differ from them by rounding, which a
    normalized step would follow where nothing else is left: such differences count as none.
    """
    log_p = targets.log_probabilities
    ratio = jnp.where(targets.support, logits - log_p, -jnp.inf)
    top = ratio.max(-1, keepdims=True)
    lengths = jnp.linalg.norm(targets.embeddings, axis=-1)[:, None] * jnp.linalg.norm(W, axis=-1)
    reach = lengths + jnp.abs(log_p)
    most = jnp.where(targets.support, reach, 0).max(-1, keepdims=True)
    tie = _TIE_ROUNDINGS * jnp.finfo(W.dtype).eps * (reach + most)
    difference = ratio - top
    return top[..., 0], jnp.where(targets.support & (difference < -tie), difference, 0)


def _exponential_rest(x: Array) -> Array:
    """``exp(x) - 1 - x``, which is positive, without cancellation."""
    small = jnp.abs(x) < _SERIES
    near = jnp.where(small, x, 0)
    series = jnp.ones_like(x)
    for term in range(_TERMS, 2, -1):
        series = 1 + near / term * series
    return jnp.where(small, near**2 / 2 * series, jnp.expm1(x) - x)


def _log_softplus(x: Array) -> Array:
    """``log log(1 + exp(x))``."""
    tiny = x < _EXACT
    return jnp.where(tiny, x, jnp.log(jax.nn.softplus(jnp.where(tiny, 0, x))))


def _finite(logs: Array) -> Array:
    return jnp.where(jnp.isneginf(logs), 0, logs)

"""Heads that prefer tokens to mixtures: what attention that leaves the best tokens costs."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.attention.excess import log_mean_rise
from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.rows import Rows
from attractor.attention.softmax import softmax_attention
from attractor.tokens import Tokens

_LEAKS = np.append(np.geomspace(1e-8, 0.1, 8), np.linspace(0.2, 1.0, 9))
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Mixing:
    """What leaving the best tokens costs a head, over sampled attention weights.

    With ``q`` the attention of a row on tokens that are not among its best ones, ``gamma*`` their
    score and ``y h(x)`` that of the output,

        least q <= gamma* - y h(x) <= largest q,

    so that a positive ``least`` says that no mixture pleases the head like the best tokens.

    Attributes:
        least: The smallest quotient found; infinite where every row has nothing but best tokens.
        largest: The largest one.
        uneven: How much mixtures of best tokens alone differ in score, over the scores' size.
    """

    least: float
    largest: float
    uneven: float

    @property
    def holds(self) -> bool:
        """Whether every leak costs, and what tokens are best costs nothing, as far as sampled."""
        return self.least > 0 and self.uneven <= _ROUNDING


def measure_mixing(
    tokens: Tokens,
    head: Head,
    best: Bool[np.ndarray, "sequence query token"],
    *,
    samples: int = 400,
    seed: int = 0,
) -> Mixing:
    """Samples how much attention on other than the best tokens costs.

    Attention of every size from 1e-8 to 1 is moved off random mixtures of the best tokens of a
    row: to each other token alone, and to random mixtures of them.

    Args:
        tokens: A single data set with labels.
        head: A head of one prediction.
        best: The best tokens of each row.
        samples: Random mixtures of a row.
        seed: Names them.

    Source: *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), regularization
    path of nonlinear heads.
    """
    random, labels = np.random.default_rng(seed), tokens.labels
    assert labels is not None  # without them no token is best
    quotients, uneven, size = [], 0.0, 0.0
    for sequence, query in np.ndindex(best.shape[:-1]):
        kept = best[sequence, query]
        others = tokens.mask[sequence, query] & ~kept
        label = labels[sequence, query]
        values = tokens.values[sequence]
        inside = _mixtures(values[kept], samples, random)
        score = label * head(values[kept]).max() if label > 0 else -head(values[kept]).min()
        size = max(size, float(np.max(np.abs(head(values)))))
        uneven = max(uneven, float(np.abs(score - label * head(inside)).max()))
        if others.any():
            outside = _mixtures(values[others], samples, random)
            # The difference along the segment, which does not cancel where the leak is small.
            for leak in _LEAKS:
                end = inside + leak * (outside - inside)
                slope = np.asarray(head.mean_gradient(jnp.asarray(inside), jnp.asarray(end)))
                quotients.append(-label * (slope * (outside - inside)).sum(-1))
    if not quotients:
        return Mixing(np.inf, 0.0, uneven / size if size else 0.0)
    found = np.concatenate(quotients)
    return Mixing(float(found.min()), float(found.max()), uneven / size if size else 0.0)


def log_excess_of_mixtures(
    loss: Loss,
    scores: Float[Array, "sequence query token"],
    best: Bool[Array, "sequence query token"],
    head: Head,
    rows: Rows,
) -> Float[Array, ""]:
    """Logarithm of ``L - L_best`` for a head to which all mixtures of the best tokens are equal.

    A row of attention ``q`` on other tokens, whose output runs from the mean ``a`` of the best
    ones towards the mean ``b`` of the others, falls short of the best score by

        gamma* - y h(a + q (b - a)) = -y q <g, b - a>,    g the mean gradient along the way,

    which cancels nowhere. Where some mixture is better than the best tokens it is NaN.

    Args:
        loss: The logistic, exponential or linear loss.
        scores: Attention scores.
        best: The best tokens of each row.
        head: A head of one prediction.
        rows: The data set.
    """
    others = rows.mask & ~best
    values = rows.values[..., None, :, :]
    log_q = _log_sum(scores, others) - _log_sum(scores, rows.mask)
    inside = softmax_attention(scores, values, best)
    way = softmax_attention(scores, values, others) - inside
    slope = head.mean_gradient(inside, inside + jnp.exp(log_q)[..., None] * way)
    cost = -rows.labels * (slope * way).sum(-1)
    leaks = others.any(-1)
    log_delta = jnp.where(leaks, log_q + jnp.log(jnp.where(leaks, cost, 1.0)), -jnp.inf)
    rise = log_mean_rise(loss, log_delta, rows.labels * head(inside))
    return jnp.where((leaks & (cost < 0)).any(), jnp.nan, rise)


def _mixtures(
    values: Float[np.ndarray, "token v"], samples: int, random: np.random.Generator
) -> Float[np.ndarray, "sample v"]:
    """Single values in turn, and then random means of them, some near the edges."""
    count = len(values)
    means = random.dirichlet(np.full(count, 0.5), samples - min(samples // 2, count))
    singles = np.eye(count)[: samples - len(means)]
    return np.concatenate([singles, means])[random.permutation(samples)] @ values


def _log_sum(scores: Array, present: Array) -> Array:
    """Logarithm of the sum of ``exp(scores)``; of none minus infinity, with derivative zero."""
    some = present.any(-1)
    kept = jnp.where(present | ~some[..., None], scores, -jnp.inf)
    return jnp.where(some, jax.nn.logsumexp(kept, axis=-1), -jnp.inf)

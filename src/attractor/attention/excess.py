"""The loss above the best one that attention can reach, and the loss itself, as logarithms.

Once attention saturates, ``L - L_best`` leaves floating point: it falls like exp(-norm). Here it
is put together from differences of token scores, none of which cancels, and never leaves the
logarithm. Meant as a value: derivatives of it follow automatic differentiation and hold wherever
tokens of lower score weigh little; ``scaled_gradient`` gives the direction everywhere.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from attractor.attention.heads import Head, as_head, is_linear
from attractor.attention.heads.prediction_heads import by_attention_head
from attractor.attention.losses import Exponential, Linear, Logistic, Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.rows import Rows
from attractor.attention.softmax import softmax_attention
from attractor.support.errors import InvalidInputError

_TIE_ROUNDINGS = 4
"""Roundings, relative to |v| |x|, within which two token scores are the same."""
_SMALL = -18.0
"""Logarithm below which two terms of a series are exact."""


class TokenScores(NamedTuple):
    """Scores ``gamma_t = y h(x_t)`` of tokens, measured from that of the tokens to be kept.

    Attributes:
        kept: The score of the tokens to be kept.
        log_lower: ``log(kept - gamma_t)`` of tokens below it, minus infinity for all others.
        log_higher: ``log(gamma_t - kept)`` of tokens above it; None where there can be none.
    """

    kept: Float[Array, "sequence query"]
    log_lower: Float[Array, "sequence query token"]
    log_higher: Float[Array, "sequence query token"] | None


def log_excess_loss(
    parameterization: Parameterization,
    loss: Loss,
    parameters: PyTree,
    head: Head,
    rows: Rows,
    selected: Bool[Array, "sequence query token"] | None = None,
) -> Float[Array, ""]:
    """Logarithm of ``L - L_best``, at any magnitude.

    With token scores ``gamma_t = y h(x_t)`` and attention weights ``p``, a row falls short of its
    best score by ``delta = sum_t p_t (gamma_best - gamma_t)``, a sum of positive terms, and

        L - L_best = mean_ik l(gamma_best - delta_ik) - l(gamma_best),

    of which the logistic loss makes ``log1p(expm1(delta) sigmoid(-gamma_best))``. ``L_best`` is
    the infimum over all scores: every row keeps a token of highest score. Of several attention
    heads, whose predictions add up, scores and shortfalls do too. Tokens whose scores
    differ from it by rounding alone share it.

    Args:
        parameterization: What the attention parameters mean.
        loss: The logistic, exponential or linear loss.
        parameters: Attention parameters.
        head: A head that is linear in the outputs.
        rows: The data set.
        selected: Tokens to be kept instead of the best ones; of several in a row, the one of
            highest score counts.

    Returns:
        Minus infinity where there is no excess. With ``selected``, NaN where the loss is below
        that of keeping these tokens.

    Raises:
        InvalidInputError: If the best loss is not that of a token, or not known.

    Source: *Transformers as Support Vector Machines* (arXiv 2308.16898), regularization path.
    """
    head = as_head(head, rows.values.shape[-1])
    parts = parameterization.by_head(parameters)
    heads = by_attention_head(head, len(parts))
    for one in heads:
        check_excess(loss, one)
    scores = [layer.scores(own, rows) for layer, own in parts]
    if len(parts) == 1:
        return log_excess_of_scores(
            loss, scores[0], rows.mask, token_scores(heads[0], rows, selected)
        )
    if selected is not None:
        raise InvalidInputError(
            "selected", f"there are {len(parts)} attention heads", "Give none, or one head"
        )
    tokens = [token_scores(one, rows) for one in heads]
    short = [
        _log_shortfall(own, rows.mask, known) for own, known in zip(scores, tokens, strict=True)
    ]
    kept = functools.reduce(operator.add, (known.kept for known in tokens))
    return log_mean_rise(loss, functools.reduce(jnp.logaddexp, short), kept)


def log_loss(
    parameterization: Parameterization, loss: Loss, parameters: PyTree, head: Head, rows: Rows
) -> Float[Array, ""]:
    """Logarithm of the training loss, for heads that are trained: it too can tend to zero.

    ``log mean_ik log(1 + exp(-u_ik))`` with margins ``u = y h(o)``, to exp(-10000) and beyond.

    Args:
        parameterization: What the attention parameters mean.
        loss: The logistic or the exponential loss.
        parameters: Attention parameters.
        head: The head.
        rows: The data set.

    Raises:
        InvalidInputError: If the loss is not one that tends to zero.

    Source: *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), joint path.
    """
    head = as_head(head, rows.values.shape[-1])
    check_log_loss(loss)
    scores = parameterization.scores(parameters, rows)
    outputs = softmax_attention(scores, rows.values[..., None, :, :], rows.mask)
    return log_loss_of_margins(loss, rows.labels * head(outputs))


def log_loss_of_margins(loss: Loss, margins: Float[Array, "..."]) -> Float[Array, ""]:
    """Logarithm of the mean loss of margins ``y f``."""
    logs = -margins if isinstance(loss, Exponential) else _log_softplus(-margins)
    return jax.nn.logsumexp(logs) - jnp.log(margins.size)


def token_scores(
    head: Head, rows: Rows, selected: Bool[Any, "sequence query token"] | None = None
) -> TokenScores:
    """Scores of all tokens, measured from the best of each row, or of the selected tokens."""
    score = rows.labels[..., None] * head(rows.values)[..., None, :]
    counted = rows.mask if selected is None else rows.mask & selected
    kept = jnp.where(counted, score, -jnp.inf).max(-1)
    # A row without tokens is given a score, so that no NaN reaches its derivative.
    kept = jnp.where(jnp.isneginf(kept), 0, kept)
    reach = head.reach(rows.values)[..., None, :]
    # Scores tie where rounding of the two of them, and no more, sets them apart.
    far = jnp.where(counted & (score == kept[..., None]), reach, 0).max(-1)
    tie = _TIE_ROUNDINGS * jnp.finfo(score.dtype).eps * (reach + far[..., None])
    gap = kept[..., None] - score
    log_lower = _log_where(rows.mask & (gap > tie), gap)
    higher = None if selected is None else _log_where(rows.mask & (-gap > tie), -gap)
    return TokenScores(kept, log_lower, higher)


def log_excess_of_scores(
    loss: Loss,
    scores: Float[Array, "sequence query token"],
    mask: Bool[Array, "sequence query token"],
    tokens: TokenScores,
) -> Float[Array, ""]:
    """Logarithm of the excess of attention scores, for token scores known already."""
    rise, fall = log_rise_and_fall(loss, scores, mask, tokens)
    excess = _log_difference(rise, jnp.minimum(rise, fall))
    return jnp.where(rise >= fall, excess, jnp.nan)


def log_rise_and_fall(
    loss: Loss,
    scores: Float[Array, "sequence query token"],
    mask: Bool[Array, "sequence query token"],
    tokens: TokenScores,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Loss that rows add by not keeping their tokens, and that others save, as logarithms.

    The loss is that of the tokens to be kept, plus the rise, less the fall.
    """
    whole, below = _log_total(scores, mask), _log_shortfall(scores, mask, tokens)
    if tokens.log_higher is None:
        rise = log_mean_rise(loss, below, tokens.kept)
        return rise, jnp.full_like(rise, -jnp.inf)
    above = _log_sum(scores + tokens.log_higher) - whole
    positive = below > above
    log_delta = _log_difference(jnp.maximum(below, above), jnp.minimum(below, above))
    rise = _log_rise(loss, jnp.where(positive, log_delta, -jnp.inf), tokens.kept)
    fall = _log_fall(loss, jnp.where(positive, -jnp.inf, log_delta), tokens.kept)
    rise, fall = _log_sum(rise.ravel()), _log_sum(fall.ravel())
    return rise - jnp.log(whole.size), fall - jnp.log(whole.size)


def _log_total(scores: Array, mask: Array) -> Float[Array, "sequence query"]:
    """Logarithm of the sum of exponentials of the scores of a row."""
    whole = _log_sum(jnp.where(mask, scores, -jnp.inf))
    return jnp.where(mask.any(-1), whole, 0)


def _log_shortfall(
    scores: Float[Array, "sequence query token"],
    mask: Bool[Array, "sequence query token"],
    tokens: TokenScores,
) -> Float[Array, "sequence query"]:
    """Logarithm of what tokens of lower score take from the best one."""
    return _log_sum(scores + tokens.log_lower) - _log_total(scores, mask)


def log_mean_rise(
    loss: Loss, log_delta: Float[Array, "sequence query"], kept: Float[Array, "sequence query"]
) -> Float[Array, ""]:
    """``log mean(l(kept - delta) - l(kept))`` for shortfalls of the score given by logarithms."""
    return _log_sum(_log_rise(loss, log_delta, kept).ravel()) - jnp.log(kept.size)


def check_excess(loss: Loss, head: Head) -> None:
    """Checks that the best loss is that of the best token in each row.

    Raises:
        InvalidInputError: If the loss is not known to decrease with the margin, or if a mixture
            of tokens may please the head more than any token.
    """
    check_decreasing(loss)
    if not is_linear(head):
        raise InvalidInputError(
            "head",
            f"a mixture of tokens may please the head {head.name!r} more than any token, so that "
            "the best loss is not known",
            "Use LinearHead(v), with a ValueMatrix before it if there is one",
        )


def check_decreasing(loss: Loss) -> None:
    """Checks that a loss decreases with the margin, so that its infimum is known.

    Raises:
        InvalidInputError: If it is not known to.
    """
    if not isinstance(loss, Logistic | Exponential | Linear):
        raise InvalidInputError(
            "loss",
            f"the best value that the {loss.name} loss can reach is not known",
            "Use the logistic, exponential or linear loss",
        )


def check_log_loss(loss: Loss) -> None:
    """Checks that a loss is positive and can tend to zero.

    Raises:
        InvalidInputError: If it is not known to.
    """
    if not isinstance(loss, Logistic | Exponential):
        raise InvalidInputError(
            "loss",
            f"the {loss.name} loss is not one that tends to zero as the margins grow",
            "Use the logistic or the exponential loss",
        )


def _log_rise(loss: Loss, log_delta: Array, kept: Array) -> Array:
    """``log(l(kept - delta) - l(kept))``."""
    if isinstance(loss, Linear):
        return log_delta
    delta, small, safe = _delta(log_delta)
    log_expm1 = jnp.where(small, log_delta + delta / 2, safe + jnp.log(-jnp.expm1(-safe)))
    if isinstance(loss, Exponential):
        return log_expm1 - kept
    return _log_softplus(jax.nn.log_sigmoid(-kept) + log_expm1)


def _log_fall(loss: Loss, log_delta: Array, kept: Array) -> Array:
    """``log(l(kept) - l(kept + delta))``."""
    if isinstance(loss, Linear):
        return log_delta
    delta, small, safe = _delta(log_delta)
    log_loss = jnp.where(small, log_delta - delta / 2, jnp.log(-jnp.expm1(-safe)))
    if isinstance(loss, Exponential):
        return log_loss - kept
    x = jax.nn.log_sigmoid(-kept) + log_loss
    tiny = x < _SMALL
    mild = jnp.where(tiny, -1.0, x)
    return jnp.where(tiny, x + jnp.exp(x) / 2, jnp.log(-jnp.log1p(-jnp.exp(mild))))


def _delta(log_delta: Array) -> tuple[Array, Array, Array]:
    """The number, whether it is small, and a number to put in its place where it is."""
    small = log_delta < _SMALL
    return jnp.exp(log_delta), small, jnp.exp(jnp.where(small, 0.0, log_delta))


def _log_softplus(x: Array) -> Array:
    """``log log(1 + exp(x))``."""
    small = x < _SMALL
    tiny = x - jnp.exp(jnp.minimum(x, _SMALL)) / 2
    return jnp.where(small, tiny, jnp.log(jax.nn.softplus(jnp.where(small, 0.0, x))))


def _log_where(present: Array, value: Array) -> Array:
    return jnp.where(present, jnp.log(jnp.where(present, value, 1)), -jnp.inf)


def _log_sum(logs: Array) -> Array:
    """Logarithm of the sum along the last axis, whose derivative is zero where there is none."""
    some = (logs > -jnp.inf).any(-1)
    return jnp.where(some, jax.nn.logsumexp(jnp.where(some[..., None], logs, 0), axis=-1), -jnp.inf)


def _log_difference(larger: Array, smaller: Array) -> Array:
    """Logarithm of a difference of numbers given by their logarithms."""
    none = jnp.isneginf(smaller)
    equal = larger <= smaller
    gap = jnp.where(none | equal, -1.0, smaller - larger)
    rest = jnp.where(equal, -jnp.inf, larger + jnp.log(-jnp.expm1(gap)))
    return jnp.where(none, larger, rest)

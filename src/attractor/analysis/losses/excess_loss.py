"""The training loss above that of the selected tokens, as a logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, logsumexp

from attractor.attention import Exponential, Head, Linear, Loss
from attractor.attention.excess import check_excess
from attractor.support.errors import InvalidInputError

_TIE_ROUNDINGS = 4
"""Roundings, relative to |v| |x|, within which two token scores are the same."""
_UNDERFLOWS = -600.0
"""Below this logarithm of a number its square is no float, and first order is exact."""


def has_excess_loss(loss: Loss, head: Head) -> bool:
    """Whether the excess loss is known: for margin losses and heads linear in the outputs."""
    try:
        check_excess(loss, head)
    except InvalidInputError:
        return False
    return True


def log_excess_loss(
    loss: Loss,
    scores: Float[np.ndarray, "batch sequence query token"],
    token_scores: Float[np.ndarray, "*#batch sequence query token"],
    reach: Float[np.ndarray, "*#batch sequence token"],
    selected: Bool[np.ndarray, "*#batch sequence query token"],
) -> Float[np.ndarray, "batch"]:
    """``log(L(W) - L_selected)``, far past where the difference underflows.

    ``L_selected`` is the loss with all attention of every row on its selected token of highest
    token score ``gamma``. A row falls short of it by ``delta = sum_t p_t (gamma_selected -
    gamma_t)``, which is added up as a logarithm with a sign, and the loss rises by
    ``l(gamma_selected - delta) - l(gamma_selected)``, without the subtraction. It is the value of
    ``attention.excess.log_excess_loss`` for measuring, which needs no compilation.

    Args:
        loss: The logistic, exponential or linear loss.
        scores: Attention scores, minus infinity where masked.
        token_scores: ``gamma = y h(x)``, of a head linear in the outputs.
        reach: ``|v| |x|``, to which the rounding of token scores is relative.
        selected: The tokens to be kept.

    Returns:
        NaN where the loss is below that of the selected tokens, minus infinity where it equals it.
    """
    kept = np.where(selected, token_scores, -np.inf).max(-1)
    place = selected & (token_scores == kept[..., None])
    reach = reach[..., None, :]
    rounding = np.finfo(float).eps * (reach + np.where(place, reach, 0).max(-1, keepdims=True))
    gap = kept[..., None] - np.where(np.isfinite(token_scores), token_scores, kept[..., None])
    gap = np.where(np.abs(gap) > _TIE_ROUNDINGS * rounding, gap, 0.0)
    logits = scores - np.logaddexp.reduce(scores, axis=-1)[..., None]
    log_rise, sign = _log_rise(loss, *_signed_sum(logits, gap), kept)
    rows = kept.shape[-2] * kept.shape[-1]
    total, sign = _signed_sum(log_rise.reshape(-1, rows), sign.reshape(-1, rows))
    return np.where(sign < 0, np.nan, total - np.log(rows))


def _signed_sum(logs: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``sum factors exp(logs)`` along the last axis, as a logarithm and a sign."""
    found: Any = logsumexp(logs, axis=-1, b=factors, return_sign=True)
    return found[0], found[1]


def _log_rise(
    loss: Loss, log_delta: np.ndarray, sign: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``l(kept - delta) - l(kept)`` as a logarithm and a sign."""
    if isinstance(loss, Linear):
        return log_delta, sign
    rise = np.expm1(sign * np.exp(log_delta))
    if isinstance(loss, Exponential):
        log_slope = -kept
        rise = np.exp(log_slope) * rise
    else:
        log_slope = -np.logaddexp(0, kept)
        rise = np.log1p(expit(-kept) * rise)
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(rise))
    return np.where(log_delta < _UNDERFLOWS, log_delta + log_slope, logs), sign

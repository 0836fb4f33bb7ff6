"""Whether softmax of ``k^T q`` is the attention of a module, a head at a time.

Both are compared as shares of what tokens get together, so that a learned sink that takes nearly
all hides nothing. Single precision knows scores of 1e5 to 0.01 alone: a head that rounding may
explain is asked again in double precision, from the same keys and queries.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float

from attractor.heads import CaptureStatus
from attractor.heads.capture.calls import Call, scores_of

AGREES = 1e-4
"""Largest difference of an attention weight that rounding of a softmax explains."""
_SINGLE = torch.finfo(torch.float32)
_LEAST = _SINGLE.tiny / _SINGLE.eps
"""Shares of all tokens together below this are no longer known to rounding in single precision."""
_FURTHER = 8
"""Roundings of a score beside those of its sum: the rotation, the scale, the mask, the softmax."""


def agreement(
    call: Call,
    queries: torch.Tensor,
    keys: torch.Tensor,
    allowed: torch.Tensor,
    chosen: Callable[[torch.Tensor], torch.Tensor] = lambda attention: attention,
) -> tuple[Float[np.ndarray, "heads"], tuple[CaptureStatus, ...]]:
    """How far the attention of a call is from softmax of scores, and what follows for each head.

    Args:
        call: The call, whose attention was seen.
        queries: Queries in double precision, ``(rows, heads, queries, width)``.
        keys: The keys that they meet, likewise, ``(rows, key_heads, tokens, width)``.
        allowed: What each may attend to, ``(rows, heads or 1, queries, tokens)``; those that may
            attend to nothing are left out.
        chosen: From the attention of the call to that of these queries.

    Returns:
        The largest difference of each head, where rounding may be why in double precision, NaN
        where tokens get nothing; and whether it is bilinear, not bilinear, or not determined.
    """
    assert call.weights is not None
    scores = scores_of(queries, keys, call.scaling, call.soft_cap)
    expected = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    there = allowed.any(-1).expand(expected.shape[:-1])
    share, difference = _compared(chosen(call.weights), expected)
    explained = torch.zeros_like(difference)
    if not bool((difference <= AGREES)[there].all()):
        exact = call.again()
        if exact is None:
            explained = _by_rounding(call, queries, keys, allowed)
        else:
            again = _compared(chosen(exact), expected)[1]
            difference = torch.where(difference <= AGREES, difference, again)
    difference = torch.where(there, difference, 0.0)
    differs = (difference > AGREES + explained).any(2).any(0)
    agrees = ((difference <= AGREES) & ((share >= _LEAST) | ~there)).all(2).all(0)
    words = (CaptureStatus.NOT_DETERMINED, CaptureStatus.BILINEAR, CaptureStatus.NOT_BILINEAR)
    status = torch.where(differs, 2, agrees.long()).tolist()
    return difference.amax((0, 2)).numpy(), tuple(words[one] for one in status)


def _compared(attention: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What tokens get together, and the largest difference of a token's share of that."""
    attention = attention.detach().cpu().double()
    share = attention.sum(-1)
    known = torch.where(share >= _LEAST, share, torch.nan)
    return share, (attention / known[..., None] - expected).abs().amax(-1)


def _by_rounding(
    call: Call, queries: torch.Tensor, keys: torch.Tensor, allowed: torch.Tensor
) -> torch.Tensor:
    """The largest difference that rounding of scores in the model's own precision explains.

    A sum of ``width`` products is wrong by as many half units of rounding of the sum of their
    sizes at most; where scores are wrong by r at most, weights are by ``tanh(r / 2)``.
    """
    unit = torch.finfo(call.query.dtype).eps / 2
    sizes = scores_of(queries.abs(), keys.abs(), abs(call.scaling), None)
    largest = sizes.masked_fill(~allowed, 0.0).amax(-1)
    return torch.tanh((queries.shape[-1] + _FURTHER) * unit * largest / 2)

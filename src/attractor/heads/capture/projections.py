"""The matrices of queries and keys, found by what modules give, and whether they make attention.

No module is known by its name. Inside of an attention module every module that takes what the
layer reads, and gives something for each token, may be a projection; it is one if the columns of
what it gives are those of the queries or keys that attention is called with. Its matrix is what it
gives for the unit vectors, less what it gives for zero, and is believed if it gives the queries or
keys of whole texts to rounding. So weights may be stored in any way, fused, interleaved or adapted.

Attention and the softmax of ``k^T q`` are compared as shares of what tokens get together, so that a
learned sink that takes nearly all hides nothing. Single precision knows scores of 1e5 to 0.01
alone: a head that rounding may explain is asked again in double precision, from the same keys and
queries.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from attractor.heads import CaptureStatus, Projections
from attractor.heads.capture.calls import Call, scores_of
from attractor.heads.capture.frame import UNROTATED, Frame

_SAMPLE = 64
"""Tokens by which columns are told apart."""
_ROUNDING = 8
"""Units of rounding that a sum may be wrong by, times the root of the number of its terms."""
_UNIT = 2.0**20
"""Length of the unit vectors, which makes a bias small beside weights; a power of two is exact."""
_AT_ONCE = 512
"""Unit vectors that a module is given at once."""


class Watched:
    """What the modules inside of the attention module that runs were given and gave."""

    def __init__(self) -> None:
        """Starts with nothing."""
        self._read: list[torch.Tensor] = []
        self._made: list[tuple[torch.nn.Module, torch.Tensor, torch.Tensor]] = []
        self._asking = False

    def begin(self, module: torch.nn.Module, given: tuple[Any, ...], named: Any) -> None:
        """Notes what an attention module reads, as it begins."""
        every = (*given, *named.values())
        self._read = [one for one in every if isinstance(one, torch.Tensor) and one.ndim == 3]
        self._made = []

    def note(self, module: torch.nn.Module, given: tuple[Any, ...], made: Any) -> None:
        """Notes what a module inside made of what the layer reads."""
        if self._asking or len(given) != 1 or not isinstance(made, torch.Tensor):
            return
        if made.ndim == 3 and any(_same(given[0], one) for one in self._read):
            self._made.append((module, given[0], made))

    def projections(self, call: Call, frame: Frame | None) -> Projections | None:
        """The matrices of a call of attention; None where that of queries is not known.

        Args:
            call: The call.
            frame: The frame of its layer; keys that were rotated have no matrix.
        """
        if frame is None:
            return None
        queries = call.query if call.rotary is None else frame.turned_back(call.query, *call.rotary)
        precision = queries.dtype  # of rotations it is single in any model
        self._asking = True
        try:
            found = self._affine(queries, precision if frame == UNROTATED else torch.float32)
            key = self._affine(call.key, precision) if found and frame == UNROTATED else None
        finally:
            self._asking = False
        if found is None:
            return None
        matrix, bias = found
        return Projections(
            _numpy(call.scaling * matrix, queries),
            None if bias is None else _numpy(call.scaling * bias, queries),
            None if key is None else _numpy(key[0], queries),
        )

    def _affine(
        self, vectors: torch.Tensor, precision: torch.dtype
    ) -> tuple[torch.Tensor, torch.Tensor | None] | None:
        """The matrix and bias of heads ``(batch, heads, tokens, width)``, in double precision."""
        rounding = _ROUNDING * torch.finfo(precision).eps
        heads, tokens, width = vectors.shape[1:]
        wanted = vectors.transpose(1, 2).reshape(-1, heads * width)
        for module, given, made in reversed(self._made):  # whole modules before their parts
            if given.shape[:2] != (len(vectors), tokens) or made.shape[:2] != given.shape[:2]:
                continue
            found = _columns(wanted, made.flatten(0, 1), rounding)
            if found is None:
                continue
            columns, factors = found
            matrix, bias = _weights(module, given, columns)
            matrix, bias = matrix.mul_(factors[:, None]), bias.mul_(factors)
            if _gives(matrix, bias, given.flatten(0, 1), wanted, rounding):
                matrix = matrix.reshape(heads, width, -1)
                has_bias = any(one.ndim == 1 for one in module.parameters()) or bool(bias.any())
                return matrix, bias.reshape(heads, width) if has_bias else None
        return None


@contextlib.contextmanager
def watching(modules: Iterable[torch.nn.Module]) -> Iterator[Watched]:
    """Watches attention modules, while the block runs the model.

    Args:
        modules: The modules that call attention.
    """
    watched, handles = Watched(), []
    attention = set(modules)
    inside = {one for module in attention for one in module.modules()} - attention
    try:
        for module in attention:
            handles.append(module.register_forward_pre_hook(watched.begin, with_kwargs=True))
        for module in inside:
            handles.append(module.register_forward_hook(watched.note))
        yield watched
    finally:
        for handle in handles:
            handle.remove()


def _same(one: Any, other: torch.Tensor) -> bool:
    return one is other or (isinstance(one, torch.Tensor) and torch.equal(one, other))


def _columns(
    wanted: torch.Tensor, made: torch.Tensor, rounding: float
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The column of ``made`` that each column of ``wanted`` is a positive multiple of."""
    sample = torch.linspace(0, len(made) - 1, min(_SAMPLE, len(made)), device=made.device).long()
    one, other = _directions(wanted[sample]), _directions(made[sample])
    columns = torch.cat([(part @ other.T).argmax(-1) for part in one.split(_AT_ONCE)])
    chosen, given = made[sample].double()[:, columns], wanted[sample].double()
    squares = chosen.square().sum(0)
    factors = torch.where(squares > 0, (chosen * given).sum(0) / squares, 1.0)
    factors[(factors - 1).abs() <= rounding] = 1.0
    largest = given.square().mean().sqrt() + given.abs()
    same = (given - factors * chosen).abs() <= rounding * largest
    return (columns, factors) if bool(same.all()) else None


def _directions(columns: torch.Tensor) -> torch.Tensor:
    """Columns as rows of length one; those of zeros have a direction of their own."""
    rows = columns.double().T
    rows = torch.cat([rows, (rows == 0).all(-1, keepdim=True)], -1)
    return rows / rows.norm(dim=-1, keepdim=True)


def _weights(
    module: torch.nn.Module, given: torch.Tensor, columns: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the matrix of a module and of its bias; its own hooks, if any, are not run."""
    hidden = given.shape[-1]
    bias = module.forward(given.new_zeros(1, 1, hidden))[0, 0, columns].double()
    matrix = torch.empty(len(columns), hidden, dtype=torch.float64, device=given.device)
    for first in range(0, hidden, _AT_ONCE):
        units = given.new_zeros(1, min(_AT_ONCE, hidden - first), hidden)
        units[0].diagonal(first).fill_(_UNIT)
        made = module.forward(units)[0][:, columns].double()
        matrix[:, first : first + _AT_ONCE] = ((made - bias) / _UNIT).T
    return matrix, bias


def _gives(
    matrix: torch.Tensor,
    bias: torch.Tensor,
    given: torch.Tensor,
    wanted: torch.Tensor,
    rounding: float,
) -> bool:
    """Whether a matrix and a bias give what is wanted, to rounding."""
    size, rows = matrix.norm(dim=-1), (given.split(_AT_ONCE), wanted.split(_AT_ONCE))
    for inputs, outputs in zip(*rows, strict=True):
        exact = inputs.double()
        error = (exact @ matrix.T + bias - outputs.double()).abs()
        largest = exact.norm(dim=-1, keepdim=True) * size + bias.abs()
        if not bool((error <= rounding * math.sqrt(given.shape[-1]) * largest).all()):
            return False
    return True


def _numpy(tensor: torch.Tensor, like: torch.Tensor) -> Float[np.ndarray, "..."]:
    return tensor.to(like.dtype).cpu().numpy()


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

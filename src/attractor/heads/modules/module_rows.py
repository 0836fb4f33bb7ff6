"""What the heads of an attention module see on a batch, and the matrices that made it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from attractor.heads import CaptureStatus, Projections
from attractor.heads.captured.trained_matrix import coordinates
from attractor.support.errors import InvalidInputError

Multihead = torch.nn.MultiheadAttention
"""PyTorch's own attention module."""


@dataclasses.dataclass(frozen=True, eq=False)
class ModuleRows:
    """Keys and queries of all heads of a module: scores are ``k^T q`` up to a constant of a query.

    Attributes:
        keys: Keys, ``(sequences, key_heads, tokens, width)``.
        queries: Queries, any scale of the scores included, ``(sequences, heads, rows, width)``.
        allowed: Tokens that a query may attend to, ``(sequences, heads or 1, rows, tokens)``.
        rows: False where a query is padding, ``(sequences, rows)``.
        projections: The matrices that made them; None where they are not known.
        status: Whether these scores are those of the module's own attention, for every head.
    """

    keys: Float[np.ndarray, "n key_heads T width"]
    queries: Float[np.ndarray, "n heads K width"]
    allowed: Bool[np.ndarray, "n 1 K T"]
    rows: Bool[np.ndarray, "n K"]
    projections: Projections | None
    status: tuple[CaptureStatus, ...]

    def head(
        self, head: int, rows: Bool[np.ndarray, "n K"]
    ) -> tuple[tuple[Any, ...], Float[np.ndarray, "d e"]]:
        """What a head sees under some queries, as ``Tokens`` takes it, and its matrix."""
        shared = head * self.keys.shape[1] // len(self.status)
        keys, queries, left, right = coordinates(
            self.keys[:, shared], self.queries[:, head], self.projections, head, shared
        )
        mask = self.allowed[:, head if self.allowed.shape[1] > 1 else 0]
        return (keys, queries, mask, rows), left.T @ right


def multihead_rows(module: Multihead, given: Mapping[str, Any]) -> ModuleRows:
    """What the heads of PyTorch's attention see.

    A bias of keys adds the same to all scores of a query, and is left out. Where there are tokens
    beside those given, the learned one of ``add_bias_kv`` or the zero of ``add_zero_attn``, it
    does not, and what a key is made of has two entries more: keys are ``[K, c, k] (x, 1, 0)``,
    the learned token is ``(0, 0, 1)``, and zero is zero.

    Args:
        module: The module.
        given: The arguments it was called with, by name.

    Raises:
        InvalidInputError: If a mask adds numbers to scores.
        NotFiniteError: If weights are not finite.
    """
    batched = given["query"].ndim == 3
    axes = (lambda one: one[None]) if not batched else (lambda one: one)
    if batched and not module.batch_first:
        axes = functools.partial(torch.transpose, dim0=0, dim1=1)
    z, x = (_exact(axes(given[name])) for name in ("query", "key"))
    heads, width = module.num_heads, module.head_dim
    if module.in_proj_weight is not None:
        Q, K, _ = _exact(module.in_proj_weight).reshape(3, heads, width, -1)
    else:
        Q = _exact(module.q_proj_weight).reshape(heads, width, -1)
        K = _exact(module.k_proj_weight).reshape(heads, width, -1)
    biases = module.in_proj_bias
    b = c = np.zeros((heads, width))
    if biases is not None:
        b, c, _ = _exact(biases).reshape(3, heads, width)
    allowed = _multihead_allowed(module, given, batched, (len(x), z.shape[1], x.shape[1]))
    extra = (module.bias_k is not None) + module.add_zero_attn
    if extra:
        learned = np.zeros((heads, width))
        if module.bias_k is not None:
            learned = _exact(module.bias_k).reshape(heads, width)
        K = np.concatenate([K, c[..., None], learned[..., None]], -1)
        x = np.pad(x, ((0, 0), (0, extra), (0, 2)))
        x[:, :-extra, -2] = 1.0
        x[:, -extra, -1] = module.bias_k is not None
        allowed = np.pad(allowed, ((0, 0), (0, 0), (0, 0), (0, extra)), constant_values=True)
    scale = 1 / math.sqrt(width)
    queries = np.einsum("hwe,nke->nhkw", Q, z) + b[:, None]
    padding = given.get("key_padding_mask")
    rows = np.ones(z.shape[:2], dtype=bool)
    if padding is not None and given["query"] is given["key"]:
        rows = ~_forbidden("key_padding_mask", padding).reshape(rows.shape)
    return ModuleRows(
        np.einsum("hwd,ntd->nhtw", K, x),
        scale * queries,
        allowed,
        rows,
        Projections(scale * Q, None if biases is None else scale * b, K),
        (CaptureStatus.BILINEAR,) * heads,
    )


def _multihead_allowed(
    module: Multihead, given: Mapping[str, Any], batched: bool, shape: tuple[int, int, int]
) -> Bool[np.ndarray, "n heads K T"]:
    """What the masks of a call let queries attend to."""
    n, K, T = shape
    allowed = np.ones((n, 1, K, T), dtype=bool)
    if given.get("attn_mask") is not None:
        forbidden = _forbidden("attn_mask", given["attn_mask"])
        if forbidden.ndim == 3:
            forbidden = forbidden.reshape(n, module.num_heads, K, T)
        allowed = allowed & ~forbidden
    if given.get("key_padding_mask") is not None:
        padding = _forbidden("key_padding_mask", given["key_padding_mask"])
        allowed = allowed & ~padding.reshape(n, 1, 1, T)
    return allowed


def _forbidden(name: str, mask: torch.Tensor) -> Bool[np.ndarray, "..."]:
    """What a mask forbids: True, or minus infinity."""
    array = mask.detach().cpu()
    if not array.is_floating_point():
        return array.bool().numpy()
    if bool(((array != 0) & (array > torch.finfo(array.dtype).min / 2)).any()):
        raise InvalidInputError(
            name,
            "it adds numbers to scores: no matrix stands for such heads",
            "Watch modules whose masks allow or forbid",
        )
    return (array != 0).numpy()


def _exact(tensor: torch.Tensor) -> Float[np.ndarray, "..."]:
    return tensor.detach().double().cpu().numpy()

"""The systems ``(sum_i B_i B_i^T + diag) x = r`` of interior-point methods, in batches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from attractor.margin.batching.batches import inverses, solutions

Solve: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""From right-hand sides ``(k, m)`` to solutions."""

Factor: TypeAlias = Callable[[list[np.ndarray], np.ndarray], Solve]
"""From blocks ``(k, m, n_i)`` and a diagonal ``(k, m)`` to a solver; NaN where it is singular."""

_GUARD = 1e-13
"""Added to the diagonal, relative to it: repeated equalities make a system singular."""


def factor_gram(
    blocks: list[Float[np.ndarray, "k m _"]], diagonal: Float[np.ndarray, "k m"]
) -> Solve:
    """Forms the matrix: fast, but the squared condition of the blocks enters."""
    matrix = diagonal[:, :, None] * np.eye(diagonal.shape[-1])
    for block in blocks:
        matrix += block @ np.swapaxes(block, -1, -2)
    place = np.arange(diagonal.shape[-1])
    matrix[:, place, place] *= 1 + _GUARD
    return functools.partial(solutions, matrix)


def factor_orthogonally(
    blocks: list[Float[np.ndarray, "k m _"]], diagonal: Float[np.ndarray, "k m"]
) -> Solve:
    """Decomposes the blocks themselves: slower, and accurate where the matrix is not."""
    size = np.sqrt(sum(np.einsum("kmn,kmn->km", block, block) for block in blocks) + diagonal)
    last = np.sqrt(diagonal)[:, :, None] * np.eye(diagonal.shape[-1])
    stacked = np.concatenate([*blocks, last], axis=-1) / size[:, :, None]
    guard = np.broadcast_to(_GUARD * np.eye(diagonal.shape[-1]), last.shape)
    system = np.swapaxes(np.concatenate([stacked, guard], axis=-1), -1, -2)
    inverse = inverses(np.asarray(np.linalg.qr(system, mode="r")))

    def solve(right: Float[np.ndarray, "k m"]) -> Float[np.ndarray, "k m"]:
        right = right / size
        x = np.zeros_like(right)
        for _ in range(3):
            rest = right - _times(stacked, _times(np.swapaxes(stacked, -1, -2), x))
            x = x + _times(inverse, _times(np.swapaxes(inverse, -1, -2), rest))
        return x / size

    return solve


def _times(
    matrices: Float[np.ndarray, "k m n"], vectors: Float[np.ndarray, "k n"]
) -> Float[np.ndarray, "k m"]:
    """Matrices times vectors."""
    return (matrices @ vectors[..., None])[..., 0]

"""Data whose best tokens are those of a planted attention matrix, seen and unseen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attractor.geometry import Geometry
from attractor.randomness import generator
from attractor.tokens import Tokens

LENGTH, DIMENSION = 5, 10
"""Tokens in a sequence, and their dimension."""
MARGIN = 0.1
"""By how much the best token of every sequence leads, with a planted matrix of norm 1."""


class Inputs(NamedTuple):
    """Sequences of several data sets.

    Attributes:
        keys: Unit tokens.
        queries: Unit queries.
        best: The token that the planted matrix attends to most.
    """

    keys: Float[np.ndarray, "instance sequence token d"]
    queries: Float[np.ndarray, "instance sequence d"]
    best: Int[np.ndarray, "instance sequence"]

    def first(self, count: int) -> Inputs:
        """The first sequences of every data set."""
        return Inputs(*(array[:, :count] for array in self))

    def tokens(self, count: int | None = None) -> Tokens:
        """Labeled tokens; the value of a token, and so its score, is 1 if it is the best, else 0.

        Args:
            count: How many sequences may be learned from: others keep but one token, and so have
                no gradient. All if None.
        """
        values = (np.arange(self.keys.shape[2]) == self.best[..., None]).astype(float)
        labels = np.ones(self.best.shape)
        learned = np.arange(self.keys.shape[1]) < (self.keys.shape[1] if count is None else count)
        mask = learned[:, None] | (np.arange(self.keys.shape[2]) == 0)
        mask = np.broadcast_to(mask, self.keys.shape[:3])
        return Tokens(self.keys, self.queries, labels, mask, values[..., None])

    def margins(
        self, W: Float[np.ndarray, "instance d d"], geometry: Geometry
    ) -> Float[np.ndarray, "instance sequence"]:
        """By how much the best token leads, or is behind, relative to the norm of W."""
        scores = np.einsum("isd,ide,iste->ist", self.queries, np.swapaxes(W, 1, 2), self.keys)
        best = np.arange(scores.shape[-1]) == self.best[..., None]
        lead = scores[best].reshape(self.best.shape) - np.where(best, -np.inf, scores).max(-1)
        return lead / geometry.norm(W)[:, None]


def planted_matrices(rank: int, seeds: range) -> Float[np.ndarray, "instance d d"]:
    """Random matrices of a rank and of Frobenius norm 1, one for each seed."""
    found = []
    for seed in seeds:
        left, right = generator(seed, rank, purpose="planted matrix").standard_normal(
            (2, DIMENSION, rank)
        )
        found.append(left @ right.T / np.linalg.norm(left @ right.T))
    return np.array(found)


def planted_inputs(
    matrices: Float[np.ndarray, "instance d d"], count: int, seeds: range, purpose: str
) -> Inputs:
    """Draws inputs on which the best token of each planted matrix leads by the margin at least.

    Tokens and queries are uniform on the sphere, and drawn again until the margin is there.

    Args:
        matrices: The planted matrices.
        count: Inputs for each.
        seeds: A seed for each.
        purpose: What they are for, ``"training"`` or ``"test"``.
    """
    drawn = [
        _inputs(matrix, count, generator(seed, purpose=f"planted inputs, {purpose}"))
        for matrix, seed in zip(matrices, seeds, strict=True)
    ]
    return Inputs(*(np.stack(arrays) for arrays in zip(*drawn, strict=True)))


def _inputs(
    matrix: Float[np.ndarray, "d d"], count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kept: list[tuple[np.ndarray, ...]] = []
    while sum(len(best) for *_, best in kept) < count:
        keys = _unit(random.standard_normal((1000, LENGTH, DIMENSION)))
        queries = _unit(random.standard_normal((1000, DIMENSION)))
        scores = np.einsum("std,de,se->st", keys, matrix, queries)
        second, first = np.sort(scores, axis=-1)[:, -2:].T
        leads = first - second >= MARGIN
        kept.append((keys[leads], queries[leads], scores[leads].argmax(-1)))
    keys, queries, best = (np.concatenate(arrays)[:count] for arrays in zip(*kept, strict=True))
    return keys, queries, best


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

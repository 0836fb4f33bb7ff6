"""The data of the experiments of *Transformers as Support Vector Machines*."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.attention import LinearHead
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.files.case import Case
from attractor.margin.selection import Selection, token_scores
from attractor.tokens import Tokens


def two_sequences_of_three() -> Case:
    """Two sequences of three tokens in the plane, about (-1, 0) and about (1, 0).

    Keys are normal with standard deviation 0.3, queries and head random unit vectors, labels 1.
    The normal numbers are those of PyTorch's seed 1.
    """
    v, keys, queries = _normal_numbers(1, 3)
    keys = np.float32(0.3) * keys + np.array([[[-1, 0]], [[1, 0]]], np.float32)
    return _case(keys, queries, v, "two sequences of three tokens in the plane")


def two_sequences_of_five() -> Case:
    """Two sequences of five tokens in the plane: one token right, the others about (-1, 0).

    The tokens on the right are (1, .5) and (1, -.5); keys of the others are normal with standard
    deviation 0.5, queries and head random unit vectors, labels 1. The normal numbers are those of
    PyTorch's seed 3.
    """
    v, keys, queries = _normal_numbers(3, 5)
    keys = np.float32(0.5) * keys + np.array([-1, 0], np.float32)
    keys[:, 0] = [[1.0, 0.5], [1.0, -0.5]]
    return _case(keys, queries, v, "two sequences of five tokens in the plane")


def first_best_tokens(tokens: Tokens, head: LinearHead) -> Selection:
    """The token of the highest score in each row, the first of several, as published code takes it.

    With keys in one dimension all tokens are 1 or -1, so that several share the highest score.
    """
    return Selection.from_index(tokens, token_scores(tokens, head).argmax(-1))


def _normal_numbers(seed: int, length: int) -> list[Float[np.ndarray, "..."]]:
    """Head, keys and queries of two sequences in the plane, in the order they are drawn."""
    stream = TorchNormalStream(seed)
    return [stream.normal(*shape) for shape in ((2,), (2, length, 2), (2, 2))]


def _case(keys: np.ndarray, queries: np.ndarray, v: np.ndarray, about: str) -> Case:
    queries, v = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (queries, v))
    keys, queries, v = (a.astype(np.float64) for a in (keys, queries, v))
    return Case(Tokens(keys, queries, np.ones(2)), LinearHead(v), about=about)

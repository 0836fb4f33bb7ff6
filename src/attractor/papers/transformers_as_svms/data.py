"""Data of the claims and figures: in the plane, random, with several tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import ConcaveHead, LinearHead, ReLUHead
from attractor.datasets import unit_tokens
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


SMALL = (3, 4, 4)
"""Sequences, tokens and dimension of small data sets."""


def random_unit_tokens(
    seed: int, size: tuple[int, int, int] = SMALL, parameterization: str = "W", **other: Any
) -> Case:
    """The data set of a seed: random unit tokens, queries and head, and random labels.

    Args:
        seed: Names the data set.
        size: Sequences n, tokens T and dimension d.
        parameterization: What is trained.
        **other: The other attributes of the case.
    """
    drawn, heads = unit_tokens(*size, seeds=[seed])
    head = LinearHead(np.asarray(heads.weight)[0])
    words = "random unit tokens ({}, {}, {}), seed {}".format(*size, seed)
    return Case(drawn[0], head, parameterization, about=words, **other)


def first_token_queries(seed: int, size: tuple[int, int, int] = SMALL) -> Case:
    """The same keys, labels and head, with the first token of each sequence as its query."""
    case = random_unit_tokens(seed, size)
    labels = case.tokens.labels
    assert labels is not None
    tokens = Tokens.self_attention(case.tokens.keys, labels[:, 0])
    return case.replace(tokens=tokens, about=f"{case.about}, first tokens as queries")


def equal_other_scores(
    seed: int, size: tuple[int, int, int] = SMALL, parameterization: str = "W", **other: Any
) -> Case:
    """Random unit tokens and queries; the first token has score 1, all others the same below it."""
    random, (n, length, _) = np.random.default_rng([seed, 23]), size
    tokens = random_unit_tokens(seed, size).tokens
    scores = np.where(np.arange(length) == 0, 1.0, random.uniform(-1.0, 0.5, (n, 1)))
    return Case.from_scores(
        tokens.keys,
        scores,
        queries=tokens.queries,
        parameterization=parameterization,
        about="random unit tokens ({}, {}, {}) of two scores, seed {}".format(*size, seed),
        **other,
    )


def tied_scores(parameterization: str = "W") -> Case:
    """One sequence whose first two tokens share the highest score."""
    return Case.from_scores(
        [[[1.0, 0], [0, 1], [0, 0]]],
        [[1.0, 1, 0]],
        queries=[[1.0, 0]],
        parameterization=parameterization,
    )


def enclosed_token(parameterization: str = "W") -> Case:
    """One sequence whose best token lies between the two others, so that it cannot win."""
    return Case.from_scores(
        [[[0.5, 0], [1, 0], [0, 0]]],
        [[1.0, 0, 0]],
        queries=[[1.0, 0]],
        parameterization=parameterization,
    )


def trapped(start: float = 8.0) -> Case:
    """Two sequences of two tokens with one query, that keep a wrong token for ever from afar.

    Each has one token besides the best, which is a support token. From ``diag(8, 0)`` the second
    sequence stays at its worse token, and the direction is that of ``diag(1, 0)``.

    Args:
        start: The first entry of the matrix that training starts at; the others are zero.
    """
    return Case.from_scores(
        [[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 0.1], [0.0, 0.0]]],
        [[1.0, 0.0], [1.0, 0.0]],
        queries=[[1.0, 0.0], [1.0, 0.0]],
        parameterization="W",
        initial=np.diag([start, 0.0]),
        about=f"trapped sequence from diag({start:g}, 0)",
    )


def relu_data_sets(
    n: int, T: int, d: int, count: int, *, first: int = 1
) -> tuple[Tokens, ReLUHead]:
    """Random unit tokens with random heads ``h(x) = sum_j max((V^T x)_j, 0)``.

    Hidden layer V of Frobenius norm 1, keys, labels ``sign N(0, 1)`` and queries are drawn in this
    order from PyTorch's normal numbers. With labels 1 alone attention keeps one token a sequence,
    so that seeds of such data sets are passed over, as in publication.

    Args:
        n: Sequences in a data set.
        T: Tokens in a sequence.
        d: Dimension, and units of the head.
        count: How many data sets; their numbers are their seeds.
        first: The first seed.
    """
    drawn, seeds, seed = [], [], first
    while len(drawn) < count:
        arrays = _relu_data_set(n, T, d, seed)
        if not (arrays[2] > 0).all():
            drawn.append(arrays)
            seeds.append(seed)
        seed += 1
    hidden, keys, labels, queries = _doubled(drawn)
    tokens = Tokens(keys, queries, labels, instance_numbers=np.array(seeds))
    return tokens, ReLUHead(hidden)


def relu_data_of_positive_labels(n: int, T: int, d: int, seed: int) -> tuple[Tokens, ReLUHead]:
    """The data set of a seed, drawn in the same way, with all labels 1.

    Args:
        n: Sequences.
        T: Tokens in a sequence.
        d: Dimension, and units of the head.
        seed: The seed.
    """
    hidden, keys, labels, queries = (
        array[0] for array in _doubled([_relu_data_set(n, T, d, seed)])
    )
    return Tokens(keys, queries, np.ones_like(labels)), ReLUHead(hidden)


def orthonormal_tokens(
    d: int, seeds: Sequence[int], penalties: Sequence[float]
) -> tuple[Tokens, ConcaveHead]:
    """One sequence of d orthonormal tokens and a head ``h(x) = v^T x - lambda ||x||^2`` each.

    The head v, what the tokens are made from and the query are drawn in this order from PyTorch's
    normal numbers. Tokens are the left singular vectors of a square matrix, computed in double
    precision; labels are 1.

    Args:
        d: Dimension, and tokens in the sequence.
        seeds: The seeds.
        penalties: The factors lambda.

    Returns:
        Instances of all seeds with the first penalty, then with the next, and so on.
    """
    drawn = []
    for seed in seeds:
        stream = TorchNormalStream(seed)
        v, raw, query = (stream.normal(*shape) for shape in ((d,), (1, d, d), (1, d)))
        drawn.append((_unit(v), raw, _unit(query)))
    v, raw, queries = _doubled(drawn)
    keys = np.linalg.svd(raw)[0]
    v, keys, queries = (np.concatenate([one] * len(penalties)) for one in (v, keys, queries))
    tokens = Tokens(keys, queries, np.ones((len(keys), 1)))
    return tokens, ConcaveHead(v, np.repeat(penalties, len(seeds)))


def _relu_data_set(n: int, T: int, d: int, seed: int) -> tuple[np.ndarray, ...]:
    """Hidden layer, keys, labels and queries of a seed."""
    stream = TorchNormalStream(seed)
    hidden, keys, signs, queries = (
        stream.normal(*shape) for shape in ((d, d), (n, T, d), (n,), (n, d))
    )
    labels = np.where(signs > 0, 1, -1)
    return hidden / np.linalg.norm(hidden), _unit(keys), labels, _unit(queries)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scales to unit norm in single precision, as the published code does."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _doubled(drawn: Sequence[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """Arrays over data sets, in double precision."""
    return [np.stack(arrays).astype(np.float64) for arrays in zip(*drawn, strict=True)]

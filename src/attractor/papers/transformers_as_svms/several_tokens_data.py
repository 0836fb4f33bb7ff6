"""Random data sets with nonlinear heads, on which attention keeps several tokens a sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attractor.attention import ConcaveHead, ReLUHead
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.tokens import Tokens


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

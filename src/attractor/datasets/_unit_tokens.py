"""Random unit tokens: the synthetic data of "Transformers as Support Vector Machines"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attractor.attention import LinearHead
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.support.checks import check_count, is_whole, shown
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for, require_memory_for_list
from attractor.support.precision import as_integers
from attractor.tokens import Tokens

_BYTES = 26
"""Bytes that a number drawn takes: in single precision twice, then in double precision twice."""
_SEEDS = "Give a count >= 1 or a list of seeds"


def unit_tokens(n: int, T: int, d: int, *, seeds: int | Sequence[int]) -> tuple[Tokens, LinearHead]:
    """Returns the random data sets of arXiv 2308.16898, one instance per seed.

    The head ``v``, the labels ``sign N(0, 1)``, the keys and the queries are drawn in this order;
    ``v``, every key and every query are scaled to unit norm. The numbers are those of
    ``torch.Generator().manual_seed(seed)``, to about 1e-7, drawn without PyTorch.

    Args:
        n: Sequences in each data set.
        T: Tokens in each sequence.
        d: Dimension of keys and queries.
        seeds: The seeds to draw, or how many of them, counted from 0.

    Returns:
        Tokens with keys ``(instances, n, T, d)``, one query each and labels -1 or +1, and the
        heads ``v`` of shape ``(instances, d)``. An instance's number is its seed.

    Raises:
        InvalidInputError: If a size is not a positive integer, or there is no seed.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> tokens.keys.shape, head.weight.shape
        ((2, 3, 4, 6), (2, 6))
    """
    n, T, d = check_count("n", n), check_count("T", T), check_count("d", d)
    if not is_whole(seeds) and not isinstance(seeds, Sequence | np.ndarray):
        raise InvalidInputError("seeds", f"it is {shown(seeds)}", _SEEDS)
    each = _BYTES * float(n) * (T + 2) * (d + 1)
    for argument, size in (("n", n), ("T", T), ("d", d)):  # first of one data set, then of all
        require_memory_for(
            argument,
            size,
            f"of a data set with {n:,} sequences of {T:,} tokens in {d:,} dimensions",
            each=each / size,
            otherwise="Give smaller sizes",
        )
    given: Any = seeds
    if is_whole(seeds):
        given = range(given)
    require_memory_for_list("seeds", given, each=each)
    if not len(given):
        raise InvalidInputError("seeds", "there is none", _SEEDS)
    listed = list(given) if isinstance(given, range) else given
    numbers = as_integers("seeds", listed, ("seeds",)).tolist()
    stream = TorchNormalStream(numbers[0])
    drawn = [_draw(n, T, d, stream, seed) for seed in numbers]
    v, labels, keys, queries = (
        np.stack(arrays).astype(np.float64) for arrays in zip(*drawn, strict=True)
    )
    tokens = Tokens(keys, queries, labels, instance_numbers=np.array(numbers))
    return tokens, LinearHead(v)


def _draw(n: int, T: int, d: int, stream: TorchNormalStream, seed: int) -> tuple[np.ndarray, ...]:
    stream.restart(seed)
    v, signs, keys, queries = (stream.normal(*shape) for shape in ((d,), (n,), (n, T, d), (n, d)))
    return _unit(v), np.where(signs > 0, 1, -1), _unit(keys), _unit(queries)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scales to unit norm in single precision, as the published code does."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

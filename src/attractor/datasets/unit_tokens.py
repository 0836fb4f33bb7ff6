"""Random unit tokens: the synthetic data of "Transformers as Support Vector Machines"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attractor.attention import LinearHead
from attractor.checks import check_count, is_whole
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.memory import require_memory
from attractor.precision import as_integers
from attractor.tokens import Tokens


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
    """
    for name, size in (("n", n), ("T", T), ("d", d)):
        check_count(name, size)
    if is_whole(seeds):
        numbers: Sequence[int] = range(check_count("seeds", seeds))
    else:
        listed = list(seeds) if isinstance(seeds, range) else seeds
        numbers = as_integers("seeds", listed, ("seeds",)).tolist()
    require_memory(
        "seeds" if len(numbers) > 1 else "n",
        f"{len(numbers):,} data sets of {n} x {T} tokens of dimension {d}",
        needed=24.0 * len(numbers) * n * T * d,
        remedy=lambda available: "Give fewer, or smaller ones",
    )
    drawn = [_draw(n, T, d, seed) for seed in numbers]
    v, labels, keys, queries = (
        np.stack(arrays).astype(np.float64) for arrays in zip(*drawn, strict=True)
    )
    tokens = Tokens(keys, queries, labels, instance_numbers=np.array(numbers))
    return tokens, LinearHead(v)


def _draw(n: int, T: int, d: int, seed: int) -> tuple[np.ndarray, ...]:
    stream = TorchNormalStream(seed)
    v, signs, keys, queries = (stream.normal(*shape) for shape in ((d,), (n,), (n, T, d), (n, d)))
    return _unit(v), np.where(signs > 0, 1, -1), _unit(keys), _unit(queries)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scales to unit norm in single precision, as the published code does."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

"""Draw the reference arrays of data "G" with PyTorch's own CPU generator.

Run once, by hand, with PyTorch installed; the package and its tests never need PyTorch:

    python scripts/draw_unit_tokens.py tests/data/unit_tokens_6_8_10.npz

Every seed draws, in this order and in float32, ``v`` (d,), the labels (n,), the keys (n, T, d) and
the queries (n, d); vectors are scaled to unit norm in float32. The arrays are stored as float32,
which is exact: to use them, cast to float64 as the notebooks of arXiv 2308.16898 do.
"""

import sys
from pathlib import Path

import numpy as np
import torch


def draw(seed: int, n: int = 6, length: int = 8, d: int = 10) -> dict[str, np.ndarray]:
    """Draw the data set of one seed."""
    generator = torch.Generator().manual_seed(seed)
    v = torch.randn(d, generator=generator)
    labels = torch.randn(n, generator=generator)
    keys = torch.randn(n, length, d, generator=generator)
    queries = torch.randn(n, d, generator=generator)
    return {
        "v": (v / v.norm()).numpy(),
        "labels": np.where(labels.numpy() > 0, 1.0, -1.0).astype(np.float32),
        "keys": (keys / keys.norm(dim=-1, keepdim=True)).numpy(),
        "queries": (queries / queries.norm(dim=-1, keepdim=True)).numpy(),
    }


def main(path: str) -> None:
    """Write the arrays of seeds 0..100 to ``path``."""
    drawn = [draw(seed) for seed in range(101)]
    arrays = {name: np.stack([one[name] for one in drawn]) for name in drawn[0]}
    np.savez_compressed(Path(path), **arrays)
    print(path, {name: array.shape for name, array in arrays.items()}, "torch", torch.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])

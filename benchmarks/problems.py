"""The margin problems that benchmarks solve."""

from __future__ import annotations

import numpy as np


def unit_gaussian(instances: int, n: int, T: int, d: int):
    """Tokens uniform on the unit sphere, and those that score highest under a random head."""
    import attractor as at

    rng = np.random.default_rng(0)
    keys = rng.normal(size=(instances, n, T, d))
    queries = rng.normal(size=(instances, n, d))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=-1, keepdims=True)
    head = rng.normal(size=(instances, d))
    labels = rng.choice([-1.0, 1.0], size=(instances, n))
    scores = labels[..., None] * np.einsum("intd,id->int", keys, head)
    tokens = at.Tokens(keys, queries, labels)
    return tokens, at.Selection.from_index(tokens, scores.argmax(-1))

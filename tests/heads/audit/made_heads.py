"""Made-up heads: keys and queries of which it is known what they select, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from attractor.heads import Captured
from attractor.heads.captured.rows import HeadRows, content_tokens, head_rows

DOCUMENTS, TOKENS, WIDTH = 128, 6, 4


def gaussian_arrays(seed: int, heads: int = 1, documents: int = DOCUMENTS) -> dict[str, Any]:
    """Heads of random weights on anisotropic hidden states, with values."""
    random = np.random.default_rng(seed)
    hidden = 3 * WIDTH
    states = random.standard_normal((documents, TOKENS, hidden)) * np.geomspace(3, 0.1, hidden)
    states += np.geomspace(1, 2, hidden)
    weights = random.standard_normal((2, heads, hidden, WIDTH)) / np.sqrt(hidden)
    position = random.integers(TOKENS, size=documents)
    keys = np.einsum("qth,nhw->qntw", states, weights[0])
    return {
        "keys": keys,
        "queries": np.einsum("qh,nhw->qnw", states[np.arange(documents), position], weights[1]),
        "values": np.einsum("qth,nhw->qntw", states, random.standard_normal((heads, hidden, 2))),
        "position": position,
    }


def gaussian_heads(
    seed: int, heads: int = 1, documents: int = DOCUMENTS, **changed: Any
) -> Captured:
    """The same, captured."""
    return Captured.from_arrays(**(gaussian_arrays(seed, heads, documents) | changed))


def rows_of(captured: Captured, head: int = 0) -> HeadRows:
    """The rows of a head of the first layer."""
    layer = captured.layer(0)
    return head_rows(captured, layer, head, content_tokens(captured, layer, 0), 0)


def matching_heads(seed: int) -> Captured:
    """Two heads: one attends to the token of the query's own kind, one is of random weights.

    Its selections are by a larger margin than those of a head with another pairing, and so are
    easier to learn.
    """
    random = np.random.default_rng(seed)
    kinds = random.standard_normal((24, WIDTH))
    kinds /= np.linalg.norm(kinds, axis=-1, keepdims=True)
    which = np.array([random.permutation(24)[:TOKENS] for _ in range(DOCUMENTS)])
    asked = which[np.arange(DOCUMENTS), random.integers(TOKENS, size=DOCUMENTS)]
    keys = kinds[which] + 0.05 * random.standard_normal((DOCUMENTS, TOKENS, WIDTH))
    queries = 4 * kinds[asked] + 0.05 * random.standard_normal((DOCUMENTS, WIDTH))
    other = gaussian_arrays(seed)
    return Captured.from_arrays(
        np.stack([keys, other["keys"][:, 0]], 1), np.stack([queries, other["queries"][:, 0]], 1)
    )

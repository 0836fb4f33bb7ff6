"""The matrices of every head of a transformer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.models.building import Model
from attractor.support.checks import check_kinds


def head_matrices(model: Model) -> dict[str, Float[np.ndarray, "block head ..."]]:
    """The matrices of every head, as arrays over blocks and heads.

    Args:
        model: A transformer of this package.

    Returns:
        ``queries``, ``keys`` and ``values``: the rows ``(head size, width)`` of ``W_Q``, ``W_K``
        and ``W_V`` that belong to a head; ``output``: its columns ``(width, head size)`` of
        ``W_O``; ``W``: the matrix ``W_K^T W_Q / sqrt(head size)`` of shape ``(width, width)``,
        with which the score of a token ``x`` under a query ``z`` is ``x^T W z``.
    """
    check_kinds(model=(model, Model))
    config = model.config
    by_head = (config.blocks, config.heads, config.head_size, config.width)
    layers = [block.attention for block in model.blocks]
    rows = {
        name: np.stack([np.asarray(getattr(layer, name)) for layer in layers]).reshape(by_head)
        for name in ("queries", "keys", "values")
    }
    output = np.stack([np.asarray(layer.output.weight) for layer in layers])
    columns = output.reshape(config.blocks, config.width, config.heads, config.head_size)
    keys, queries = rows["keys"].astype(np.float64), rows["queries"].astype(np.float64)
    return {
        **rows,
        "output": columns.swapaxes(1, 2),
        "W": keys.swapaxes(-1, -2) @ queries / np.sqrt(config.head_size),
    }

"""Audits of heads whose rules are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Results = Iterator[tuple[str, Callable[[], Any]]]


def captured(seed: int = 0) -> Any:
    """Two heads of drawn weights on the hidden states of 40 documents of six tokens."""
    from attractor.heads import Captured

    random = np.random.default_rng(seed)
    states = random.normal(size=(40, 6, 12)) * np.geomspace(3, 0.1, 12)
    weights = random.normal(size=(2, 2, 12, 4)) / 3
    position = random.integers(1, 6, size=40)
    keys = np.einsum("qth,nhw->qntw", states, weights[0])
    queries = np.einsum("qh,nhw->qnw", states[np.arange(40), position], weights[1])
    values = np.einsum("qth,nhw->qntw", states, random.normal(size=(2, 12, 2)))
    return Captured.from_arrays(keys=keys, queries=queries, values=values, position=position)


def audits() -> Results:
    """Heads one by one: rules learned from selections, nulls, margins of training texts."""
    from attractor import heads

    quick = functools.partial(heads.audit_heads, draws=19)
    yield "planted", lambda: quick(heads.planted_heads(60), layers=[0, 1]).data
    yield "drawn", lambda: quick(captured()).data
    yield "training-texts", lambda: quick(captured(1), training_texts=True, margin_draws=19).data


def others() -> Results:
    """Heads over checkpoints, and learning curves.

    The positive control is left out: it trains for 40 seconds, however small it is.
    """
    from attractor import heads

    random = np.random.default_rng(2)
    keys, queries = random.normal(size=(4, 3, 2)), random.normal(size=(4, 2))

    def checkpoint(size: float) -> Any:
        query = np.array([[[1.0, 0.0], [0.0, size]]])
        made = heads.Projections(query=query, key=np.eye(2)[None])
        return heads.Captured.from_arrays(keys, queries @ query[0].T, projections=made)

    both = [checkpoint(1.0), checkpoint(2.0)]
    yield "checkpoints", lambda: heads.audit_checkpoints(both, draws=19).data
    planted = functools.cache(lambda: heads.planted_heads(120))
    yield (
        "curves",
        lambda: heads.learning_curves(
            planted(),
            heads.audit_heads(planted(), draws=19, heads=[(1, 0)], sink_positions=0),
            heads=[(1, 0)],
            draws=2,
        ),
    )


ADAPTERS = {"heads": audits, "other": others}

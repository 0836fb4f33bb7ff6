"""Texts with the attention of heads on them, to be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attractor.heads.captured.captured import Captured
from attractor.heads.captured.rows import sink_count

if TYPE_CHECKING:
    import xarray as xr


def attention_examples(
    captured: Captured, data: xr.Dataset, chosen: Sequence[tuple[int, int]], *, queries: int = 2
) -> xr.Dataset:
    """The attention of some heads on the texts of the same few queries.

    Queries are not chosen by what the heads do there: they are the first of different documents
    that see at least as many tokens as half of all do, and stand neither at the beginning nor at
    the end of the texts.

    Args:
        captured: What was audited.
        data: The arrays of its audit.
        chosen: Layer and number of each head, in the order wanted.
        queries: How many queries of each head.

    Returns:
        Over ``example`` and ``token``: ``token``, ``attention``, ``allowed``, ``content``; over
        ``example``: ``layer``, ``head``, ``document``, ``position`` of the query, ``selected``
        (-1 for none) and ``selected_probability``.
    """
    import xarray as xr

    layers = {layer: captured.layer(layer) for layer in sorted({layer for layer, _ in chosen})}
    first = next(iter(layers.values()))
    shown = _shown(captured, first.allowed.sum(1), queries)
    sinks = sink_count(captured, first, data.attrs["sink_positions"])
    first_places = np.arange(captured.token.shape[1]) < sinks
    content = ~captured.special & ~first_places
    rows: list[dict[str, Any]] = []
    for layer, head in chosen:
        one = data.sel(layer=layer, head=head)
        for query in shown:
            attention = layers[layer].attention[query, head]
            rows.append(
                {
                    "layer": layer,
                    "head": head,
                    "document": captured.document[query],
                    "position": captured.position[query],
                    "selected": int(one["selected"].to_numpy()[query]),
                    "selected_probability": float(one["selected_probability"].to_numpy()[query]),
                    "token": captured.token[query],
                    "attention": attention,
                    "allowed": layers[layer].allowed[query],
                    "content": content[query],
                }
            )
    wide = ("token", "attention", "allowed", "content")
    variables = {
        name: (("example", "token_place") if name in wide else "example", [r[name] for r in rows])
        for name in rows[0]
    }
    return xr.Dataset(variables)


def _shown(captured: Captured, seen: Int[np.ndarray, "queries"], count: int) -> list[int]:
    """The first queries of different documents in the middle of long texts, as far as there are.

    Long is what shows at least the median number of tokens, the middle what lies between the
    quartiles of all places of queries.
    """
    _, firsts = np.unique(captured.document, return_index=True)
    firsts = np.sort(firsts)
    low, high = np.quantile(captured.position[firsts], (0.25, 0.75))
    place = captured.position[firsts]
    long = seen[firsts] >= np.median(seen[firsts])
    middle = (low <= place) & (place <= high)
    best_first = np.lexsort((np.arange(len(firsts)), ~middle, ~long))
    return np.sort(firsts[best_first][:count]).tolist()

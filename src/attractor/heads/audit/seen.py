"""What is seen in the pictures of an audit, in words and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.heads.audit.heads import BEATS_NULLS, name
from attractor.results.seen import listed, spread

if TYPE_CHECKING:
    import xarray as xr

_MOST = 12
"""Heads that are named."""


def map_seen(ordered: Sequence[dict[str, Any]]) -> str:
    """The heads with a frame, the clearest first, and what heads select.

    Args:
        ordered: The heads, the clearest first.
    """
    framed = [one for one in ordered if one["learnable"] in BEATS_NULLS]
    named = {
        name(one): f"accuracy {one['accuracy']:.2f}, {one['deviations_above_null']:.3g} standard "
        f"deviations above its draws, {one['selection'] or 'nothing'}"
        for one in framed[:_MOST]
    }
    selections = Counter(one["selection"] or "nothing" for one in ordered)
    kinds = ", ".join(f"{word} {count}" for word, count in selections.most_common())
    rest = f" And {len(framed) - _MOST} more." if len(framed) > _MOST else ""
    beaten = f"{len(framed)} of {len(ordered)} heads have a frame"
    return f"{beaten}{': ' if named else '.'}{listed(named) if named else ''}{rest} Kinds: {kinds}."


def accuracy_seen(found: Sequence[dict[str, Any]]) -> str:
    """The accuracies of heads that beat the draws, and of the others."""
    tested = [one for one in found if one["accuracy"] is not None]
    parts = {
        words: spread(
            [one["accuracy"] for one in tested if (one["learnable"] in BEATS_NULLS) == is_so]
        )
        for words, is_so in (("heads that beat the draws", True), ("the other heads", False))
    }
    return f"Accuracies. {listed(parts)}"


def texts_seen(shown: xr.Dataset) -> str:
    """The token that each query drawn attends to most."""
    tops = {}
    for number in range(shown.sizes["example"]):
        one = shown.isel(example=number)
        weights = np.where(one["allowed"].to_numpy(), one["attention"].to_numpy(), 0)
        text, top = one["token"].to_numpy(), int(weights.argmax())
        head, query = f"{int(one['layer'])}.{int(one['head'])}", text[int(one["position"])]
        tops[f"{head}, {query!s} in document {int(one['document'])}"] = (
            f"{100 * weights[top]:.0f} % on {text[top]!s}"
        )
    return f"The token that each query attends to most. {listed(tops)}"


def control_seen(control: xr.Dataset) -> str:
    """The range of margin ratios in each row."""
    rows = {}
    for arm in control["arm"].to_numpy():
        for norm in control["norm"].to_numpy():
            ratios = control["margin_ratio"].sel(arm=arm, norm=norm).to_numpy()
            rows[f"{arm}, {norm}"] = spread(ratios)
    return f"Margin ratios. {listed(rows)}"

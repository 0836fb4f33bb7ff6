"""What a head attends to, and how sharply: sinks, places after the query's, effective sizes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.heads.captured.word import Word

_SINK = 0.9
"""Share of queries whose largest attention is on no content, from which the head is a sink."""
_ONE_PLACE = 0.5
"""Share of queries at one place after the query's, from which the head is named by it."""
_DIFFUSE = 0.5
"""Effective size, in parts of the tokens allowed, from which attention is diffuse."""


class Pattern(Word):
    """What a head selects, in a word; an offset is followed by its number."""

    SINK = (
        "sink",
        f"more than {100 * _SINK:.0f} % of queries attend most to a token that is no content, or "
        "to a learned sink, which takes what is missing from one",
    )
    OFFSET = (
        "offset",
        f"of all content, more than {100 * _ONE_PLACE:.0f} % of queries attend most to the token "
        "at one place: +1 is the one after the query, -1 the one before it",
    )
    SELF = "self", f"of all content, more than {100 * _ONE_PLACE:.0f} % attend most to themselves"
    DIFFUSE = (
        "diffuse",
        "none of these, and attention is spread over more than "
        f"{100 * _DIFFUSE:.0f} % of the tokens allowed",
    )
    MIXED = "mixed", "none of these: queries attend most to tokens here and there"


def attention_pattern(
    attention: Float[np.ndarray, "rows tokens"],
    allowed: Bool[np.ndarray, "rows tokens"],
    content: Bool[np.ndarray, "rows tokens"],
    position: Int[np.ndarray, "rows"],
) -> dict[str, float | str]:
    """The variables of question one: shares of sinks and places, largest weights, effective sizes.

    Args:
        attention: The attention of the model itself; what is missing from one is what a learned
            sink takes.
        allowed: Tokens under the model's own mask.
        content: Those of them that are content.
        position: The place of each query.
    """
    seen = np.where(allowed, attention, 0.0).astype(np.float64)
    inside = np.where(content, seen, 0.0)
    missing = np.maximum(1 - seen.sum(-1), 0.0)
    sink = np.maximum((seen - inside).max(-1), missing) > inside.max(-1)
    offsets = inside.argmax(-1) - position
    places, counts = np.unique(offsets, return_counts=True)
    offset, offset_share = int(places[counts.argmax()]), float(counts.max() / len(offsets))
    found: dict[str, float | str] = {
        "sink_mass": float(((seen - inside).sum(-1) + missing).mean()),
        "sink_share": float(sink.mean()),
        "offset": float(offset),
        "offset_share": offset_share,
        "self_share": float((offsets == 0).mean()),
        "top_probability": float(np.median(seen.max(-1))),
        "top_content_probability": float(np.median(_of_one(inside).max(-1))),
        "effective_size": float(np.median(_effective_size(seen))),
        "effective_content_size": float(np.median(_effective_size(inside))),
        "content_size": float(np.median(content.sum(-1))),
    }
    share = np.median(_effective_size(seen) / allowed.sum(-1))
    if sink.mean() > _SINK:
        found["selection"] = Pattern.SINK.value
    elif offset_share > _ONE_PLACE:
        found["selection"] = f"{Pattern.OFFSET} {offset:+d}" if offset else Pattern.SELF.value
    else:
        spread = share > _DIFFUSE
        found["selection"] = (Pattern.DIFFUSE if spread else Pattern.MIXED).value
    return found


def _of_one(weights: Float[np.ndarray, "rows tokens"]) -> Float[np.ndarray, "rows tokens"]:
    """Weights in parts of their sum; alike where they are all zero in floating point."""
    total = weights.sum(-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / weights.shape[-1])


def _effective_size(weights: Float[np.ndarray, "rows tokens"]) -> Float[np.ndarray, "rows"]:
    return 1 / np.square(_of_one(weights)).sum(-1)

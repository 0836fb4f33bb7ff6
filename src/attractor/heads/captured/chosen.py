"""Which heads of those captured are meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attractor.heads.captured.captured import Captured, CapturedLayer
from attractor.support.checks import check_count, check_items, is_whole, shown
from attractor.support.errors import InvalidInputError


def chosen_heads(
    captured: Captured, layers: Sequence[int] | None, heads: Sequence[tuple[int, int]] | None
) -> set[tuple[int, int | None]]:
    """Pairs of a layer and a head, None for all of a layer.

    Args:
        captured: What was captured.
        layers: Numbers of layers; None for all.
        heads: In place of layers, pairs of a layer and a head.

    Raises:
        InvalidInputError: If both are given, something is no number or pair, or a layer was not
            captured.
    """
    if layers is not None and heads is not None:
        raise InvalidInputError("heads", "they stand beside layers", "Give one of the two")
    if heads is None:
        numbers = captured.layers if layers is None else check_items("layers", layers, object, 1)
        found: set[tuple[int, int | None]] = {
            (check_count("layers", one, 0), None) for one in numbers
        }
    else:
        found = set(pairs_of(heads))
    for layer, _ in found:
        if layer not in captured.layers:
            raise InvalidInputError(
                "layers" if heads is None else "heads",
                f"layer {layer} was not captured",
                f"Choose among {captured.layers}",
            )
    return found


def pairs_of(heads: Any) -> list[tuple[int, int]]:
    """Pairs of a layer and a head.

    Raises:
        InvalidInputError: If something is no pair.
    """
    return [_pair(one) for one in check_items("heads", heads, object, 1)]


def heads_of(number: int, layer: CapturedLayer, chosen: set[tuple[int, int | None]]) -> list[int]:
    """The heads chosen of a layer.

    Raises:
        InvalidInputError: If one does not exist.
    """
    if (number, None) in chosen:
        return list(range(layer.heads))
    heads = sorted(head for at, head in chosen if at == number and head is not None)
    for head in heads:
        if not 0 <= head < layer.heads:
            raise InvalidInputError(
                "heads",
                f"layer {number} has no head {head}",
                f"Give heads from 0 to {layer.heads - 1}",
            )
    return heads


def _pair(value: Any) -> tuple[int, int]:
    """A layer and a head."""
    found = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(found, tuple | list) or len(found) != 2 or not all(map(is_whole, found)):
        raise InvalidInputError(
            "heads",
            f"{shown(value)} is no pair of a layer and a head",
            "Give pairs such as (2, 8)",
        )
    return int(found[0]), int(found[1])

"""Numbers of layers, as a person writes them."""

from __future__ import annotations

from collections.abc import Sequence


def listed_layers(numbers: Sequence[int]) -> str:
    """Numbers in rising order: ``"0 to 5"``, or ``"2, 5, 8"`` where some are left out."""
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))

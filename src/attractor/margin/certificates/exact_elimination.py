"""Elimination in tables of whole numbers, exactly (Bareiss 1968)."""

from __future__ import annotations


def eliminate(table: list[list[int]], row: int, column: int, last: int) -> int:
    """Makes all other entries of a column zero, in place; returns the pivot, for the next call.

    The table stands for its numbers over the last pivot, which is 1 at first: no step leaves a
    fraction.
    """
    source, pivot = table[row], table[row][column]
    for i, other in enumerate(table):
        if i != row:
            factor, pairs = other[column], zip(other, source, strict=True)
            table[i] = [(pivot * x - factor * y) // last for x, y in pairs]
    return pivot

"""Comparisons of what is missing of the largest margin in one norm and in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from attractor.geometry import Geometry
from attractor.papers import Comparison, DataSet, Measurement

Data = TypeVar("Data", bound=DataSet)


def beside_another_norm(
    measure: Callable[[Data, int, Geometry], Measurement],
    geometry: Geometry,
    wrong: Geometry,
    *,
    bound: float,
    reason: str,
) -> Comparison[Data, Geometry]:
    """What is missing of the largest margin in a norm, beside what is in another one.

    Args:
        measure: Measures one less the ratio, given the data, a seed and the norm.
        geometry: The norm of the statement.
        wrong: Another one, for the control.
        bound: How much may be missing.
        reason: Why so much.
    """
    return Comparison(
        f"1 - margin of W over the largest one in the {geometry.name} norm",
        measure,
        lambda data, seed: geometry,
        f"the same in the {wrong.name} norm",
        lambda data, seed: wrong,
        bound=bound,
        reason=reason,
    )

"""Numbers in words, for those who cannot see the picture that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

_LEVEL = 0.02
"""A change by less of the larger end is none."""
_ROUNDING = 1e-15
"""What is smaller is zero to rounding, beside numbers such as a cosine."""


def course(values: Float[np.ndarray, "place"]) -> str:
    """How a curve goes from its first number to its last: ``rises from .2 to .99``."""
    known = np.asarray(values, float)[np.isfinite(values)]
    if not len(known):
        return "has no value"
    if np.abs(known).max() < _ROUNDING:
        return "is zero to rounding"
    first, last = known[0], known[-1]
    size = max(abs(first), abs(last))
    word = "stays near" if abs(last - first) <= _LEVEL * size else ""
    ends = f"from {first:.3g} to {last:.3g}"
    said = f"{word} {last:.3g}" if word else f"{'rises' if last > first else 'falls'} {ends}"
    beyond = 0.1 * max(abs(last - first), size)
    if known.max() > max(first, last) + beyond:
        said += f", with {known.max():.3g} at most between"
    if known.min() < min(first, last) - beyond:
        said += f", with {known.min():.3g} at least between"
    return said


def listed(numbers: Mapping[str, str]) -> str:
    """Numbers with their names, in a sentence."""
    return f"{'; '.join(f'{name}: {number}' for name, number in numbers.items())}."


def many(count: int, name: str) -> str:
    """A count with what is counted: ``1 relation``, ``2 relations``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def spread(values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """The range of numbers and their median."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    if not len(known):
        return "no number"
    low, middle, high = np.quantile(known, [0, 0.5, 1])
    return f"{low:.{digits}g} to {high:.{digits}g}, median {middle:.{digits}g}"

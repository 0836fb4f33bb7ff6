"""What was found of each head, put together as labeled arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Found = dict[str, Any]
"""The variables of one head."""


def labeled(
    found: Mapping[tuple[int, ...], Found],
    places: Mapping[str, Sequence[Any]],
    meanings: Mapping[str, str],
    *,
    axes: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int],
    empty: Mapping[str, Any],
) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]]:
    """Arrays of all variables that any head has, as datasets of xarray are made of.

    Args:
        found: The variables of each head, by its place along ``places``.
        places: The axes that say which head it is, with their labels.
        meanings: All variables, each with its meaning.
        axes: Further axes of variables.
        sizes: How long these are.
        empty: What stands where a variable is not known: the empty text for words; else NaN.
    """
    variables = {}
    for name, meaning in meanings.items():
        if not any(name in one for one in found.values()):
            continue
        more, blank = axes.get(name, ()), empty.get(name, np.nan)
        shape = (*map(len, places.values()), *(sizes[axis] for axis in more))
        array = np.full(shape, blank, dtype=object if blank == "" else None)
        for place, one in found.items():
            if name in one:
                array[place] = one[name]
        array = array.astype(str) if blank == "" else array
        variables[name] = ((*places, *more), array, {"long_name": meaning})
    return variables

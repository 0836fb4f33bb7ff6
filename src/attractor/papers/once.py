"""``once_a_case``: functions of a case that remember what they return."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from attractor.papers.assumption import Data

_Further = ParamSpec("_Further")
_Found = TypeVar("_Found")


def once_a_case(
    compute: Callable[Concatenate[Data, _Further], _Found],
) -> Callable[Concatenate[Data, _Further], _Found]:
    """Makes a function compute once for a case and further arguments, which are hashed.

    Assumptions and measurements that need the same solution or run share it so.
    """

    @functools.wraps(compute)
    def remembered(case: Data, *args: _Further.args, **kwargs: _Further.kwargs) -> _Found:
        key = (compute, args, tuple(sorted(kwargs.items())))
        return case.once(key, lambda: compute(case, *args, **kwargs))

    return remembered

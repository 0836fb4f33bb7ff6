"""The methods that solve margin problems, by geometry, and the contract they keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from attractor.errors import InvalidInputError
from attractor.geometry import Geometry
from attractor.margin.scaling import ScaledConstraints

Candidates: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Matrices ``(instances, d, e)`` and multipliers ``(instances, m)`` of a scaled batch."""

Method: TypeAlias = Callable[[ScaledConstraints, np.ndarray], Candidates]
"""From a scaled batch and the multipliers found so far (zero at first) to candidates.

Where a method finds the constraints contradictory it returns a W of NaN and Farkas multipliers,
of any scale; elsewhere multipliers are scaled to ``||sum_j lambda_j a_j b_j^T||_dual = 1``.
Where it has nothing to say it returns a W of NaN and zero multipliers. It says nothing of how
good its answer is: that is for the certificate.
"""

_METHODS: dict[str, tuple[Method, ...]] = {}


def register_methods(geometry: str, *methods: Method) -> None:
    """Sets the methods of a geometry, cheapest first.

    Each later one is tried only on the instances whose certificate is not yet tight enough.
    """
    _METHODS[geometry] = methods


def methods_for(geometry: Geometry) -> tuple[Method, ...]:
    """The methods of a geometry.

    Raises:
        InvalidInputError: If margin problems cannot be solved in it.
    """
    if geometry.name not in _METHODS:
        raise InvalidInputError(
            "geometry",
            f"no solver is known for {geometry.name!r}",
            f"Solvers are known for: {', '.join(sorted(_METHODS))}",
        )
    return _METHODS[geometry.name]

"""The methods that solve margin problems, by geometry, and the contract they keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from attractor.errors import InvalidInputError
from attractor.geometry import Geometry, has_norm_of
from attractor.margin.scaling import ScaledConstraints

Candidates: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Matrices ``(instances, d, e)`` and multipliers ``(instances, m)`` of a scaled batch."""


@dataclass(frozen=True)
class Task:
    """What a method is asked to solve.

    Attributes:
        scaled: The constraints of a batch.
        geometry: The norm that is to be smallest.
        tolerance: Relative duality gap to reach.
        W: Best matrices so far, in the units of ``scaled``; NaN where there is none. In every
            geometry but Frobenius the first are Frobenius solutions.
        multipliers: Best multipliers so far; zero where there are none.
    """

    scaled: ScaledConstraints
    geometry: Geometry
    tolerance: float
    W: Float[np.ndarray, "instances d e"]
    multipliers: Float[np.ndarray, "instances m"]

    @property
    def begun(self) -> Int[np.ndarray, "k"]:
        """Instances with a matrix to start from; where that is zero nothing is left to do."""
        return np.flatnonzero(np.isfinite(self.W).all((-1, -2)) & self.W.any((-1, -2)))

    def choose(self, index: Any) -> Task:
        """Chooses instances."""
        return Task(
            self.scaled.choose(index),
            self.geometry,
            self.tolerance,
            self.W[index],
            self.multipliers[index],
        )


Method: TypeAlias = Callable[[Task], Candidates]
"""From a task to candidates.

Where a method finds the constraints contradictory it returns a W of NaN and Farkas multipliers,
of any scale; elsewhere multipliers are scaled to ``||sum_j lambda_j a_j b_j^T||_dual = 1``.
Where it has nothing to say it returns a W of NaN and zero multipliers. It says nothing of how
good its answer is: that is for the certificate.
"""

MethodTable: TypeAlias = Callable[[Geometry], tuple[Method, ...]]
"""From a geometry of one class to its methods, cheapest first."""

_TABLES: dict[type[Geometry], MethodTable] = {}


def register_methods(geometry: type[Geometry], table: MethodTable) -> None:
    """Sets the methods of a class of geometries, and of those derived from it that keep its norm.

    Each later method is tried only on the instances whose certificate is not yet tight enough.
    """
    _TABLES[geometry] = table


def methods_for(geometry: Geometry) -> tuple[Method, ...]:
    """The methods of a geometry: those of its class, or of the next above it that has any.

    Raises:
        InvalidInputError: If margin problems cannot be solved in it.
    """
    own = type(geometry)
    kind = next((kind for kind in own.__mro__ if kind in _TABLES), None)
    if kind is not None and has_norm_of(geometry, kind):
        return _TABLES[kind](geometry)
    why = "" if kind is None else f", which overrides the norm of {kind.__name__}"
    known = ", ".join(sorted(kind.__name__ for kind in _TABLES))
    raise InvalidInputError(
        "geometry",
        f"no solver is known for {own.__module__}.{own.__qualname__}{why}",
        f"Give a geometry of one of these classes, or of one derived from them that keeps its "
        f"norm: {known}",
    )

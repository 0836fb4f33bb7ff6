"""What a geometry is: a norm on matrices together with its dual."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

from jaxtyping import Float


class Geometry(abc.ABC):
    """A norm on matrices with its dual ``||G||_dual = max <G, D> over ||D|| <= 1``.

    An optimizer descends in a geometry, and the margin problem it is drawn to minimizes the norm
    of that same geometry. One object therefore serves both.

    Formulas are written against the array-API standard: they take arrays of NumPy, JAX or any
    other library that has ``__array_namespace__`` and return arrays of the same kind. The last
    two axes are the matrix; those before are batch.

    Attributes:
        name: The name under which the geometry is registered.
        unique: Whether the norm is strictly convex, so that margin problems have one solution.
        unitarily_invariant: Whether ``||U W V|| = ||W||`` for all orthogonal U and V.
    """

    name: ClassVar[str]
    unique: ClassVar[bool]
    unitarily_invariant: ClassVar[bool]

    @abc.abstractmethod
    def norm(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The norm ``||W||``."""

    @abc.abstractmethod
    def dual_norm(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The dual norm ``||G||_dual = max <G, D> over ||D|| <= 1``."""

    @abc.abstractmethod
    def steepest_descent_direction(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """A maximizer of ``<G, D>`` over ``||D|| <= 1``; zero where G is zero."""

    @abc.abstractmethod
    def dual_norm_constant(self, rows: int, columns: int) -> float:
        """The least ``k`` with ``||G||_dual <= k ||G||_F`` for every matrix of that shape.

        Certificates bound rounding in the Frobenius norm and carry it over with this number.
        """

    def distance_to_solution(self, value: float, gap: float) -> float:
        """Bound on ``||W - W*||_F`` for a feasible W of norm ``value`` and relative gap ``gap``.

        The rank of a solution is counted with this tolerance. NaN where the geometry knows no
        such bound, as where solutions are not unique.
        """
        return math.nan

    def mirror_map(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """The gradient of the potential whose mirror descent lives in this geometry.

        Raises:
            NotImplementedError: If the geometry has no smooth potential.
        """
        raise NotImplementedError(f"the {self.name} geometry has no smooth potential")

    def inverse_mirror_map(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """The inverse of ``mirror_map``.

        Raises:
            NotImplementedError: If the geometry has no smooth potential.
        """
        raise NotImplementedError(f"the {self.name} geometry has no smooth potential")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        """Geometries of the same class and settings are the same."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash((type(self), tuple(sorted(vars(self).items()))))

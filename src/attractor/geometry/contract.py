"""The contract of a geometry: a norm on matrices together with its dual."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeGuard, TypeVar

import numpy as np
from jaxtyping import Float

from attractor.support.checks import shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import check_unmasked

_Kind = TypeVar("_Kind", bound="Geometry")

_NORMS = ("norm", "dual_norm")
_MAPS = ("steepest_descent_direction", "mirror_map", "inverse_mirror_map")


class Geometry(abc.ABC):
    """A norm on matrices with its dual ``||G||_dual = max <G, D> over ||D|| <= 1``.

    An optimizer descends in a geometry, and the margin problem it is drawn to minimizes the norm
    of that same geometry. One object therefore serves both.

    Formulas are written against the array-API standard: they take arrays of NumPy, JAX or any
    other library that has ``__array_namespace__`` and return arrays of the same kind. The last
    two axes are the matrix; those before are batch. A matrix with NaN gives NaN and harms no other.
    Half precision is computed with in single, integers are in double. A matrix without entries has
    the norm zero.

    Attributes:
        name: Identity: two geometries of the same name are equal, whatever their classes.
        unique: Whether the norm is strictly convex, so that margin problems have one solution.
        unitarily_invariant: Whether ``||U W V|| = ||W||`` for all orthogonal U and V.
        spelling: Form of the names of the class, shown to a person who mistyped one.
    """

    name: str
    unique: bool
    unitarily_invariant: bool
    spelling: ClassVar[str]

    def __init_subclass__(cls, **further: Any) -> None:
        """Has the formulas of the class checked and given numbers that they can compute with."""
        super().__init_subclass__(**further)
        for name in {*_NORMS, *_MAPS} & {*vars(cls)}:
            setattr(cls, name, _on_matrices(vars(cls)[name], reduces=name in _NORMS))

    @classmethod
    @abc.abstractmethod
    def from_name(cls, name: str) -> Geometry | None:
        """The geometry of the class that has this name, or None if the name is none of its own.

        Raises:
            InvalidInputError: If the name is one of its own but the number in it will not do.
        """

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> tuple[Geometry, ...]:
        """Geometries of the class that tests of the contract run over."""

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

    def dual_norm_constants(
        self, rows: int, columns: int
    ) -> tuple[tuple[slice, slice, float], ...]:
        """Blocks of a matrix, and numbers ``k_b`` with ``||G||_dual <= sum_b k_b ||G_b||_F``.

        One block and ``dual_norm_constant``, unless a norm weighs parts of the matrix so
        differently that rounding in one of them says nothing about the others.
        """
        return ((slice(0, rows), slice(0, columns), self.dual_norm_constant(rows, columns)),)

    @abc.abstractmethod
    def norm_rounding(self, rows: int, columns: int) -> float:
        """Bound on the relative error that ``norm`` and ``dual_norm`` make in float64."""

    def distance_to_solution(self, value: float, gap: float) -> float:
        """Bound on the largest singular value of ``W - W*``.

        W is feasible, of norm ``value`` and relative gap ``gap``. The rank of a solution is
        counted with this tolerance. NaN where the geometry knows no such bound, as where
        solutions are not unique.
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
        """Geometries of the same name are the same."""
        return isinstance(other, Geometry) and self.name == other.name

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash(self.name)


def _on_matrices(formula: Callable[..., Any], reduces: bool) -> Callable[..., Any]:
    """A formula for matrices of any real numbers, empty ones among them."""

    @functools.wraps(formula)
    def checked(self: Geometry, *matrix: Any, **named: Any) -> Any:
        (W,) = (*matrix, *named.values())
        dtype = getattr(W, "dtype", None)
        if not isinstance(dtype, np.dtype) and hasattr(W, "__array_namespace__"):
            return formula(self, W)  # of PyTorch, say
        wide = _wide(W, dtype)
        if not W.size:
            return wide.sum((-2, -1)) if reduces else W
        found = formula(self, wide)
        narrow = wide.dtype != dtype and W.dtype.kind not in "iub"
        return found.astype(dtype) if narrow and not reduces else found

    return checked


def _wide(W: Any, dtype: Any) -> Any:
    """Matrices in floating point of single precision at least.

    Raises:
        InvalidInputError: If they are none, or not of real numbers.
    """
    remedy = "Give an array of real numbers of NumPy or JAX, with two axes at least"
    if not isinstance(dtype, np.dtype) or W.ndim < 2:
        raise InvalidInputError("W", f"it is {shown(W)}", remedy)
    check_unmasked("W", W)
    if dtype.kind in "iub":
        return W.astype(float)
    if dtype.kind == "f" and dtype.itemsize >= 4:
        return W
    if "float" not in dtype.name:
        raise InvalidInputError("W", f"the data type is {dtype.name}, not real numbers", remedy)
    return W.astype(np.float32)


class OneGeometry(Geometry):
    """A class without parameters: its one geometry is named by the spelling."""

    @classmethod
    def from_name(cls, name: str) -> Any:
        """The geometry, if it is called so."""
        return cls() if name == cls.spelling else None

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """There is only one."""
        return (cls(),)

    __repr__ = Geometry.__repr__


def has_norm_of(geometry: Geometry, kind: type[_Kind]) -> TypeGuard[_Kind]:
    """Whether it is of a class, or of one derived from it that overrides neither of its norms.

    What holds for the norm of the class, such as how solutions are found, then holds for it.
    """
    own = type(geometry)
    return issubclass(own, kind) and (own.norm, own.dual_norm) == (kind.norm, kind.dual_norm)

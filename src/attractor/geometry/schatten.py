"""The Schatten geometries: l_p norms of the singular values, nuclear and spectral among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jaxtyping import Float

from attractor.geometry.contract import Geometry, OneGeometry
from attractor.geometry.decompositions import (
    singular_power,
    singular_value_decomposition,
    singular_values,
)
from attractor.geometry.entrywise import Lp
from attractor.geometry.exponent import exponent_after, exponent_text
from attractor.geometry.frobenius import Frobenius, largest_entry
from attractor.geometry.registry import register_geometry

_FROBENIUS = Frobenius()
_NAMES = {1.0: "nuclear", 2.0: "frobenius", math.inf: "spectral"}


@register_geometry
class Schatten(Geometry):
    """The l_p norm of the singular values, whose dual is that of ``q = p / (p - 1)``.

    It is the nuclear norm for p = 1, Frobenius for p = 2 (to the last bit, without a singular
    value decomposition), and the spectral norm for p = inf. Singular values that rounding alone
    could have made count as zero in directions and mirror maps.

    Attributes:
        p: The exponent, from 1 to inf.
        q: That of the dual norm.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> norm = at.Schatten(1.5)
        >>> round(norm.norm(np.diag([4.0, 9.0])).item() ** 1.5, 6)  # 4^1.5 + 9^1.5
        35.0
    """

    unitarily_invariant = True
    spelling = "schatten_<p> (p from 1 to inf)"

    def __init__(self, p: float) -> None:
        """Checks the exponent.

        Args:
            p: From 1 to inf.

        Raises:
            InvalidInputError: If it is anything else.
        """
        self._of_values = Lp(p)
        self.p, self.q = self._of_values.p, self._of_values.q
        self.name = _NAMES.get(self.p, f"schatten_{exponent_text(self.p)}")
        self.unique = self._of_values.unique

    @classmethod
    def from_name(cls, name: str) -> Schatten | None:
        """Reads "schatten_1.5" and the like."""
        p = exponent_after("schatten", name)
        return None if p is None else cls(p)

    @classmethod
    def examples(cls) -> tuple[Schatten, ...]:
        """Exponents from end to end, close to one among them."""
        return tuple(cls(p) for p in (1, 1.01, 1.1, 1.5, 1.75, 2, 3, 4, 8, math.inf))

    def norm(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The l_p norm of the singular values."""
        if self.p == 2:
            return _FROBENIUS.norm(W)
        return self._of_values.norm(_singular_values(W))

    def dual_norm(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The l_q norm of the singular values."""
        if self.p == 2:
            return _FROBENIUS.dual_norm(G)
        return self._of_values.dual_norm(_singular_values(G))

    def steepest_descent_direction(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """``U (s / ||s||_q)^(q - 1) V^T`` with ``G = U s V^T``; zero where G is zero.

        For the spectral norm it is the sum of ``u_i v_i^T`` over the singular values that are not
        zero, for the nuclear norm ``u_1 v_1^T``.
        """
        if self.p == 2:
            return _FROBENIUS.steepest_descent_direction(G)
        if self.p == math.inf:
            return _singular_power(G, 0)
        if self.p == 1.5:
            return _unit_square(G)
        return _on_singular_values(G, self._of_values.steepest_descent_direction)

    def dual_norm_constant(self, rows: int, columns: int) -> float:
        """``min(d, e)^max(0, 1/q - 1/2)``."""
        return self._of_values.dual_norm_constant(1, min(rows, columns))

    def norm_rounding(self, rows: int, columns: int) -> float:
        """Computed singular values are those of ``W + E``, ``||E||_F`` some roundings of W.

        They move by at most ``||E||`` in the norm itself (Mirsky 1960), which is up to
        ``min(d, e)^|1/p - 1/2|`` times as much, relative to ``||W||``, as in the Frobenius norm.
        """
        if self.p == 2:
            return _FROBENIUS.norm_rounding(rows, columns)
        least = min(rows, columns)
        spread = least ** abs(1 / self.p - 0.5)
        moved = 2 * (rows + columns) * spread * 2.0**-53
        return moved + self._of_values.norm_rounding(1, least)

    def distance_to_solution(self, value: float, gap: float) -> float:
        """``value sqrt(2 gap / (p - 1))`` for p <= 2, ``2 value (p gap / 2)^(1/p)`` beyond.

        The first as for the l_p geometries: Ball, Carlen and Lieb prove it for both. The second
        is Clarkson's inequality ``||X + Y||^p + ||X - Y||^p <= 2^(p - 1) (||X||^p + ||Y||^p)`` at
        W and W*, whose midpoint is feasible and so no shorter than W*. NaN for p = 1 and p = inf.
        """
        if not 2 < self.p < math.inf:
            return self._of_values.distance_to_solution(value, gap)
        return 2 * value * (self.p * max(gap, 0.0) / 2) ** (1 / self.p)

    def mirror_map(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """``U s^(p - 1) V^T`` with ``W = U s V^T``, the gradient of ``sum s_i^p / p``.

        Raises:
            NotImplementedError: If p is 1 or inf.
        """
        if not self.unique:
            return super().mirror_map(W)
        return W if self.p == 2 else _on_singular_values(W, self._of_values.mirror_map)

    def inverse_mirror_map(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """``U s^(1 / (p - 1)) V^T`` with ``G = U s V^T``.

        Close to p = 1 the ratios of singular values grow far beyond what one matrix of floats
        can hold: it is G that keeps what W cannot.

        Raises:
            NotImplementedError: If p is 1 or inf.
        """
        if not self.unique:
            return super().inverse_mirror_map(G)
        if self.p == 1.5:
            return _singular_power(G, 2)
        return G if self.p == 2 else _on_singular_values(G, self._of_values.inverse_mirror_map)

    def __repr__(self) -> str:
        return f"Schatten(p={exponent_text(self.p)})"


@register_geometry
class Nuclear(OneGeometry, Schatten):
    """The sum of singular values, whose dual is the largest of them.

    Weight decay on a product of matrices descends in it, and its margin problem predicts where
    key-query attention goes (*Transformers as Support Vector Machines*, arXiv 2308.16898).

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> norm = at.Nuclear()
        >>> W = np.array([[3.0, 0.0], [0.0, 4.0]])
        >>> norm.norm(W).item(), norm.dual_norm(W).item()
        (7.0, 4.0)
    """

    spelling = "nuclear"

    def __init__(self) -> None:
        super().__init__(1)


@register_geometry
class Spectral(OneGeometry, Schatten):
    """The largest singular value, whose dual is the sum of them all.

    Its steepest descent is orthogonalized gradient descent: Muon without its momentum.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> norm = at.Spectral()
        >>> W = np.array([[3.0, 0.0], [0.0, 4.0]])
        >>> norm.norm(W).item(), norm.dual_norm(W).item()
        (4.0, 7.0)
    """

    spelling = "spectral"

    def __init__(self) -> None:
        super().__init__(math.inf)


def _singular_values(W: Any) -> Any:
    """Singular values as matrices of one row, NaN where W is not finite."""
    xp = W.__array_namespace__()
    shrunk, scale, finite = _prepared(xp, W)
    values = singular_values(shrunk)[..., None, :] * scale
    return xp.where(finite, values, xp.nan)


def _on_singular_values(W: Any, function: Callable[[Any], Any]) -> Any:
    """``U f(s) V^T`` with ``W = U s V^T``; f takes singular values as matrices of one row."""
    xp = W.__array_namespace__()
    shrunk, scale, finite = _prepared(xp, W)
    U, values, V = singular_value_decomposition(shrunk)
    rounding = sum(W.shape[-2:]) * xp.finfo(values.dtype).eps
    values = xp.where(values > rounding * values[..., :1], values, xp.zeros_like(values))
    return xp.where(finite, (U * function(values[..., None, :] * scale)) @ V, xp.nan)


def _singular_power(W: Any, exponent: int) -> Any:
    """``U s^exponent V^T`` with ``W = U s V^T``, for exponents 0 and 2."""
    xp = W.__array_namespace__()
    shrunk, scale, finite = _prepared(xp, W)
    found = singular_power(shrunk, exponent) * scale**exponent
    return xp.where(finite, found, xp.nan)


def _unit_square(W: Any) -> Any:
    """``U s^2 V^T / (sum s^3)^(2/3)``: the sum is that of the entries of W times these squares."""
    xp = W.__array_namespace__()
    shrunk, _, finite = _prepared(xp, W)
    squares = singular_power(shrunk, 2)
    cubes = xp.sum(shrunk * squares, axis=(-2, -1), keepdims=True)
    found = squares / xp.where(cubes > 0, cubes, xp.ones_like(cubes)) ** (2 / 3)
    return xp.where(finite, found, xp.nan)


def _prepared(xp: Any, W: Any) -> tuple[Any, Any, Any]:
    """Matrices to decompose, with largest entry one or zero; the factors; which were finite.

    One matrix that is not finite would make the decomposition of a whole batch fail.
    """
    finite = xp.all(xp.isfinite(W), axis=(-2, -1), keepdims=True)
    W = xp.where(finite, W, xp.zeros_like(W))
    scale = largest_entry(xp, W)
    return W / scale, scale, finite

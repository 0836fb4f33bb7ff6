"""The entrywise l_p geometries: from coordinate descent (p = 1) to sign descent (p = inf)."""

from __future__ import annotations

import math
from typing import Any

from jaxtyping import Float

from attractor.geometry.contract import Geometry
from attractor.geometry.exponent import (
    checked_exponent,
    conjugate_exponent,
    exponent_after,
    exponent_text,
    positive_power,
)
from attractor.geometry.frobenius import Frobenius, largest_entry
from attractor.geometry.registry import register_geometry

_FROBENIUS = Frobenius()


@register_geometry
class Lp(Geometry):
    """The entrywise norm ``(sum |W_ij|^p)^(1/p)``, whose dual is that of ``q = p / (p - 1)``.

    Mirror descent with the potential ``sum |W_ij|^p / p`` and steepest descent live in it; so do
    sign descent (p = inf) and greedy coordinate descent (p = 1). Its margin problem is the
    l_p-AttSVM of *Optimizing Attention with Mirror Descent* (arXiv 2410.14581). With p = 2 it is
    the Frobenius geometry, to the last bit.

    Attributes:
        p: The exponent, from 1 to inf.
        q: That of the dual norm.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> norm = at.Lp(np.inf)
        >>> W = np.array([[3.0, 0.0], [0.0, 4.0]])
        >>> norm.norm(W).item(), norm.dual_norm(W).item()
        (4.0, 7.0)
    """

    spelling = "l_<p> (p from 1 to inf)"

    def __init__(self, p: float) -> None:
        """Checks the exponent.

        Args:
            p: From 1 to inf.

        Raises:
            InvalidInputError: If it is anything else.
        """
        self.p = checked_exponent(p)
        self.q = conjugate_exponent(self.p)
        self.name = "frobenius" if self.p == 2 else f"l_{exponent_text(self.p)}"
        self.unique = 1 < self.p < math.inf
        self.unitarily_invariant = self.p == 2

    @classmethod
    def from_name(cls, name: str) -> Lp | None:
        """Reads "l_1.5", "l_inf" and the like, also without the underscore."""
        p = exponent_after("l", name)
        return None if p is None else cls(p)

    @classmethod
    def examples(cls) -> tuple[Lp, ...]:
        """Exponents from end to end, close to one among them."""
        return tuple(cls(p) for p in (1, 1.01, 1.1, 1.5, 1.75, 2, 3, 4, 8, math.inf))

    def norm(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The norm ``(sum |W_ij|^p)^(1/p)``, without overflow or underflow on the way."""
        return _norm(W, self.p)

    def dual_norm(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """The entrywise norm of exponent q."""
        return _norm(G, self.q)

    def steepest_descent_direction(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """``sign(G) (|G| / ||G||_q)^(q - 1)``; zero where G is zero.

        With p = inf these are the signs; with p = 1 the sign of the first of the largest entries,
        alone.
        """
        if self.p == 2:
            return _FROBENIUS.steepest_descent_direction(G)
        xp = G.__array_namespace__()
        if self.p == math.inf:
            return xp.sign(G)
        if self.p == 1:
            return xp.sign(G) * _first_largest(xp, xp.abs(G))
        relative = xp.abs(G) / largest_entry(xp, G)
        norm = _norm(relative, self.q)[..., None, None]
        relative = relative / xp.where(norm != 0, norm, xp.ones_like(norm))
        return xp.sign(G) * positive_power(relative, 1 / (self.p - 1))

    def dual_norm_constant(self, rows: int, columns: int) -> float:
        """``(d e)^max(0, 1/q - 1/2)``, attained where all entries are equal or all but one zero."""
        return (rows * columns) ** max(0.0, 1 / self.q - 0.5)

    def norm_rounding(self, rows: int, columns: int) -> float:
        """Sums go along rows, then along the column of sums: rows + columns additions in a chain.

        To these come the divisions, both powers, and the rounding of the exponent q, which moves
        the norm by at most ``log(d e) / q`` as much.
        """
        if self.p == 2:
            return _FROBENIUS.norm_rounding(rows, columns)
        return 2 * (rows + columns + 16) * 2.0**-53

    def distance_to_solution(self, value: float, gap: float) -> float:
        """``value sqrt(2 gap / (p - 1))`` for 1 < p <= 2, NaN otherwise.

        ``||.||_p^2 / 2`` is strongly convex with modulus p - 1 in its own norm (Ball, Carlen and
        Lieb 1994), and its derivative at the solution toward feasible W is not negative, hence
        ``(p - 1) ||W - W*||_p^2 <= ||W||_p^2 - ||W*||_p^2 <= 2 gap value^2``. No singular value
        exceeds the Frobenius norm, nor that the l_p norm. For p > 2 the shape would enter.
        """
        if not 1 < self.p <= 2:
            return math.nan
        return value * math.sqrt(2 * max(gap, 0.0) / (self.p - 1))

    def mirror_map(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """``sign(W) |W|^(p - 1)``, the gradient of ``sum |W_ij|^p / p``.

        Raises:
            NotImplementedError: If p is 1 or inf.
        """
        return _signed_power(W, self.p - 1) if self.unique else super().mirror_map(W)

    def inverse_mirror_map(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """``sign(G) |G|^(1 / (p - 1))``.

        Close to p = 1 most entries of G belong to entries of W that are no floats: with p = 1.01
        in float64, those below 6e-4 give zero, and those above 1200 infinity. It is G that keeps
        what W cannot.

        Raises:
            NotImplementedError: If p is 1 or inf.
        """
        return _signed_power(G, 1 / (self.p - 1)) if self.unique else super().inverse_mirror_map(G)

    def __repr__(self) -> str:
        return f"Lp(p={exponent_text(self.p)})"


def _norm(W: Any, p: float) -> Any:
    """The entrywise p-norm over the last two axes."""
    if p == 2:
        return _FROBENIUS.norm(W)
    xp = W.__array_namespace__()
    if p == math.inf:
        return xp.max(xp.abs(W), axis=(-2, -1))
    scale = largest_entry(xp, W)
    relative = xp.abs(W) / scale
    powers = relative if p == 1 else positive_power(relative, p)
    total = xp.sum(xp.sum(powers, axis=-1), axis=-1)
    return scale[..., 0, 0] * (total if p == 1 else total ** (1 / p))


def _first_largest(xp: Any, sizes: Any) -> Any:
    """True at the first of the largest entries of each matrix."""
    flat = xp.reshape(sizes, (*sizes.shape[:-2], -1))
    place = xp.argmax(flat, axis=-1, keepdims=True)
    return xp.reshape(xp.arange(flat.shape[-1]) == place, sizes.shape)


def _signed_power(W: Any, exponent: float) -> Any:
    """``sign(W) |W|^exponent``."""
    if exponent == 1:
        return W
    xp = W.__array_namespace__()
    return xp.sign(W) * positive_power(xp.abs(W), exponent)

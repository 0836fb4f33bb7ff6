"""Proximal maps of norms of entries and of singular values, and their derivatives.

The proximal point of Z minimizes ``tau ||W|| + 1/2 ||W - Z||_F^2``. For an l_p norm of the entries
it acts on their absolute values, for one of the singular values on those; its derivative there is
a diagonal plus a rank-one matrix, whatever p is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry, Lp, Schatten

_NEWTON_STEPS = 12
_TIED = 1e-12
"""Difference of singular values, relative to the largest, that is rounding."""


@dataclass(frozen=True)
class ProximalPoint:
    """The proximal point of a matrix, and the derivative of the map there.

    Attributes:
        W: The proximal point.
        norm: Its norm.
    """

    W: Float[np.ndarray, "d e"]
    norm: float
    _basis: tuple[np.ndarray, np.ndarray] | None
    _signs: np.ndarray | None
    _before: np.ndarray
    _after: np.ndarray
    _diagonal: np.ndarray
    _bump: np.ndarray

    @classmethod
    def of(cls, Z: Float[np.ndarray, "d e"], tau: float, geometry: Geometry) -> ProximalPoint:
        """Evaluates the map."""
        if isinstance(geometry, Schatten):
            left, before, right = np.linalg.svd(Z, full_matrices=False)
            after, diagonal, bump = proximal_values(before, tau, geometry.p)
            W, basis, signs = (left * after) @ right, (left, right.T), None
        else:
            assert isinstance(geometry, Lp)
            before = np.abs(Z).ravel()
            after, diagonal, bump = proximal_values(before, tau, geometry.p)
            basis, signs = None, np.where(Z < 0, -1.0, 1.0)
            W = signs * after.reshape(Z.shape)
        return cls(W, float(geometry.norm(W)), basis, signs, before, after, diagonal, bump)

    def derivative(self, H: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"]:
        """How W moves when Z moves along H."""
        if self._basis is None:
            h = (self._signs * H).ravel()
            return self._signs * self._along(h).reshape(H.shape)
        left, right = self._basis
        image = left.T @ H
        core = image @ right
        even, odd = (core + core.T) / 2, (core - core.T) / 2
        s, w = self._before, self._after
        apart = s[:, None] - s
        tied = np.abs(apart) <= _TIED * s[0]
        ratio = np.where(tied, self._diagonal[:, None], (w[:, None] - w) / np.where(tied, 1, apart))
        total = s[:, None] + s
        turned = even * ratio + odd * (w[:, None] + w) / np.where(total > 0, total, 1.0)
        np.fill_diagonal(turned, self._along(np.diagonal(core)))
        result = left @ turned @ right.T
        shrunk = w / np.where(s > 0, s, 1.0)
        if len(left) > len(s):
            outside = H @ right - left @ core
            result += (outside * shrunk) @ right.T
        elif len(right) > len(s):
            outside = image - core @ right.T
            result += (left * shrunk) @ outside
        return result

    def _along(self, h: np.ndarray) -> np.ndarray:
        return self._diagonal * h + self._bump * (self._bump @ h)


def proximal_values(
    z: Float[np.ndarray, "r"], tau: float, p: float
) -> tuple[Float[np.ndarray, "r"], Float[np.ndarray, "r"], Float[np.ndarray, "r"]]:
    """The proximal point of non-negative z for ``tau ||.||_p``.

    Returns:
        The point w, and the D and v of the derivative ``diag(D) + v v^T``.
    """
    zero = np.zeros_like(z)
    if p == 1:
        return np.maximum(z - tau, 0.0), np.where(z > tau, 1.0, 0.0), zero
    if np.isinf(p):
        if z.sum() <= tau:
            return zero, zero, zero
        falling = np.sort(z)[::-1]
        levels = (np.cumsum(falling) - tau) / np.arange(1, len(z) + 1)
        level = levels[np.flatnonzero(falling > levels)[-1]]
        cut = z >= level
        return np.minimum(z, level), np.where(cut, 0.0, 1.0), cut / np.sqrt(cut.sum())
    q = p / (p - 1)
    scale = z.max(initial=0.0)
    if scale == 0 or scale * ((z / scale) ** q).sum() ** (1 / q) <= tau:
        return zero, zero, zero
    from scipy.optimize import brentq

    # With w = N s and ||s||_p = 1, stationarity is N s + tau s^(p-1) = z; ||s||_p falls with N.
    most = scale * ((z / scale) ** p).sum() ** (1 / p)

    def excess(norm: float) -> float:
        return float((_unit_values(z, tau, p, norm) ** p).sum() - 1)

    least = most * 1e-12
    norm = brentq(excess, least, most, xtol=1e-15 * most)
    assert isinstance(norm, float)
    s = _unit_values(z, tau, p, norm)
    with np.errstate(divide="ignore"):
        stiffness = 1 + tau * (p - 1) / norm * s ** (p - 2)
    b = np.sqrt(tau * (p - 1) / norm) * s ** (p - 1)
    rest = max(1 - float((b**2 / stiffness).sum()), np.finfo(np.float64).tiny)
    return norm * s, 1 / stiffness, b / stiffness / np.sqrt(rest)


def _unit_values(
    z: Float[np.ndarray, "r"], tau: float, p: float, norm: float
) -> Float[np.ndarray, "r"]:
    """The s with ``norm s + tau s^(p-1) = z``, by Newton's method from above."""
    if p >= 2:
        linear, bent, power = norm, tau, p - 1
    else:  # in terms of y = s^(p-1) the equation is convex
        linear, bent, power = tau, norm, 1 / (p - 1)
    y = np.minimum(z / linear, (z / bent) ** (1 / power))
    for _ in range(_NEWTON_STEPS):
        steep = bent * y ** (power - 1)
        slope = linear + power * steep
        y = np.maximum(y - (linear * y + steep * y - z) / slope, 0.0)
    return y if p >= 2 else y ** (1 / (p - 1))

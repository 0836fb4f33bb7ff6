"""Second-order expansions of ``||Z||^2 / 2`` for norms of a power: of entries or singular values.

With ``N = ||Z||``, ``r = |Z| / N`` and an exponent k > 2, the entrywise norm has

    gradient N g,  g = sign(Z) r^(k - 1),      Hessian (k - 1) diag(r^(k - 2)) - (k - 2) g g^T.

The squared norm is expanded, not ``||Z||_k^k / k``: it scales with Z however large k is. The same
holds of singular values in the frame of singular vectors, where the Hessian of a spectral function
is diagonal too: on the diagonal of the matrix, on the symmetric and on the antisymmetric half of
each pair of entries off it, and on the rows or columns that reach beyond the square (Lewis and
Sendov 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from attractor.margin.batching.batches import Batch, powers

_SECANT = 0.3
"""Share of the slope of a secant that counts as least curvature."""
_MOST_ENTRIES = 2**22
"""Entries of the constraints written out as rows that are held at a time."""


@runtime_checkable
class Frame(Protocol):
    """Orthonormal coordinates of matrices."""

    def choose(self, index: Any) -> Frame:
        """Chooses instances."""
        ...

    def enter(self, Z: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k d e"]:
        """Coordinates of matrices."""
        ...

    def leave(self, coordinates: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k d e"]:
        """The matrices with such coordinates."""
        ...

    def coordinates(self) -> Float[np.ndarray, "k m d e"]:
        """Coordinates of the constraints."""
        ...

    def gram(self, weights: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k m m"]:
        """Inner products of the constraints, each coordinate weighted."""
        ...


@dataclass(frozen=True)
class Expansion(Batch):
    """``||Z||^2 / 2`` to second order.

    The Hessian is ``diag(curvature) - (exponent - 2) normal normal^T`` in the frame.

    Attributes:
        norm: ``||Z||``, one where Z is zero.
        gradient: ``N g``, as a matrix.
        normal: g in the frame.
        curvature: Diagonal of the first term.
        frame: The coordinates.
    """

    norm: Float[np.ndarray, "k 1 1"]
    gradient: Float[np.ndarray, "k d e"]
    normal: Float[np.ndarray, "k d e"]
    curvature: Float[np.ndarray, "k d e"]
    frame: Frame


def kept_curvature(
    expansion: Expansion,
    exponent: Float[np.ndarray, "k 1 1"],
    residual: Float[np.ndarray, "k 1 1"],
    least: float,
) -> Float[np.ndarray, "k d e"]:
    """The curvature, kept from vanishing where Z does, which would let steps grow at will.

    From zero, ``z^(k - 1) = residual`` is reached along a secant of slope
    ``residual^((k - 2) / (k - 1))``. That is the least slope used; it vanishes in the end.
    """
    secant = _SECANT * powers(residual, (exponent - 2) / (exponent - 1))
    return np.maximum(expansion.curvature, np.maximum(secant, least))


class EntrywiseExpansions:
    """Expansions of entrywise norms, and the frame of the entries themselves."""

    def __init__(
        self, left: Float[np.ndarray, "k m d"], right: Float[np.ndarray, "k m e"], rows: Any = None
    ) -> None:
        """Writes the constraints out as rows, unless there are too many entries to hold.

        Args:
            left: The ``a``.
            right: The ``b``.
            rows: The rows, if known.
        """
        self.left, self.right, self.rows = left, right, rows
        if rows is None and left.size * right.shape[-1] <= _MOST_ENTRIES:
            self.rows = _outer(left, right)

    def choose(self, index: Any) -> EntrywiseExpansions:
        """Chooses instances."""
        rows = None if self.rows is None else self.rows[index]
        return EntrywiseExpansions(self.left[index], self.right[index], rows)

    def at(self, Z: Float[np.ndarray, "k d e"], exponent: Float[np.ndarray, "k 1 1"]) -> Expansion:
        """The expansion at Z."""
        norm, relative = _relative(np.abs(Z), exponent)
        power = powers(relative, exponent - 2)
        normal = np.copysign(power * relative, Z)
        return Expansion(norm, norm * normal, normal, (exponent - 1) * power, self)

    def enter(self, Z: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k d e"]:
        """The entries."""
        return Z

    def leave(self, coordinates: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k d e"]:
        """The entries."""
        return coordinates

    def coordinates(self) -> Float[np.ndarray, "k m d e"]:
        """Entries of the constraints."""
        return self.left[..., None] * self.right[..., None, :]

    def gram(self, weights: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k m m"]:
        """Weighted inner products of the constraints."""
        roots = np.sqrt(weights)
        if self.rows is not None:
            rows = self.rows * roots.reshape(len(roots), 1, -1)
            return rows @ np.swapaxes(rows, -1, -2)
        count, m, d = self.left.shape
        step = max(1, _MOST_ENTRIES // (count * m * self.right.shape[-1]))
        total = np.zeros((count, m, m))
        for first in range(0, d, step):
            part = np.s_[first : first + step]
            rows = _outer(self.left[:, :, part], self.right)
            rows *= roots[:, part].reshape(count, 1, -1)
            total += rows @ np.swapaxes(rows, -1, -2)
        return total


class SingularValueExpansions:
    """Expansions of norms of the singular values."""

    def __init__(self, left: Float[np.ndarray, "k m d"], right: Float[np.ndarray, "k m e"]) -> None:
        """Takes the constraints ``a_j b_j^T``."""
        self.left, self.right = left, right

    def choose(self, index: Any) -> SingularValueExpansions:
        """Chooses instances."""
        return SingularValueExpansions(self.left[index], self.right[index])

    def at(self, Z: Float[np.ndarray, "k d e"], exponent: Float[np.ndarray, "k 1 1"]) -> Expansion:
        """The expansion at Z."""
        finite: Any = np.isfinite(Z).all((-1, -2))  # one that is not would fail the whole batch
        U, values, V = np.linalg.svd(np.where(finite[:, None, None], Z, 0.0))
        values = np.where(finite[:, None], values, np.nan)
        V = np.swapaxes(V, -1, -2)
        count, d, e = Z.shape
        norm, relative = _relative(values[:, None], exponent)
        derivative = powers(relative[:, 0], exponent[:, 0] - 1)
        least = min(d, e)
        diagonal = np.arange(least)
        normal = np.zeros((count, d, e))
        normal[:, diagonal, diagonal] = derivative
        square = (U[..., :least] * derivative[:, None]) @ np.swapaxes(V[..., :least], -1, -2)
        curvature = _spectral_curvature(relative[:, 0], exponent, (d, e))
        frame = SingularFrame(U, V, self.left @ U, self.right @ V)
        return Expansion(norm, norm * square, normal, curvature, frame)


@dataclass(frozen=True)
class SingularFrame(Batch):
    """``U^T Z V``, each pair of entries off the diagonal by its symmetric and antisymmetric half.

    The symmetric half stands above the diagonal, the antisymmetric one below it.
    """

    U: Float[np.ndarray, "k d d"]
    V: Float[np.ndarray, "k e e"]
    left: Float[np.ndarray, "k m d"]
    right: Float[np.ndarray, "k m e"]

    def enter(self, Z: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k d e"]:
        """Coordinates of matrices."""
        return _mix_halves(np.swapaxes(self.U, -1, -2) @ Z @ self.V)

    def leave(self, coordinates: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k d e"]:
        """The matrices with such coordinates: transposing turns halves back into entries."""
        turned = coordinates.copy()
        least = min(turned.shape[-2:])
        square = turned[..., :least, :least]
        square[:] = np.swapaxes(coordinates[..., :least, :least], -1, -2)
        _mix_halves(turned)
        square[:] = np.swapaxes(square, -1, -2).copy()
        return self.U @ turned @ np.swapaxes(self.V, -1, -2)

    def coordinates(self) -> Float[np.ndarray, "k m d e"]:
        """Coordinates of the constraints."""
        return _mix_halves(self.left[..., None] * self.right[..., None, :])

    def gram(self, weights: Float[np.ndarray, "k d e"]) -> Float[np.ndarray, "k m m"]:
        """Weighted inner products of the constraints."""
        rows = self.coordinates()
        rows *= np.sqrt(weights)[:, None]
        rows = rows.reshape(*rows.shape[:2], -1)
        return rows @ np.swapaxes(rows, -1, -2)


def _outer(
    left: Float[np.ndarray, "k m d"], right: Float[np.ndarray, "k m e"]
) -> Float[np.ndarray, "k m de"]:
    """Outer products as rows."""
    return (left[..., None] * right[..., None, :]).reshape(*left.shape[:2], -1)


def _relative(
    sizes: Float[np.ndarray, "k d e"], exponent: Float[np.ndarray, "k 1 1"]
) -> tuple[Float[np.ndarray, "k 1 1"], Float[np.ndarray, "k d e"]]:
    """The norm, and sizes relative to it; the norm counts as one where all is zero."""
    largest = sizes.max((-1, -2), keepdims=True)
    largest = np.where(largest > 0, largest, 1.0)
    total = powers(sizes / largest, exponent).sum((-1, -2), keepdims=True)
    norm = largest * powers(np.where(total > 0, total, 1.0), 1 / exponent)
    return norm, sizes / norm


def _mix_halves(Z: Float[np.ndarray, "*k d e"]) -> Float[np.ndarray, "*k d e"]:
    """``Z_ij + Z_ji`` above the diagonal, ``Z_ij - Z_ji`` below, over ``sqrt(2)``; in place."""
    least = min(Z.shape[-2:])
    square = Z[..., :least, :least]
    ones = np.ones((least, least))
    scale = np.where(np.eye(least) > 0, 1.0, np.sqrt(0.5))
    sign = np.triu(ones, 1) - np.tril(ones, -1)
    transposed = np.swapaxes(square, -1, -2) * (sign * scale)
    square *= scale
    square += transposed
    return Z


def _spectral_curvature(
    relative: Float[np.ndarray, "k s"], exponent: Float[np.ndarray, "k 1 1"], shape: tuple[int, int]
) -> Float[np.ndarray, "k d e"]:
    """Diagonal of the Hessian of ``sum f(s_i)`` with ``f' = s^(k - 1)``, in the frame.

    It is ``f''(s_i)`` on the diagonal, ``(f'_i - f'_j) / (s_i - s_j)`` on symmetric halves,
    ``(f'_i + f'_j) / (s_i + s_j)`` on antisymmetric ones, ``f'_i / s_i`` beyond the square.
    """
    count, least = relative.shape
    power = powers(relative, exponent[:, 0] - 2)
    larger = np.maximum(relative[:, :, None], relative[:, None])
    smaller = np.minimum(relative[:, :, None], relative[:, None])
    safe = np.where(larger > 0, larger, 1.0)
    # With smaller = larger exp(-x) the first quotient is (1 - exp(-(k - 1) x)) / (1 - exp(-x)).
    with np.errstate(divide="ignore", invalid="ignore"):
        x = -np.log1p((smaller - larger) / safe)
        quotient = np.expm1(-(exponent - 1) * x) / np.expm1(-x)
    quotient = np.where(x > 0, quotient, exponent - 1)
    ratio = smaller / safe
    halves = np.triu(quotient) + np.tril((1 + powers(ratio, exponent - 1)) / (1 + ratio), -1)
    curvature = np.empty((count, *shape))
    curvature[:, :least, :least] = halves * np.maximum(power[:, :, None], power[:, None])
    if shape[0] > least:
        curvature[:, least:] = power[:, None]
    if shape[1] > least:
        curvature[:, :, least:] = power[:, :, None]
    return curvature

"""The face of a ball in which all solutions of a margin problem lie.

Optimal multipliers give a matrix ``M = sum_j lambda_j a_j b_j^T`` of dual norm one, and every
solution W has ``<M, W> = ||W||``. In the four norms that are not strictly convex that leaves

    l_1       entries where ``|M_ij| = 1``, with the signs of M
    l_inf     ``sign(M_ij) ||W||`` where M is not zero, anything up to ``||W||`` where it is
    nuclear   ``U S V^T`` with S positive semidefinite, U and V singular vectors of singular value 1
    spectral  ``||W|| U V^T`` on all singular vectors of M, anything up to ``||W||`` off them
"""

from __future__ import annotations

import abc
import math

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Geometry, Lp, Schatten, has_norm_of


class Directions(abc.ABC):
    """A space of matrices, in coordinates.

    Attributes:
        size: Number of coordinates.
    """

    size: int

    @abc.abstractmethod
    def features(
        self, left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
    ) -> Float[np.ndarray, "m size"]:
        """``a_j^T B_k b_j`` for the matrices B_k of unit coordinates."""

    @abc.abstractmethod
    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> Float[np.ndarray, "d e"]:
        """The matrix of given coordinates."""

    def limits(self) -> Float[np.ndarray, "size 2"]:
        """-1 and 1 for each coordinate, or 0 where it may not fall or not grow."""
        return np.broadcast_to([-1.0, 1.0], (self.size, 2))


class Entries(Directions):
    """Matrices that are zero but for chosen entries."""

    def __init__(
        self,
        chosen: Bool[np.ndarray, "d e"],
        lowest: Bool[np.ndarray, "d e"],
        highest: Bool[np.ndarray, "d e"],
    ) -> None:
        """Takes the entries, and which of them are at a lower or upper bound."""
        self.shape, self.place = chosen.shape, np.nonzero(chosen)
        self.size = len(self.place[0])
        lower, upper = np.where(lowest, 0.0, -1.0), np.where(highest, 0.0, 1.0)
        self._limits = np.stack([lower[self.place], upper[self.place]], axis=-1)

    def features(
        self, left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
    ) -> Float[np.ndarray, "m size"]:
        """Products of entries of a and b."""
        return left[:, self.place[0]] * right[:, self.place[1]]

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> Float[np.ndarray, "d e"]:
        """The matrix with these entries."""
        result = np.zeros(self.shape)
        result[self.place] = coordinates
        return result

    def limits(self) -> Float[np.ndarray, "size 2"]:
        """Entries at a bound move away from it only."""
        return self._limits


class SymmetricBlock(Directions):
    """Matrices ``U S V^T`` with S symmetric."""

    def __init__(self, U: Float[np.ndarray, "d r"], V: Float[np.ndarray, "e r"]) -> None:
        """Takes matrices with orthonormal columns."""
        self.U, self.V = U, V
        self.pairs = np.triu_indices(U.shape[1])
        self.size = len(self.pairs[0])
        self.weights = np.where(self.pairs[0] == self.pairs[1], 0.5, math.sqrt(0.5))

    def features(
        self, left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
    ) -> Float[np.ndarray, "m size"]:
        """Products of coordinates, made symmetric."""
        a, b = left @ self.U, right @ self.V
        i, k = self.pairs
        return (a[:, i] * b[:, k] + a[:, k] * b[:, i]) * self.weights

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> Float[np.ndarray, "d e"]:
        """``U S V^T``."""
        half = np.zeros((self.U.shape[1],) * 2)
        half[self.pairs] = coordinates * self.weights
        return self.U @ (half + half.T) @ self.V.T


class Block(Directions):
    """Matrices ``U Z V^T``."""

    def __init__(self, U: Float[np.ndarray, "d r"], V: Float[np.ndarray, "e s"]) -> None:
        """Takes matrices with orthonormal columns."""
        self.U, self.V = U, V
        self.size = U.shape[1] * V.shape[1]

    def features(
        self, left: Float[np.ndarray, "m d"], right: Float[np.ndarray, "m e"]
    ) -> Float[np.ndarray, "m size"]:
        """Products of coordinates."""
        a, b = left @ self.U, right @ self.V
        return (a[:, :, None] * b[:, None, :]).reshape(len(left), self.size)

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> Float[np.ndarray, "d e"]:
        """``U Z V^T``."""
        return self.U @ coordinates.reshape(self.U.shape[1], self.V.shape[1]) @ self.V.T


def face_directions(
    geometry: Geometry,
    M: Float[np.ndarray, "d e"],
    W: Float[np.ndarray, "d e"],
    tolerance: float,
) -> tuple[Directions, Directions]:
    """Differences of matrices in the face, and those in which W can move both ways inside it.

    In the entrywise norms the two are the same space, and bounds on its coordinates say where W
    can move one way only. Of the faces of a norm that is none of the four nothing is known: all
    differences are possible, and none is known to be.

    Args:
        geometry: A norm that is not strictly convex.
        M: ``sum_j lambda_j a_j b_j^T``, of dual norm one.
        W: A solution.
        tolerance: Relative difference of singular values or entries that count as equal.
    """
    size = float(geometry.norm(W))
    if has_norm_of(geometry, Lp) and geometry.p == 1:
        zero = np.abs(W) <= tolerance * size
        entries = Entries(np.abs(M) >= 1 - tolerance, zero & (M > 0), zero & (M < 0))
        return entries, entries
    if has_norm_of(geometry, Lp) and geometry.p == math.inf:
        reach = (1 - tolerance) * size
        entries = Entries(np.abs(M) <= tolerance, W <= -reach, W >= reach)
        return entries, entries
    if not has_norm_of(geometry, Schatten):
        d, e = W.shape
        return Block(np.eye(d), np.eye(e)), Block(np.zeros((d, 0)), np.zeros((e, 0)))
    U, values, Vt = np.linalg.svd(M)
    if geometry.p == 1:
        k = int((values >= 1 - tolerance).sum())
        U, V = U[:, :k], Vt[:k].T
        S = U.T @ W @ V
        weights, vectors = np.linalg.eigh((S + S.T) / 2)
        inside = vectors[:, weights > tolerance * size]
        return SymmetricBlock(U, V), SymmetricBlock(U @ inside, V @ inside)
    k = int((values > tolerance).sum())
    U, V = U[:, k:], Vt[k:].T
    if not (U.size and V.size):
        return Block(U, V), Block(U, V)
    P, lengths, Qt = np.linalg.svd(U.T @ W @ V)
    full = int((lengths >= (1 - tolerance) * size).sum())
    return Block(U, V), Block(U @ P[:, full:], V @ Qt[full:].T)

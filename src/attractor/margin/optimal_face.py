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
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Geometry, Lp, Schatten, has_norm_of

_Left = Float[np.ndarray, "m d"]
_Right = Float[np.ndarray, "m e"]
_Features = Float[np.ndarray, "m size"]
_Matrix = Float[np.ndarray, "d e"]


class Directions(abc.ABC):
    """A space of matrices, in coordinates.

    Attributes:
        size: Number of coordinates.
    """

    size: int

    @abc.abstractmethod
    def features(self, left: _Left, right: _Right) -> _Features:
        """``a_j^T B_k b_j`` for the matrices B_k of unit coordinates."""

    @abc.abstractmethod
    def coordinates(self, G: _Matrix) -> Float[np.ndarray, "size"]:
        """``<G, B_k>``: the coordinates of the part of a matrix that lies in the space."""

    @abc.abstractmethod
    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> _Matrix:
        """The matrix of given coordinates."""

    def limits(self) -> Float[np.ndarray, "size 2"]:
        """Bounds on the change of each coordinate, as far as they are known of it alone."""
        return np.broadcast_to([-np.inf, np.inf], (self.size, 2))


class Entries(Directions):
    """Matrices that are zero but for chosen entries."""

    def __init__(self, chosen: Bool[np.ndarray, "d e"], below: _Matrix, above: _Matrix) -> None:
        """Takes the entries, and the slack below and above each."""
        self.shape, self.place = chosen.shape, np.nonzero(chosen)
        self.size = len(self.place[0])
        self._limits = np.stack([-below[self.place], above[self.place]], axis=-1)

    def features(self, left: _Left, right: _Right) -> _Features:
        """Products of entries of a and b."""
        return left[:, self.place[0]] * right[:, self.place[1]]

    def coordinates(self, G: _Matrix) -> Float[np.ndarray, "size"]:
        """The entries chosen."""
        return G[self.place]

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> _Matrix:
        """The matrix with these entries."""
        result = np.zeros(self.shape)
        result[self.place] = coordinates
        return result

    def limits(self) -> Float[np.ndarray, "size 2"]:
        """The slacks."""
        return self._limits


class SymmetricBlock(Directions):
    """Matrices ``U S V^T`` with S symmetric."""

    def __init__(self, U: Float[np.ndarray, "d r"], V: Float[np.ndarray, "e r"]) -> None:
        """Takes matrices with orthonormal columns."""
        self.U, self.V = U, V
        self.pairs = np.triu_indices(U.shape[1])
        self.size = len(self.pairs[0])
        self.weights = np.where(self.pairs[0] == self.pairs[1], 0.5, math.sqrt(0.5))

    def features(self, left: _Left, right: _Right) -> _Features:
        """Products of coordinates, made symmetric."""
        a, b = left @ self.U, right @ self.V
        i, k = self.pairs
        return (a[:, i] * b[:, k] + a[:, k] * b[:, i]) * self.weights

    def coordinates(self, G: _Matrix) -> Float[np.ndarray, "size"]:
        """Those of the symmetric part of ``U^T G V``."""
        inner = self.U.T @ G @ self.V
        return (inner + inner.T)[self.pairs] * self.weights

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> _Matrix:
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

    def features(self, left: _Left, right: _Right) -> _Features:
        """Products of coordinates."""
        a, b = left @ self.U, right @ self.V
        return (a[:, :, None] * b[:, None, :]).reshape(len(left), self.size)

    def coordinates(self, G: _Matrix) -> Float[np.ndarray, "size"]:
        """The entries of ``U^T G V``."""
        return (self.U.T @ G @ self.V).ravel()

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> _Matrix:
        """``U Z V^T``."""
        return self.U @ coordinates.reshape(self.U.shape[1], self.V.shape[1]) @ self.V.T


@dataclass(frozen=True)
class Face:
    """The face of a ball around a solution that its multipliers expose.

    In the entrywise norms ``directions`` and ``movable`` are the same space, and bounds on its
    coordinates say where the solution can move one way only.

    Attributes:
        directions: Differences of matrices in the face.
        movable: Those in which the solution can move both ways inside it.
        nearest: The solution, less what takes it off the face.
    """

    directions: Directions
    movable: Directions
    nearest: _Matrix


def exposed_face(geometry: Geometry, M: _Matrix, W: _Matrix, tolerance: float) -> Face:
    """The face in a norm that is not strictly convex.

    Of the faces of a norm that is none of the four nothing is known: all differences are
    possible, and none is known to be.

    Args:
        geometry: The norm.
        M: ``sum_j lambda_j a_j b_j^T``, of dual norm one.
        W: A solution.
        tolerance: Relative difference of singular values or entries that count as equal.
    """
    size = float(geometry.norm(W))
    if has_norm_of(geometry, Lp) and geometry.p == 1:
        chosen, along = np.abs(M) >= 1 - tolerance, W * np.sign(M)
        slack = np.where(along > tolerance * size, along, 0.0)
        entries = Entries(chosen, np.where(M > 0, slack, np.inf), np.where(M > 0, np.inf, slack))
        return Face(entries, entries, np.where(chosen & (along > 0), W, 0.0))
    if has_norm_of(geometry, Lp) and geometry.p == math.inf:
        chosen, below, above = np.abs(M) <= tolerance, size + W, size - W
        entries = Entries(
            chosen,
            np.where(below > tolerance * size, below, 0.0),
            np.where(above > tolerance * size, above, 0.0),
        )
        return Face(entries, entries, np.where(chosen, W, size * np.sign(M)))
    if not has_norm_of(geometry, Schatten):
        d, e = W.shape
        return Face(Block(np.eye(d), np.eye(e)), Block(np.zeros((d, 0)), np.zeros((e, 0))), W)
    U, values, Vt = np.linalg.svd(M)
    if geometry.p == 1:
        k = int((values >= 1 - tolerance).sum())
        U, V = U[:, :k], Vt[:k].T
        S = U.T @ W @ V
        weights, vectors = np.linalg.eigh((S + S.T) / 2)
        inside = weights > tolerance * size
        nearest = U @ (vectors[:, inside] * weights[inside]) @ (V @ vectors[:, inside]).T
        movable = SymmetricBlock(U @ vectors[:, inside], V @ vectors[:, inside])
        return Face(SymmetricBlock(U, V), movable, nearest)
    k = int((values > tolerance).sum())
    held = size * U[:, :k] @ Vt[:k]
    U, V = U[:, k:], Vt[k:].T
    if not (U.size and V.size):
        return Face(Block(U, V), Block(U, V), held)
    P, lengths, Qt = np.linalg.svd(U.T @ W @ V)
    full = int((lengths >= (1 - tolerance) * size).sum())
    lengths = np.where(lengths >= (1 - tolerance) * size, size, lengths)
    r = len(lengths)
    nearest = held + (U @ P[:, :r] * lengths) @ Qt[:r] @ V.T
    return Face(Block(U, V), Block(U @ P[:, full:], V @ Qt[full:].T), nearest)

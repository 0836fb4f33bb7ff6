"""The face of a ball in which all solutions of a margin problem lie.

Optimal multipliers give a matrix ``M = sum_j lambda_j a_j b_j^T`` of dual norm one, and every
solution W has ``<M, W> = ||W||``. In the four norms that are not strictly convex that leaves

    l_1       entries where ``|M_ij| = 1``, with the signs of M
    l_inf     ``sign(M_ij) ||W||`` where M is not zero, anything up to ``||W||`` where it is
    nuclear   ``U S V^T`` with S positive semidefinite, U and V singular vectors of singular value 1
    spectral  ``||W|| U V^T`` on all singular vectors of M, anything up to ``||W||`` off them

In a maximum of norms of blocks it leaves the face of each block where M is not zero, and anything
of norm up to ``||W|| / c_b`` where it is; in a sum, a multiple of the face of each block where
``||M_b||_b* = c_b``, and zero elsewhere.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import BlockMaximum, BlockSum, Geometry, Lp, Schatten, has_norm_of
from attractor.geometry.blocks import Piece

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
        self.pairs, self.weights = _pairs(U.shape[1])
        self.size = len(self.weights)

    def features(self, left: _Left, right: _Right) -> _Features:
        """Products of coordinates, made symmetric."""
        return symmetric_features(left @ self.U, right @ self.V)

    def coordinates(self, G: _Matrix) -> Float[np.ndarray, "size"]:
        """Those of the symmetric part of ``U^T G V``."""
        inner = self.U.T @ G @ self.V
        return (inner + inner.T)[self.pairs] * self.weights

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> _Matrix:
        """``U S V^T``."""
        half = np.zeros((self.U.shape[1],) * 2)
        half[self.pairs] = coordinates * self.weights
        return self.U @ (half + half.T) @ self.V.T


def symmetric_features(
    a: Float[np.ndarray, "*batch m r"], b: Float[np.ndarray, "*batch m r"]
) -> Float[np.ndarray, "*batch m size"]:
    """``a_j^T S_k b_j`` for an orthonormal basis of the symmetric matrices S_k."""
    (i, k), weights = _pairs(a.shape[-1])
    return (a[..., i] * b[..., k] + a[..., k] * b[..., i]) * weights


def _pairs(r: int) -> tuple[tuple[np.ndarray, np.ndarray], Float[np.ndarray, "size"]]:
    """The entries that say all of a symmetric matrix, and their weights in an orthonormal basis."""
    i, k = np.triu_indices(r)
    return (i, k), np.where(i == k, 0.5, math.sqrt(0.5))


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


class Multiples(Directions):
    """Multiples of one matrix."""

    def __init__(self, B: _Matrix) -> None:
        """Takes a matrix that is not zero."""
        self.B, self.size = B / np.linalg.norm(B), 1

    def features(self, left: _Left, right: _Right) -> _Features:
        """Margins of the matrix."""
        return np.einsum("me,me->m", left @ self.B, right)[:, None]

    def coordinates(self, G: _Matrix) -> Float[np.ndarray, "size"]:
        """One inner product."""
        return np.array([(G * self.B).sum()])

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> _Matrix:
        """The multiple."""
        return coordinates[0] * self.B


class InBlocks(Directions):
    """Spaces of matrices in blocks of the whole, one after another.

    Attributes:
        parts: Blocks, each with a space; a block may have several.
        shape: Of the whole.
    """

    def __init__(
        self, parts: list[tuple[Piece, Directions]], shape: tuple[int, ...], *, limited: bool
    ) -> None:
        """Joins spaces.

        Args:
            parts: Blocks and spaces.
            shape: Of the whole.
            limited: Whether bounds on coordinates hold whatever the others are.
        """
        self.parts, self.shape, self._limited = parts, shape, limited
        self.size = sum(space.size for _, space in parts)
        self._ends = np.cumsum([space.size for _, space in parts])[:-1]

    def features(self, left: _Left, right: _Right) -> _Features:
        """Those of each block."""
        found = [
            space.features(left[:, piece.rows], right[:, piece.columns])
            for piece, space in self.parts
        ]
        return np.concatenate([np.zeros((len(left), 0)), *found], axis=1)

    def coordinates(self, G: _Matrix) -> Float[np.ndarray, "size"]:
        """Those of each block."""
        found = [space.coordinates(G[piece.rows, piece.columns]) for piece, space in self.parts]
        return np.concatenate([np.zeros(0), *found])

    def matrix(self, coordinates: Float[np.ndarray, "size"]) -> _Matrix:
        """The sum over the blocks."""
        result = np.zeros(self.shape)
        for (piece, space), own in zip(
            self.parts, np.split(coordinates, self._ends), strict=bool(self.parts)
        ):
            result[piece.rows, piece.columns] += space.matrix(own)
        return result

    def limits(self) -> Float[np.ndarray, "size 2"]:
        """Those of each block."""
        if not self._limited or not self.parts:
            return super().limits()
        return np.concatenate([space.limits() for _, space in self.parts])


@dataclass(frozen=True)
class Face:
    """The face of a ball around a solution that its multipliers expose.

    In the entrywise norms ``directions`` and ``movable`` are the same space, and bounds on its
    coordinates say where the solution can move one way only.

    Attributes:
        directions: Differences of matrices in the face.
        movable: Those in which the solution can move both ways inside it.
        nearest: The solution, less what takes it off the face.
        shared: Rows of coordinates in which all solutions are alike.
    """

    directions: Directions
    movable: Directions
    nearest: _Matrix
    shared: Float[np.ndarray, "s size"]

    @classmethod
    def of(cls, M: _Matrix, directions: Directions, movable: Directions, nearest: _Matrix) -> Face:
        """A face in one norm; where M does not vanish on it, it is the norm there.

        Args:
            M: Of dual norm one.
            directions: See the class.
            movable: See the class.
            nearest: See the class.
        """
        along = directions.coordinates(M)
        shared = along[None] if np.linalg.norm(along) > 0.5 else np.zeros((0, along.size))
        return cls(directions, movable, nearest, shared)


def exposed_face(geometry: Geometry, M: _Matrix, W: _Matrix, tolerance: float) -> Face:
    """The face in a norm that is not strictly convex.

    Of the faces of other norms than these nothing is known: all differences are possible, and none
    is known to be.

    Args:
        geometry: The norm.
        M: ``sum_j lambda_j a_j b_j^T``, of dual norm one.
        W: A solution.
        tolerance: Relative difference of singular values or entries that count as equal.
    """
    if has_norm_of(geometry, BlockMaximum):
        return _face_of_maximum(geometry, M, W, tolerance)
    if has_norm_of(geometry, BlockSum):
        return _face_of_sum(geometry, M, W, tolerance)
    size = float(geometry.norm(W))
    if has_norm_of(geometry, Lp) and geometry.p == 1:
        chosen, along = np.abs(M) >= 1 - tolerance, W * np.sign(M)
        slack = np.where(along > tolerance * size, along, 0.0)
        entries = Entries(chosen, np.where(M > 0, slack, np.inf), np.where(M > 0, np.inf, slack))
        return Face.of(M, entries, entries, np.where(chosen & (along > 0), W, 0.0))
    if has_norm_of(geometry, Lp) and geometry.p == math.inf:
        chosen, below, above = np.abs(M) <= tolerance, size + W, size - W
        entries = Entries(
            chosen,
            np.where(below > tolerance * size, below, 0.0),
            np.where(above > tolerance * size, above, 0.0),
        )
        return Face.of(M, entries, entries, np.where(chosen, W, size * np.sign(M)))
    if not has_norm_of(geometry, Schatten):
        d, e = W.shape
        return Face.of(M, Block(np.eye(d), np.eye(e)), Block(np.zeros((d, 0)), np.zeros((e, 0))), W)
    U, values, Vt = np.linalg.svd(M)
    if geometry.p == 1:
        k = int((values >= 1 - tolerance).sum())
        U, V = U[:, :k], Vt[:k].T
        S = U.T @ W @ V
        weights, vectors = np.linalg.eigh((S + S.T) / 2)
        inside = weights > tolerance * size
        nearest = U @ (vectors[:, inside] * weights[inside]) @ (V @ vectors[:, inside]).T
        movable = SymmetricBlock(U @ vectors[:, inside], V @ vectors[:, inside])
        return Face.of(M, SymmetricBlock(U, V), movable, nearest)
    k = int((values > tolerance).sum())
    held = size * U[:, :k] @ Vt[:k]
    U, V = U[:, k:], Vt[k:].T
    if not (U.size and V.size):
        return Face.of(M, Block(U, V), Block(U, V), held)
    P, lengths, Qt = np.linalg.svd(U.T @ W @ V)
    full = int((lengths >= (1 - tolerance) * size).sum())
    lengths = np.where(lengths >= (1 - tolerance) * size, size, lengths)
    r = len(lengths)
    nearest = held + (U @ P[:, :r] * lengths) @ Qt[:r] @ V.T
    return Face.of(M, Block(U, V), Block(U @ P[:, full:], V @ Qt[full:].T), nearest)


def _face_of_maximum(geometry: BlockMaximum, M: _Matrix, W: _Matrix, tolerance: float) -> Face:
    directions, movable, shared = [], [], []
    nearest = W.copy()
    for piece in geometry.pieces(W.shape):
        place = piece.rows, piece.columns
        share = float(piece.geometry.dual_norm(M[place])) / piece.weight
        if share <= tolerance:  # free up to the norm
            everything = _everything(piece.shape)
            face = Face(everything, everything, W[place], np.zeros((0, everything.size)))
        else:
            G = M[place] / (share * piece.weight)
            face = _face_of_block(piece, G, W[place], tolerance / share)
        directions.append((piece, face.directions))
        movable.append((piece, face.movable))
        shared.append(face.shared)
        nearest[place] = face.nearest
    rows = np.zeros((sum(map(len, shared)), sum(space.size for _, space in directions)))
    row = column = 0
    for block in shared:
        rows[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return Face(
        InBlocks(directions, W.shape, limited=True),
        InBlocks(movable, W.shape, limited=True),
        nearest,
        rows,
    )


def _face_of_sum(geometry: BlockSum, M: _Matrix, W: _Matrix, tolerance: float) -> Face:
    directions, movable = [], []
    nearest, size = np.zeros_like(W), float(geometry.norm(W))
    for piece in geometry.pieces(W.shape):
        place = piece.rows, piece.columns
        ratio = float(piece.geometry.dual_norm(M[place])) / piece.weight
        if ratio < 1 - tolerance:
            continue
        G = M[place] / (ratio * piece.weight)
        present = piece.weight * float(piece.geometry.norm(W[place])) > tolerance * size
        # Of a block that is zero, the face is that of any matrix of it.
        V = W[place] if present else piece.geometry.steepest_descent_direction(G)
        face = _face_of_block(piece, G, V, tolerance)
        spaces = [face.directions]
        if not len(face.shared):  # the norm is fixed on it, but not in the sum
            spaces.append(Multiples(V - face.directions.matrix(face.directions.coordinates(V))))
        directions += [(piece, space) for space in spaces]
        if present:
            movable += [(piece, space) for space in (face.movable, *spaces[1:])]
            nearest[place] = face.nearest
    return Face.of(
        M,
        InBlocks(directions, W.shape, limited=False),
        InBlocks(movable, W.shape, limited=False),
        nearest,
    )


def _face_of_block(piece: Piece, G: _Matrix, W: _Matrix, tolerance: float) -> Face:
    """The face of one block; a point in norms that are strictly convex."""
    if piece.geometry.unique:
        none = Block(np.zeros((W.shape[0], 0)), np.zeros((W.shape[1], 0)))
        return Face(none, none, W, np.zeros((0, 0)))
    return exposed_face(piece.geometry, G, W, tolerance)


def _everything(shape: tuple[int, int]) -> Entries:
    """All matrices of a shape."""
    infinite = np.full(shape, np.inf)
    return Entries(np.ones(shape, dtype=bool), infinite, infinite)

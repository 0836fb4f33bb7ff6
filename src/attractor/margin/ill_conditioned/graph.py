"""The pairs of a matrix W and a subgradient M of its norm, as a smooth manifold with tangents.

W is the smallest matrix of its margins when ``M = sum_j lambda_j a_j b_j^T`` is a subgradient of
the norm at W. One matrix Z stands for each pair: W, or M, or a weighted sum of the two. The norms
of entries and of singular values differ in the coordinates alone, in which tangents are diagonal
but for one direction.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.margin.smooth.norm_expansions import Frame


@dataclass(frozen=True)
class Point:
    """A pair, and the tangent there: ``dW = T(dM)``, ``T = diag(weights) + factor g g^T``.

    Attributes:
        W: The matrix.
        M: The subgradient.
        frame: Orthonormal coordinates, for a batch of one.
        weights: The diagonal in the frame.
        spike: The g in the frame.
        factor: Its weight, of either sign.
    """

    W: Float[np.ndarray, "d e"]
    M: Float[np.ndarray, "d e"]
    frame: Frame
    weights: Float[np.ndarray, "1 d e"]
    spike: Float[np.ndarray, "1 d e"]
    factor: float

    def move(self, dM: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"]:
        """``T(dM)``."""
        inside = self.frame.enter(dM[None])
        along = self.factor * float((self.spike * inside).sum())
        return self.frame.leave(self.weights * inside + along * self.spike)[0]

    def root(self) -> Float[np.ndarray, "m n"]:
        """B with ``B B^T`` the inner products ``<a_i b_i^T, T(a_j b_j^T)>``."""
        rows = self.frame.coordinates()[0]
        rows = rows.reshape(len(rows), -1)
        spike, roots = self.spike.ravel(), np.sqrt(self.weights).ravel()
        if self.factor >= 0:
            column = np.sqrt(self.factor) * (rows @ spike)
            return np.hstack([rows * roots, column[:, None]])
        rows = rows * roots
        unit = np.where(roots > 0, spike / np.where(roots > 0, roots, 1.0), 0.0)
        square = float(unit @ unit)
        if square == 0:
            return rows
        # I + factor u u^T is the square of I - beta u u^T.
        beta = (1 - np.sqrt(max(1 + self.factor * square, 0.0))) / square
        return rows - beta * np.outer(rows @ unit, unit)


class Graph(abc.ABC):
    """The pairs of one norm."""

    dual_norm: float | None
    """Dual norm of M; None if it is ``||W||``."""

    @abc.abstractmethod
    def coordinate(
        self, W: Float[np.ndarray, "d e"], M: Float[np.ndarray, "d e"]
    ) -> Float[np.ndarray, "d e"]:
        """The Z that stands for a pair, or that of changes of a pair."""

    @abc.abstractmethod
    def at(self, Z: Float[np.ndarray, "d e"], area: float, residual: float) -> Point:
        """The pair that Z stands for.

        Args:
            Z: The matrix.
            area: How far to smooth the norm: below one, and zero in the end.
            residual: How far the conditions for optimality are from being met.
        """

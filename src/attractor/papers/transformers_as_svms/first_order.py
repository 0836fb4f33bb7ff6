"""A first-order solver that is stopped early, and the rank its leftovers seem to have.

The published ranks of nuclear solutions are those of a first-order conic solver with its default
accuracy: singular values above 1e-7 are counted, but it leaves some of 1e-6 to 1e-5 in every
direction that the constraints span. This solver is not that one; it is of the same kind, and
leaves the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from attractor.margin import MarginProblem
from attractor.support.blas import single_blas_thread

ABSOLUTE_CUT = 1e-7
"""The singular values counted in the published figure are those above it."""
_MOST_STEPS = 2500


def ranks_when_stopped(
    problem: MarginProblem, tolerances: Sequence[float]
) -> Int[np.ndarray, "tolerance instance"]:
    """Ranks read off ``min ||W||_*`` solved to several accuracies, cut at an absolute 1e-7.

    The alternating direction method of multipliers splits the matrix from a copy whose singular
    values are thresholded, and margins from a copy that is at least 1:

        W, r  =  argmin ||W - Z + U||^2 + ||A(W) - 1 - s + u||^2
        Z     =  soft thresholding by 1 of the singular values of W + U
        s     =  (A(W) - 1 + u)_+

    and is stopped where both its residuals are below ``tolerance (1 + ||W||_F)``, or after 2,500
    steps. What is read is W, which meets the constraints and is not thresholded, as the matrix
    that conic solvers return.

    Args:
        problem: Feasible constraints with bounds of 1, with an axis of instances.
        tolerances: Accuracies, from the lowest on: the largest first.
    """
    ranks = np.zeros((len(tolerances), len(problem)), int)
    with single_blas_thread():
        iterates = _Iterates(problem)
        reached = np.zeros(len(problem), int)  # how many of the tolerances
        for step in range(_MOST_STEPS + 1):
            residual = iterates.advance()
            goals = np.append(tolerances, -1.0)[reached[iterates.instance]]
            for place in np.flatnonzero((residual <= goals) | (step == _MOST_STEPS)).tolist():
                instance = iterates.instance[place]
                met = int((residual[place] <= np.asarray(tolerances)).sum())
                last = len(tolerances) if step == _MOST_STEPS else met
                ranks[reached[instance] : last, instance] = iterates.rank(place)
                reached[instance] = last
            iterates.keep(reached[iterates.instance] < len(tolerances))
            if not len(iterates.instance):
                break
    return ranks


class _Iterates:
    """The variables of the instances that are not solved yet."""

    def __init__(self, problem: MarginProblem) -> None:
        count, m = problem.bounds.shape
        self.instance = np.arange(count)
        self.left, self.right = problem.left, problem.right
        gram = (self.left @ self.left.mT) * (self.right @ self.right.mT)
        self.inverse = np.linalg.inv(np.eye(m) + gram)
        self.W = np.zeros((count, *problem.shape))
        self.Z, self.U = self.W.copy(), self.W.copy()
        self.s, self.u = np.zeros((count, m)), np.zeros((count, m))

    def advance(self) -> Float[np.ndarray, "instance"]:
        """Takes one step, and returns the larger of both residuals relative to ``1 + ||W||_F``."""
        # W: least squares in the rank-one constraints, by the matrix inversion lemma.
        start = self.Z - self.U
        lacking = 1 + self.s - self.u - self._margins(start)
        weights = np.einsum("kab,kb->ka", self.inverse, lacking)
        self.W = start + self.left.mT @ (weights[..., None] * self.right)
        # Z and s: the proximal steps of the nuclear norm and of margins of at least one.
        excess = self._margins(self.W) - 1
        left, values, right = np.linalg.svd(self.W + self.U, full_matrices=False)
        Z = (left * np.maximum(values - 1, 0)[:, None]) @ right
        s = np.maximum(excess + self.u, 0)
        # The residuals of the copies and of their change, before U and u take them up.
        primal = _length(self.W - Z, excess - s)
        dual = _length(Z - self.Z, s - self.s)
        self.U, self.u = self.U + self.W - Z, self.u + excess - s
        self.Z, self.s = Z, s
        return np.maximum(primal, dual) / (1 + np.linalg.norm(self.W, axis=(-1, -2)))

    def rank(self, place: int) -> int:
        return int((np.linalg.svd(self.W[place], compute_uv=False) > ABSOLUTE_CUT).sum())

    def keep(self, chosen: np.ndarray) -> None:
        if not chosen.all():
            for name, array in vars(self).items():
                setattr(self, name, array[chosen])

    def _margins(self, W: Float[np.ndarray, "instance d e"]) -> Float[np.ndarray, "instance m"]:
        return ((self.left @ W) * self.right).sum(-1)


def _length(matrix: np.ndarray, vector: np.ndarray) -> Float[np.ndarray, "instance"]:
    return np.sqrt((matrix**2).sum((-1, -2)) + (vector**2).sum(-1))

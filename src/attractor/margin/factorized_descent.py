"""A local solution of one margin problem in the factors of ``W = K Q^T``.

The augmented Lagrangian of ``min (||K||_F^2 + ||Q||_F^2) / 2`` is minimized by L-BFGS until the
margins are met roughly; Newton's method on the conditions of first order, at the constraints that
then carry multipliers, gives the remaining digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attractor.margin.scaling import ScaledConstraints

_MOST_ROUNDS = 60
_MOST_STEPS = 300
_MET = 1e-7
"""Violation, relative to the largest bound, at which Newton's method takes over."""
_MOST_NEWTON_STEPS = 12
_FEASIBLE = 1e-9


@dataclass(frozen=True)
class LocalSolution:
    """Factors of a matrix that meets the constraints to 1e-9, and multipliers.

    Attributes:
        K: Left factor.
        Q: Right factor, of the same norm.
        multipliers: Of the Lagrangian in the factors.
        violation: Largest shortfall of a margin, relative to the largest bound.
        residual: Largest violation of a condition of first order.
    """

    K: Float[np.ndarray, "p r"]
    Q: Float[np.ndarray, "q r"]
    multipliers: Float[np.ndarray, "m"]
    violation: float
    residual: float

    @property
    def value(self) -> float:
        """``(||K||_F^2 + ||Q||_F^2) / 2``."""
        return 0.5 * float((self.K**2).sum() + (self.Q**2).sum())

    @property
    def feasible(self) -> bool:
        """Whether the margins are met."""
        return self.violation <= _FEASIBLE


def descend(
    scaled: ScaledConstraints, K: Float[np.ndarray, "p r"], Q: Float[np.ndarray, "q r"]
) -> LocalSolution:
    """Descends from given factors.

    Args:
        scaled: The constraints of one instance, on an axis of instances.
        K: Left factor to start from.
        Q: Right factor to start from.
    """
    factors = _Factors(scaled, K.shape[1])
    x = np.concatenate([K.ravel(), Q.ravel()])
    x, multipliers = _roughly(factors, x)
    found = factors.judge(x, multipliers)
    for _ in range(_MOST_NEWTON_STEPS):
        if found.violation > 1e3 * _MET:
            break
        x, multipliers = _newton_step(factors, x, multipliers)
        polished = factors.judge(x, multipliers)
        if not max(polished.violation, polished.residual) < max(found.violation, found.residual):
            break
        found = polished
    return found


class _Factors:
    """The constraints of one instance as functions of the factors, one long vector."""

    def __init__(self, scaled: ScaledConstraints, width: int) -> None:
        kept = np.flatnonzero((scaled.inequality | scaled.equality)[0])
        self.slots, self.most = kept, scaled.bounds.shape[1]
        self.left, self.right = scaled.left[0, kept], scaled.right[0, kept]
        self.bounds, self.equality = scaled.bounds[0, kept], scaled.equality[0, kept]
        self.width = width
        self.split_at = self.left.shape[1] * width

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K and Q."""
        return (
            x[: self.split_at].reshape(-1, self.width),
            x[self.split_at :].reshape(-1, self.width),
        )

    def margins(self, x: np.ndarray) -> np.ndarray:
        """``a_j^T K Q^T b_j``."""
        K, Q = self.split(x)
        return ((self.left @ K) * (self.right @ Q)).sum(-1)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of the margins."""
        K, Q = self.split(x)
        by_K = self.left[:, :, None] * (self.right @ Q)[:, None]
        by_Q = self.right[:, :, None] * (self.left @ K)[:, None]
        m = len(self.bounds)
        return np.concatenate([by_K.reshape(m, -1), by_Q.reshape(m, -1)], axis=1)

    def pull(self, x: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """The gradient of the margins combined by multipliers."""
        K, Q = self.split(x)
        M = self.left.T @ (multipliers[:, None] * self.right)
        return np.concatenate([(M @ Q).ravel(), (M.T @ K).ravel()])

    def hessian(self, multipliers: np.ndarray) -> np.ndarray:
        """The Hessian of the Lagrangian."""
        M = self.left.T @ (multipliers[:, None] * self.right)
        lift = np.kron(M, np.eye(self.width))
        p, q = lift.shape
        return np.block([[np.eye(p), -lift], [-lift.T, np.eye(q)]])

    def judge(self, x: np.ndarray, multipliers: np.ndarray) -> LocalSolution:
        """The point with its violation and its residual of first order, both relative."""
        K, Q = self.split(x)
        short = self.bounds - self.margins(x)
        unmet = np.where(self.equality, np.abs(short), np.maximum(short, 0.0))
        size = max(float(np.linalg.norm(x)), 1e-100)
        stationary = np.linalg.norm(x - self.pull(x, multipliers)) / size
        slack = np.abs(np.where(self.equality, 0.0, multipliers * short)).sum() / size**2
        wrong = np.where(self.equality, 0.0, np.maximum(-multipliers, 0.0)).max(initial=0.0)
        wrong /= max(np.abs(multipliers).max(initial=0.0), 1e-300)
        everywhere = np.zeros(self.most)
        everywhere[self.slots] = multipliers
        violation = unmet.max(initial=0.0) / max(np.abs(self.bounds).max(initial=0.0), 1e-300)
        residual = float(max(stationary, slack, wrong))
        return LocalSolution(K, Q, everywhere, float(violation), residual)


def _roughly(factors: _Factors, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The method of multipliers, until margins are met or stop improving."""
    from scipy.optimize import minimize

    multipliers = np.zeros(len(factors.bounds))
    penalty, before = 10 * max(0.5 * float(x @ x), 1.0), np.inf

    def lagrangian(x: np.ndarray) -> tuple[float, np.ndarray]:
        push = multipliers + penalty * (factors.bounds - factors.margins(x))
        push = np.where(factors.equality, push, np.maximum(push, 0.0))
        value = 0.5 * float(x @ x) + 0.5 * float(push @ push) / penalty
        return value, x - factors.pull(x, push)

    options = {"maxiter": _MOST_STEPS, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-10}
    for _ in range(_MOST_ROUNDS):
        x = minimize(lagrangian, x, jac=True, method="L-BFGS-B", options=options).x
        push = multipliers + penalty * (factors.bounds - factors.margins(x))
        multipliers = np.where(factors.equality, push, np.maximum(push, 0.0))
        found = factors.judge(x, multipliers)
        if found.violation <= _MET and found.residual <= 1e3 * _MET:
            break
        if found.violation > 0.3 * before:
            penalty = min(4 * penalty, 1e12)
        before = found.violation
    return x, multipliers


def _newton_step(
    factors: _Factors, x: np.ndarray, multipliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's step for the conditions of first order at the constraints in use.

    Rotating both factors changes nothing, so that the system is singular: the shortest step.
    """
    used = np.flatnonzero(factors.equality | (multipliers > 0))
    J = factors.jacobian(x)[used]
    system = np.block(
        [[factors.hessian(multipliers), -J.T], [-J, np.zeros((len(used), len(used)))]]
    )
    right = np.concatenate([-x, (factors.margins(x) - factors.bounds)[used]])
    # The unknowns are the step and the new multipliers; J^T times the old ones is in the system.
    step = np.linalg.lstsq(system, right, rcond=1e-12)[0]
    new = np.zeros_like(multipliers)
    new[used] = step[len(x) :]
    return x + step[: len(x)], new

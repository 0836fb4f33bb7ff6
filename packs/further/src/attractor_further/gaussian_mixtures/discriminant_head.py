"""The logistic risk in the matrices of a head on labeled points, and its gradient flow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.integrate
from jaxtyping import Float
from scipy.special import expit

from attractor import InvalidInputError
from attractor_further.gaussian_mixtures.discriminant import Classes, Effective, Risk, risk

_STEP = 1e-5
_GATE = 2.0
"""The size of ``s`` where ``r = 0``."""
_CONSTANT_GATE = 3.0
"""The size of ``r`` where ``s = 0``."""
_LEAST_VALUES = 1e-6
LEAST_SUM = 1e-6
"""Norm of the sum of the means of two classes up to which they count as opposite."""


class Matrices(NamedTuple):
    """The matrices of a head on labeled points, as one flat array and by name.

    With ``U^T = [[U11, u12], .]`` and ``V = (v21, v22)`` the score has ``w = U11 Gamma v21``,
    ``b = v21^T m_- - v22``, ``r = v21^T (m_+ - m_-) + 2 v22`` and
    ``s = 2 u12 + U11 (m_+ - m_-)``.

    Attributes:
        U11: Scores of the points of tokens with the points of queries.
        u12: Scores of the labels of tokens with the points of queries.
        v21: Values of the points.
        v22: The value of the label.
    """

    U11: Float[np.ndarray, "d d"]
    u12: Float[np.ndarray, "d"]
    v21: Float[np.ndarray, "d"]
    v22: float

    @classmethod
    def of(cls, flat: Float[np.ndarray, "parameter"]) -> Matrices:
        """From a flat array."""
        d = round(np.sqrt(len(flat))) - 1
        U11, u12, v21, v22 = np.split(flat, np.cumsum([d * d, d, d]))
        return cls(U11.reshape(d, d), u12, v21, float(v22[0]))

    @property
    def flat(self) -> Float[np.ndarray, "parameter"]:
        """As a flat array."""
        return np.concatenate([self.U11.ravel(), self.u12, self.v21, [self.v22]])

    @property
    def balance(self) -> float:
        """``||U11||^2 - ||v21||^2``."""
        return float(np.sum(self.U11**2) - np.sum(self.v21**2))

    def score(self, of: Classes) -> Effective:
        """The parameters of the score."""
        return Effective(
            self.U11 @ of.covariance @ self.v21,
            float(self.v21 @ of.negative - self.v22),
            float(self.v21 @ of.between + 2 * self.v22),
            2 * self.u12 + self.U11 @ of.between,
        )


def bayes_matrices(
    of: Classes, draws: np.random.Generator, *, gate: bool
) -> Float[np.ndarray, "parameter"] | None:
    """Random matrices of a head that is Bayes, or None where ``b`` and ``r`` leave no ``v21``.

    Args:
        of: The classes.
        draws: What they are drawn from.
        gate: Whether ``r = 0`` and ``s`` is not, or ``s = 0`` and ``r`` is not.

    Raises:
        InvalidInputError: If the means of the classes are opposite, or both zero.
    """
    (w, b), d = of.bayes, len(of.positive)
    direction = draws.standard_normal(d)
    s = _GATE * direction / np.linalg.norm(direction) * gate
    r = _CONSTANT_GATE * (not gate)
    b -= r * expit(of.log_odds) * (not gate)
    # v21^T (m_+ + m_-) = 2 b + r is what b and r leave to v21.
    total = of.positive + of.negative
    if np.linalg.norm(total) <= LEAST_SUM:
        raise InvalidInputError(
            "tokens", "the means of their classes add up to zero",
            "Give classes whose means are not opposite, nor both zero",
        )  # fmt: skip
    v21 = draws.standard_normal(d)
    v21 += total * (2 * b + r - v21 @ total) / (total @ total)
    if np.linalg.norm(v21) < _LEAST_VALUES:
        return None
    turned = of.covariance @ v21
    U11 = draws.standard_normal((d, d))
    U11 += np.outer(w - U11 @ turned, turned) / (turned @ turned)
    u12 = (s - U11 @ of.between) / 2
    return Matrices(U11, u12, v21, float(r - v21 @ of.between) / 2).flat


def head_risk(of: Classes, flat: Float[np.ndarray, "parameter"]) -> Risk:
    """The logistic risk in the matrices of a head, and its gradient there.

    Args:
        of: The classes.
        flat: ``U11``, ``u12``, ``v21`` and ``v22`` in a row.
    """
    head = Matrices.of(flat)
    value, gradient = risk(of, head.score(of).flat)
    slope = Effective.of(gradient)
    in_U11 = np.outer(slope.w, of.covariance @ head.v21) + np.outer(slope.s, of.between)
    in_v21 = of.covariance @ head.U11.T @ slope.w + slope.b * of.negative + slope.r * of.between
    return Risk(value, Matrices(in_U11, 2 * slope.s, in_v21, 2 * slope.r - slope.b).flat)


def head_hessian(
    of: Classes, flat: Float[np.ndarray, "parameter"]
) -> Float[np.ndarray, "parameter parameter"]:
    """Second derivatives of the logistic risk in the matrices of a head, by differences."""
    steps = _STEP * np.eye(len(flat))
    rows = [head_risk(of, flat + h).gradient - head_risk(of, flat - h).gradient for h in steps]
    hessian = np.stack(rows) / (2 * _STEP)
    return (hessian + hessian.T) / 2


def head_flow(
    of: Classes,
    start: Float[np.ndarray, "parameter"],
    times: Float[np.ndarray, "time"],
    *,
    tolerance: float,
) -> Float[np.ndarray, "time parameter"]:
    """Gradient flow of the logistic risk in the matrices of a head.

    Args:
        of: The classes.
        start: The matrices at the start.
        times: When the flow is recorded, from 0 on.
        tolerance: Of a step of the integration, relative; a thousandth of it absolute.
    """
    found = scipy.integrate.solve_ivp(
        lambda _, flat: -head_risk(of, flat).gradient,
        (0.0, float(times[-1])),
        start,
        method="LSODA",
        t_eval=times,
        rtol=tolerance,
        atol=tolerance / 1000,
    )
    return found.y.T

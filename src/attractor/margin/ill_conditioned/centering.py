"""A point on the central path of the Frobenius problem, to start from in other norms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin import extended
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.orthogonal_factor import OrthogonalFactor

_MOST_STEPS = 30
_NEAR = 0.01
"""Newton decrement, in units of ``||W||``, at which to stop."""
_LEAST_SLACK = 1e-3
"""Slack to start from, beside the largest bound that forces W from zero, where there is none."""
_REACH = 0.9


def centered(
    constraints: Constraints,
    W: Float[np.ndarray, "d e"],
    multipliers: Float[np.ndarray, "m"],
    share: float,
) -> tuple[extended.Pair, Float[np.ndarray, "m"]]:
    """Multipliers and slacks whose products are all near ``share ||W||^2 / m``.

    Where constraints nearly contradict each other, multipliers and slacks differ by many orders
    of magnitude from one constraint to the next. At a centered point they are of the size that
    suits each constraint, in the Frobenius norm and so, within small factors, in any other.

    Args:
        constraints: The constraints.
        W: The Frobenius solution.
        multipliers: With ``W = sum_j multipliers_j a_j b_j^T``.
        share: Sum of the products, in units of ``||W||^2``.
    """
    c, inequality = constraints.bounds, constraints.inequality
    square = float(np.sum(W**2))
    mu = share * square / max(int(inequality.sum()), 1)
    size = np.sqrt(square * np.einsum("mn,mn->m", constraints.rows, constraints.rows))
    forcing = np.where(inequality, np.maximum(c, 0.0), np.abs(c)).max()
    slack = np.maximum(-constraints.shortfall(c, W), _LEAST_SLACK * forcing)
    inactive = multipliers <= 0
    high = np.where(inactive, mu / slack, np.maximum(multipliers, mu / size))
    x = np.where(inequality, high, multipliers), np.zeros_like(c)
    s = np.where(inequality, mu / np.where(inequality, x[0], 1.0), 0.0)
    for _ in range(_MOST_STEPS):
        positive = np.where(inequality, x[0], 1.0)
        goal = np.where(inequality, mu / positive, 0.0)
        rest = constraints.shortfall(c + goal, constraints.combine_exactly(x)[0])
        ratio = s / positive
        factor = OrthogonalFactor.of(constraints.rows, ratio)
        dx = factor.solve(rest)
        ds = np.where(inequality, goal - s - ratio * dx, 0.0)
        length = longest_step(inequality, (positive, dx), (s, ds), _REACH)
        x, s = extended.add(x, length * dx, 0.0), s + length * ds
        if float(np.sum(factor.half(rest) ** 2)) <= _NEAR**2 * square:
            break
    return x, s


def longest_step(
    inequality: Bool[np.ndarray, "m"],
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    reach: float,
) -> float:
    """The longest step, at most one, that goes a share of the way to where a number vanishes.

    Args:
        inequality: Which numbers have to stay positive.
        first: Numbers and their changes.
        second: Likewise.
        reach: The share.
    """
    rates = [-change[inequality] / numbers[inequality] for numbers, change in (first, second)]
    fastest = np.max(np.concatenate(rates), initial=0.0)
    return float(min(1.0, reach / max(fastest, reach)))

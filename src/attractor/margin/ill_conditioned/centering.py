"""A point on the central path of the Frobenius problem, to start from in other norms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.batching import extended
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.orthogonal_factor import OrthogonalFactor

_MOST_STEPS = 30
_NEAR = 0.01
"""Newton decrement, in units of ``||W||``, at which to stop."""
_LEAST_SLACK = 1e-3
"""Slack to start from, beside the largest bound that forces W from zero, where there is none."""
_REACH = 0.9
_ROUNDS = 3
"""Solutions of a system, each of what is left of the one before."""


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
    slack = np.maximum(-constraints.shortfall(c, (W, np.zeros_like(W))), _LEAST_SLACK * forcing)
    inactive = multipliers <= 0
    high = np.where(inactive, mu / slack, np.maximum(multipliers, mu / size))
    x = np.where(inequality, high, multipliers), np.zeros_like(c)
    s = np.where(inequality, mu / np.where(inequality, x[0], 1.0), 0.0)
    for _ in range(_MOST_STEPS):
        positive = np.where(inequality, x[0], 1.0)
        goal = np.where(inequality, mu / positive, 0.0)
        ratio = s / positive
        factor = OrthogonalFactor.of(constraints.rows, ratio)
        rest = short = constraints.shortfall(c + goal, constraints.combine_exactly(x))
        dx = np.zeros_like(c), np.zeros_like(c)
        for _ in range(_ROUNDS):  # what is large in a residual hides what is small
            dx = extended.add(dx, factor.solve(short), 0.0)
            moved = constraints.combine_exactly(extended.add(x, *dx))
            short = constraints.shortfall(c + goal, moved) - ratio * dx[0]
        ds = np.where(inequality, goal - s - ratio * dx[0], 0.0)
        length = longest_step(inequality, (positive, dx[0]), (s, ds), _REACH)
        x, s = extended.add(x, *times(length, dx)), s + length * ds
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


def times(length: float, pair: extended.Pair) -> extended.Pair:
    """A pair times a number."""
    high, low = extended.two_product(np.full_like(pair[0], length), pair[0])
    return high, low + length * pair[1]

"""Where the loss of label mass is least over balls of growing radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.blas import single_blas_thread
from attractor.checks import check_kinds
from attractor.errors import InvalidInputError
from attractor.next_token.mechanics.limits import AttentionLimits
from attractor.next_token.mechanics.penalized import Penalized, Point
from attractor.precision import as_float64

_RADIUS = 1e-12
"""Relative error of a norm that is rounding."""
_TRIALS = 100


@dataclass(frozen=True, eq=False, repr=False)
class BallPath:
    """Minimizers of the training loss over balls, ``argmin L(W)`` subject to ``||W||_F <= R``.

    Attributes:
        radii: The radii R.
        W: The minimizers.
        log_excess: Logarithm of the loss above its floor; minus infinity where it is reached.
        log_distance: Logarithm of ``||P_cyc W - W_fin||``, far below what W itself can show.
        log_multiplier: Logarithm of the multiplier m in ``grad L(W) + m W = 0``; minus infinity
            where the minimizer lies inside the ball.
        optimality: The Frank-Wolfe gap ``<grad, W> + R ||grad||``, which bounds what is left to
            gain since the loss is convex, relative to ``R ||grad||``. Where it is not small, the
            search failed: finite parts of norm 10^6, of tokens that hardly differ, can do that.
        iterations: Newton steps to each minimizer.
    """

    radii: Float[np.ndarray, "radius"]
    W: Float[np.ndarray, "radius d d"]
    log_excess: Float[np.ndarray, "radius"]
    log_distance: Float[np.ndarray, "radius"]
    log_multiplier: Float[np.ndarray, "radius"]
    optimality: Float[np.ndarray, "radius"]
    iterations: Int[np.ndarray, "radius"]

    def __repr__(self) -> str:
        return (
            f"BallPath({len(self.radii)} radii from {self.radii[0]:g} to {self.radii[-1]:g}, "
            f"optimality {self.optimality.max():.1e})"
        )


def ball_path(limits: AttentionLimits, radii: Any = None) -> BallPath:
    """The regularization path of log-loss of label mass, for one corpus.

        W(R) = argmin L(W)   subject to   ||W||_F <= R.

    ``W(R) / R`` tends to the direction of ``W_svm`` and ``P_cyc W(R)`` to ``W_fin``, which is zero
    without cycles. The loss is convex, so that its minimizers are those of ``L + m ||W||^2 / 2``
    with the multiplier m that gives the radius. They are found by Newton's method on its gradient
    divided by m, with ``P_cyc W - W_fin`` in units of m: both parts then stay of ordinary size
    when m is exp(-1000). ``training.regularization_path`` is for losses whose best value is that
    of one token in each row, and has no finite part. Source: *Mechanics of Next Token Prediction
    with Self-Attention* (arXiv 2403.08081), regularization path.

    Args:
        limits: The corpus and its limits.
        radii: Increasing radii; default: 17, evenly spread over the logarithm from 1 to 10^4.

    Raises:
        InvalidInputError: If radii are not increasing positive numbers.
    """
    check_kinds(limits=(limits, AttentionLimits))
    radii = np.logspace(0, 4, 17) if radii is None else as_float64("radii", radii)
    if radii.ndim != 1 or not radii.size or radii[0] <= 0 or (np.diff(radii) <= 0).any():
        raise InvalidInputError(
            "radii", f"they are {radii!r:.60}", "Give increasing positive numbers"
        )
    with single_blas_thread():
        penalized = Penalized(limits)
        points = _follow(penalized, radii.tolist())
    W = np.stack([penalized.matrix(point) for point in points])
    return BallPath(
        radii=radii,
        W=W,
        log_excess=np.array([penalized.log_excess(point) for point in points]),
        log_distance=np.array([penalized.log_distance(point) for point in points]),
        log_multiplier=np.array([point.log_multiplier for point in points]),
        optimality=np.array([penalized.optimality(point) for point in points]),
        iterations=np.array([point.iterations for point in points]),
    )


def _follow(penalized: Penalized, radii: list[float]) -> list[Point]:
    """The minimizers, each from the one before."""
    resting = penalized.resting()
    point = penalized.first(radii[0])
    points = []
    for radius in radii:
        if point is None or (not penalized.diverges and penalized.norm(resting) <= radius):
            points.append(resting)
            continue
        point = _at_radius(penalized, point._replace(iterations=0), radius)
        points.append(point)
    return points


def _at_radius(penalized: Penalized, point: Point, radius: float) -> Point:
    """The minimizer on a sphere: Newton's method on the logarithm of the norm, kept in bounds."""
    below, above = np.inf, -np.inf  # log multipliers with norms below and above the radius
    point = penalized.minimize(point)
    for _ in range(_TRIALS):
        log_ratio = np.log(radius / penalized.norm(point))
        if abs(log_ratio) <= _RADIUS:
            break
        if log_ratio > 0:
            below = min(below, point.log_multiplier)
        else:
            above = max(above, point.log_multiplier)
        tangent, slope = penalized.tangent(point)
        wanted = point.log_multiplier + log_ratio / slope
        if not above < wanted < below:
            wanted = (above + below) / 2
        if wanted == point.log_multiplier:
            break
        there = penalized.moved(point, tangent, wanted)
        if there is None:
            break
        point = penalized.minimize(there)
    return point

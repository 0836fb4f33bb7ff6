"""The regularization path of the loss of label mass: minimizers over balls of growing radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_expit, softmax

from attractor.corpora.mechanics.cyclic_part import coordinate_scores, covariance, product_span
from attractor.corpora.mechanics.limits import (
    AttentionLimits,
    log_bregman,
    log_mean_of,
    log_softplus,
    log_sum,
)
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

_RADIUS = 1e-12
"""Relative error of a norm that is rounding."""
_TRIALS = 100
_STEPS = 200
_ROUNDINGS = 64
_SHORTEST = 1e-12
_HALVINGS = 40
_SETTLED = 1e-14
"""Residual, relative to the norm, that is rounding."""


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
        optimality: The Frank-Wolfe gap ``<grad, W> + R ||grad||``, which bounds the loss above its
            minimum on the ball since it is convex, relative to ``R ||grad||``. Where it is not
            small, the search failed, as may happen where a finite part has the norm 10^6 because
            tokens hardly differ.
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
    """The minimizers, each warm-started from the one before."""
    finite = penalized.finite_part()
    point = penalized.first(radii[0])
    points = []
    for radius in radii:
        if point is None or (not penalized.diverges and penalized.norm(finite) <= radius):
            points.append(finite)
            continue
        point = _at_radius(penalized, point._replace(iterations=0), radius)
        points.append(point)
    return points


def _at_radius(penalized: Penalized, point: Point, radius: float) -> Point:
    """The minimizer on a sphere: Newton's method on the logarithm of the norm, bracketed."""
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


class Point(NamedTuple):
    """A matrix, in coordinates.

    Attributes:
        outside: Coordinates off the cyclic subspace.
        shift: ``P_cyc W - W_fin`` in coordinates of the subspace, divided by the multiplier.
        log_multiplier: Logarithm of the multiplier m.
        iterations: Newton steps so far.
    """

    outside: Float[np.ndarray, "p"]
    shift: Float[np.ndarray, "r"]
    log_multiplier: float
    iterations: int = 0


class _Local(NamedTuple):
    """The penalized loss near a point: its value, gradient and Jacobian, all divided by m."""

    value: float
    gradient: np.ndarray
    jacobian: np.ndarray


class Penalized:
    """``L(W) / m + ||W||^2 / 2`` on the matrices that any score of a corpus depends on.

    Scores are those of two orthogonal blocks of coordinates: the cyclic subspace, and what
    differences across components add to it. The second moves no score within a component.
    """

    def __init__(self, limits: AttentionLimits) -> None:
        """Finds the coordinates."""
        contexts = limits.contexts
        sample, place = np.nonzero(contexts.present & ~limits.kept)
        label = contexts.keys[np.arange(len(contexts)), contexts.is_label.argmax(1)]
        across = contexts.keys[sample, place] - label[sample]
        cyclic = limits.subspace.basis
        own = product_span(across, contexts.queries[sample], cyclic)
        self._basis = np.concatenate([own, cyclic])
        self._split = len(own)
        self._scores = coordinate_scores(contexts, self._basis)
        self._scores[limits.kept, : len(own)] = 0  # but for rounding
        self._kept, self._out = limits.kept, contexts.present & ~limits.kept
        self._weights = contexts.weights
        self._finite = limits.subspace.coordinates(limits.finite.W)
        self._settled = limits.finite.weights

    @property
    def diverges(self) -> bool:
        """Whether any token lies outside the component of its label, so that W has to grow."""
        return bool(self._out.any())

    def finite_part(self) -> Point:
        """The finite part, the minimizer without a ball."""
        return Point(np.zeros(self._split), np.zeros_like(self._finite), -np.inf)

    def first(self, radius: float) -> Point | None:
        """About the minimizer on a small sphere; None where the loss is least at zero."""
        zero = Point(np.zeros(self._split), -self._finite, 0.0)
        steepness = np.linalg.norm(self._local(zero).gradient)
        if steepness == 0:
            return None
        log_multiplier = float(np.log(steepness) - np.log(radius))
        return zero._replace(
            shift=-self._finite * np.exp(-log_multiplier), log_multiplier=log_multiplier
        )

    def minimize(self, point: Point) -> Point:
        """The minimizer with the multiplier of a point, by Newton's method from there."""
        split = self._split
        local = self._local(point)
        for _ in range(_STEPS):
            move = -_solved(local.jacobian, local.gradient)
            unscaled = move * self._units(point)
            fall = -(local.gradient @ unscaled)
            noise = _ROUNDINGS * np.finfo(float).eps * (1 + abs(local.value))
            residual = np.linalg.norm(local.gradient)
            share = 1.0
            while True:
                there = point._replace(
                    outside=point.outside + share * move[:split],
                    shift=point.shift + share * move[split:],
                    iterations=point.iterations + 1,
                )
                further = self._local(there)
                if further.value <= local.value - 1e-4 * share * fall + noise:
                    break
                share /= 2
                if share < _SHORTEST:
                    return point
            # Near the minimum values are rounding: there the gradient decides, and ends the search.
            if fall <= noise and np.linalg.norm(further.gradient) >= 0.5 * residual:
                break
            point, local = there, further
            if np.linalg.norm(local.gradient) <= _SETTLED * self.norm(point):
                break
        return point

    def tangent(self, point: Point) -> tuple[Float[np.ndarray, "k"], float]:
        """Derivatives of a minimizer, and of the log of its norm, by the log of the multiplier."""
        coordinates = self._coordinates(point)
        move = -_solved(self._local(point).jacobian, coordinates)
        slope = (coordinates @ (move * self._units(point))) / (coordinates @ coordinates)
        return move, float(slope)

    def moved(
        self, point: Point, tangent: Float[np.ndarray, "k"], log_multiplier: float
    ) -> Point | None:
        """About the minimizer at another multiplier, or at one between where that is too far.

        None where no step at all can be computed.

        In the cyclic subspace either the matrix or its shift in units of m is taken to go straight
        on: the one far from the finite part, the other near it.
        """
        change, split = log_multiplier - point.log_multiplier, self._split
        for _ in range(_HALVINGS):
            there = point._replace(
                outside=point.outside + change * tangent[:split],
                log_multiplier=point.log_multiplier + change,
            )
            with np.errstate(over="ignore", invalid="ignore"):
                shifts = (
                    point.shift + change * (tangent[split:] - point.shift),
                    (point.shift + change * tangent[split:]) * np.exp(-change),
                )
                found = [there._replace(shift=shift) for shift in shifts]
                slopes = [np.linalg.norm(self._local(one).gradient) for one in found]
            best = int(np.argmin(np.where(np.isfinite(slopes), slopes, np.inf)))
            if np.isfinite(slopes[best]):
                return found[best]
            change /= 2
        return None

    def matrix(self, point: Point) -> Float[np.ndarray, "d d"]:
        """The matrix of a point."""
        return np.einsum("k,kce->ce", self._coordinates(point), self._basis)

    def norm(self, point: Point) -> float:
        """Its Frobenius norm."""
        return float(np.linalg.norm(self._coordinates(point)))

    def optimality(self, point: Point) -> float:
        """The Frank-Wolfe gap on the ball through the point, relative to its largest value."""
        if not np.isfinite(point.log_multiplier):
            return 0.0
        W = self._coordinates(point)
        slope = self._local(point).gradient - W
        most = np.linalg.norm(W) * np.linalg.norm(slope)
        return float(max((slope @ W + most) / most, 0.0)) if most else 0.0

    def log_excess(self, point: Point) -> float:
        """Logarithm of the loss above its floor."""
        odds = self._odds(self._scores @ self._coordinates(point))
        return float(log_mean_of(self._weights, log_softplus(odds), self._log_within(point)))

    def log_distance(self, point: Point) -> float:
        """Logarithm of ``||P_cyc W - W_fin||``."""
        with np.errstate(divide="ignore"):
            log_size = np.log(np.linalg.norm(point.shift))
        return float(log_size + point.log_multiplier) if log_size > -np.inf else -np.inf

    @np.errstate(over="ignore", invalid="ignore")  # steps that go too far are shortened
    def _local(self, point: Point) -> _Local:
        A, kept, split = self._scores, self._kept, self._split
        coordinates, log_m = self._coordinates(point), point.log_multiplier
        scores = A @ coordinates
        odds = self._odds(scores)
        p = softmax(np.where(kept, scores, -np.inf), axis=1)
        out = np.where(odds[:, None] > -np.inf, self._softmax_outside(scores), 0.0)
        mean, mean_out = (np.einsum("it,itk->ik", weight, A) for weight in (p, out))
        # Everything is divided by m in the exponent, where m may be exp(-1000).
        pull = self._weights * np.exp(log_expit(odds) - log_m)
        value = self._weights @ (
            np.exp(log_softplus(odds) - log_m) + np.exp(self._log_within(point) - log_m)
        )
        climb = np.where(odds[:, None] > -np.inf, mean_out - mean, 0.0)
        gradient = pull @ climb + coordinates
        gradient[split:] += self._within_slope(point)

        cov = covariance(self._weights, p, A)
        bend = (climb * (pull * np.exp(log_expit(-odds)))[:, None]).T @ climb
        bend += covariance(pull, out, A) - covariance(pull, p, A)
        jacobian = (bend + np.eye(len(coordinates))) * self._units(point)
        jacobian[split:, split:] += cov[split:, split:]
        return _Local(float(value + coordinates @ coordinates / 2), gradient, jacobian)

    def _within_slope(self, point: Point) -> Float[np.ndarray, "r"]:
        """Gradient of the loss within components, divided by m: ``(p(W) - p(W_fin)) / m``."""
        A, p, m = self._scores[..., self._split :], self._settled, np.exp(point.log_multiplier)
        moves = np.where(self._kept, A @ point.shift, 0.0)
        mean = (p * _scaled(np.expm1, m, moves)).sum(1, keepdims=True)
        centered = moves - _scaled(np.log1p, m, mean)
        return np.einsum("i,it,itr->r", self._weights, p * _scaled(np.expm1, m, centered), A)

    def _log_within(self, point: Point) -> Float[np.ndarray, "samples"]:
        moves = self._scores[..., self._split :] @ (point.shift * np.exp(point.log_multiplier))
        return log_bregman(moves, self._kept, self._settled)

    def _odds(self, scores: np.ndarray) -> Float[np.ndarray, "samples"]:
        """Log-odds of mass outside the component of the label."""
        return log_sum(scores, self._out) - log_sum(scores, self._kept)

    def _softmax_outside(self, scores: np.ndarray) -> np.ndarray:
        masked = np.where(self._out, scores, -np.inf)
        top = masked.max(1, keepdims=True)
        weights = np.exp(masked - np.where(np.isfinite(top), top, 0.0))
        return weights / np.maximum(weights.sum(1, keepdims=True), 1e-300)

    def _coordinates(self, point: Point) -> Float[np.ndarray, "k"]:
        moved = self._finite + point.shift * np.exp(point.log_multiplier)
        return np.concatenate([point.outside, moved])

    def _units(self, point: Point) -> Float[np.ndarray, "k"]:
        """The unit of each coordinate of a point: one, or m in the cyclic subspace."""
        units = np.ones(len(self._basis))
        units[self._split :] = np.exp(point.log_multiplier)
        return units


def _solved(matrix: Float[np.ndarray, "k k"], right: Float[np.ndarray, "k"]) -> np.ndarray:
    """The solution of a linear system, the shortest one where rounding leaves several."""
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, right)[0]


def _scaled(function: np.ufunc, m: float, x: np.ndarray) -> np.ndarray:
    """``f(m x) / m`` for ``expm1`` or ``log1p``, down to ``m = 0``."""
    product = m * x
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where(np.abs(product) < 1e-300, x, x * (function(product) / product))

"""``Certificate``: what is proven of a solution, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Geometry
from attractor.margin.batching import extended
from attractor.margin.batching.batches import inner_products
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.feasible_point import feasible_point, norm_constant
from attractor.margin.problem import MarginProblem

_ROUNDING = np.finfo(np.float64).eps / 2
_CLOSE = 1e-9
"""Slack, relative to ``||a|| ||b|| ||W||``, up to which a constraint is among the rows."""
_LEAST = 1e-6
"""Smallest eigenvalue for which this is tried."""


def nearby_radius(
    scaled: ScaledConstraints,
    places: Int[np.ndarray, "k"],
    W: Float[np.ndarray, "instances d e"],
    slack: Float[np.ndarray, "instances m"],
    doubt: Float[np.ndarray, "instances m"],
    curable: Bool[np.ndarray, "instances m"],
) -> Float[np.ndarray, "instances"]:
    """Bounds on the Frobenius distance from matrices that meet what scaling cannot cure.

    Args:
        scaled: The constraints of a batch.
        places: The instances to look at.
        W: Matrices.
        slack: ``a_j^T W b_j - c_j``.
        doubt: Bounds on its error.
        curable: The constraints that scaling up will meet.

    Returns:
        Infinite where nothing is known, and for other instances.
    """
    radius = np.full(len(W), np.inf)
    reach = scaled.norms[places] * np.sqrt(inner_products(W[places], W[places]))[:, None]
    bound = scaled.nonzero[places] & ~curable[places]
    held = bound & (scaled.equality[places] | (slack[places] <= _CLOSE * reach))
    lacking = np.where(
        scaled.equality[places], np.abs(slack[places]), np.maximum(-slack[places], 0.0)
    )
    lacking += doubt[places]
    counts = held.sum(-1)
    for count in np.unique(counts[counts > 0]):  # apart, so that none sees the size of others
        some = np.flatnonzero(counts == count)
        slots = np.nonzero(held[some])[1].reshape(len(some), count)
        row = np.arange(len(some))[:, None]
        left = scaled.left[places[some]][row, slots]
        right = scaled.right[places[some]][row, slots]
        least = _least_eigenvalue(left, right)
        size = np.sqrt((lacking[some][row, slots] ** 2).sum(-1)) * (1 + 1e-9)
        radius[places[some]] = size / np.sqrt(least) * (1 + 1e-9)
    spare = slack[places] - doubt[places] - radius[places, None] * scaled.norms[places]
    met = (~bound | held | (spare >= 0)).all(-1) & ~scaled.impossible[places].any(-1)
    radius[places[~met]] = np.inf
    return radius


def _least_eigenvalue(
    left: Float[np.ndarray, "k s d"], right: Float[np.ndarray, "k s e"]
) -> Float[np.ndarray, "k"]:
    """Lower bounds on the smallest eigenvalues of ``A A^T``; zero where there is none."""
    gram = left @ np.swapaxes(left, -1, -2)
    gram *= right @ np.swapaxes(right, -1, -2)
    k, s = gram.shape[:2]
    trace = np.einsum("kii->k", gram)
    # Of the entries, all of them at most one, and of the factorization.
    width = left.shape[-1] + right.shape[-1] + 4
    rounding = 4 * _ROUNDING * (s * width + (s + 2) * trace)
    goal = np.linalg.eigvalsh(gram)[:, 0] / 2
    least = np.zeros(k)
    for i in np.flatnonzero(goal > np.maximum(_LEAST, 4 * rounding)):
        try:
            np.linalg.cholesky(gram[i] - goal[i] * np.eye(s))
        except np.linalg.LinAlgError:
            continue
        least[i] = goal[i] - rounding[i]
    return least


_LARGEST = np.finfo(np.float64).max
_NEGLIGIBLE = 1e-12
"""Relative rounding above which an evaluation is repeated in extended precision."""
_NEGLIGIBLE_AT_LARGE = 1e-10
"""The same for instances of more numbers than the next."""
_MOST_EXTENDED = 2**20
_PORTION = 1024
"""Constraints evaluated at a time in extended precision."""
_SUPPORT_TOLERANCE = 1e-6
_NEAR = 1e-12
"""Relative distance of an exact point from W that needs no closer look."""


@dataclass(frozen=True)
class Certificate:
    """Bounds and residuals that are proved, one entry an instance; relative ones have no units.

    Attributes:
        norm: ``||W||``.
        value: Norm of a matrix near W, or of a multiple of W, that is proved to meet every
            constraint exactly: an upper bound on the optimum; infinite where none is proved.
        margin: Least ``a^T W b / c`` over inequalities with ``c > 0``.
        dual_value: Lower bound on the norm of every feasible matrix.
        dual_norm: ``||sum_j lambda_j a_j b_j^T||_dual``.
        gap: ``(value - dual_value) / value``, rounded up; zero where ``value`` is zero, infinite,
            which is to say not known, where it is infinite.
        distance: Bound on ``||W - W'||_F``, where W' is the matrix whose norm is ``value``.
        kkt_residual: Largest of misalignment of W and multipliers, complementarity, violation.
        violation: Largest shortfall: relative to c where scaling W up would cure it, else the
            loose violation.
        loose_violation: Largest shortfall that scaling cannot cure, relative to
            ``max(|c|, ||a|| ||b|| ||W||)``.
        equality_residual: Largest ``|a^T W b - c| / (||a|| ||b|| ||W||)`` over equalities.
        farkas_residual: ``||sum lambda a b^T||_dual / sum c lambda``; zero proves infeasibility.
        relative_farkas_residual: ``||sum lambda a b^T||_dual / sum |lambda| ||a|| ||b||``;
            zero where only constraints with ``a b^T = 0``, or none, carry a multiplier. In norms
            of several blocks, the bound on the dual norm that follows from the Frobenius norm.
        support: Constraints whose margin exceeds its bound by no more than 1e-6, relative to it,
            or than their share ``lambda_j c_j / ||W||`` of the norm.
    """

    norm: Float[np.ndarray, "instances"]
    value: Float[np.ndarray, "instances"]
    margin: Float[np.ndarray, "instances"]
    dual_value: Float[np.ndarray, "instances"]
    dual_norm: Float[np.ndarray, "instances"]
    gap: Float[np.ndarray, "instances"]
    distance: Float[np.ndarray, "instances"]
    kkt_residual: Float[np.ndarray, "instances"]
    violation: Float[np.ndarray, "instances"]
    loose_violation: Float[np.ndarray, "instances"]
    equality_residual: Float[np.ndarray, "instances"]
    farkas_residual: Float[np.ndarray, "instances"]
    relative_farkas_residual: Float[np.ndarray, "instances"]
    support: Bool[np.ndarray, "instances m"]

    @classmethod
    def concatenated(cls, parts: Sequence[Certificate]) -> Certificate:
        """The instances of several, one after another."""
        arrays = {f.name: [getattr(part, f.name) for part in parts] for f in fields(cls)}
        return cls(**{name: np.concatenate(each) for name, each in arrays.items()})

    def __getitem__(self, index: Any) -> Certificate:
        """Chooses instances."""
        return Certificate(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def replaced(self, places: Int[np.ndarray, "k"], other: Certificate) -> Certificate:
        """The same with those of another in some places."""
        result = {}
        for field in fields(self):
            result[field.name] = getattr(self, field.name).copy()
            result[field.name][places] = getattr(other, field.name)
        return Certificate(**result)

    def alone(self, index: int, present: Bool[np.ndarray, "m"]) -> Certificate:
        """One instance, its axis kept, without the empty slots of its problem."""
        chosen = {f.name: getattr(self, f.name)[index][None] for f in fields(self)}
        return Certificate(**{**chosen, "support": self.support[index][present][None]})


def certify(
    problem: MarginProblem,
    W: Float[np.ndarray, "instances d e"],
    multipliers: Float[np.ndarray, "instances m"],
    geometry: Geometry,
) -> Certificate:
    """What W and the multipliers prove about a batched problem.

    Args:
        problem: The constraints, with an axis of instances.
        W: Matrices; NaN where there is none.
        multipliers: Negative entries on inequalities count as zero.
        geometry: The norm.
    """
    scaled = ScaledConstraints.of(problem)
    return certify_scaled(scaled, *scaled.scale(W, multipliers), geometry)


def certify_scaled(
    scaled: ScaledConstraints,
    W: Float[np.ndarray, "instances d e"],
    multipliers: Float[np.ndarray, "instances m"],
    geometry: Geometry,
) -> Certificate:
    """The same for constraints, W and multipliers in scaled units; bounds are in given ones."""
    with np.errstate(all="ignore"):  # infinities are answers here, and stay what they are
        return _certify(scaled, W, multipliers, geometry)


def _certify(
    scaled: ScaledConstraints, W: Any, multipliers: Any, geometry: Geometry
) -> Certificate:
    weights = np.where(scaled.inequality, np.maximum(multipliers, 0.0), multipliers)
    weights = np.where(scaled.present, weights, 0.0)

    norm = geometry.norm(W)
    with np.errstate(over="ignore"):  # one beyond floating point is no number to go by
        norm = np.where(np.isfinite(np.ldexp(norm, scaled.unit)), norm, np.nan)
    frobenius = np.sqrt(inner_products(W, W))
    margins, doubt = _margins(scaled, W, frobenius)
    dual = evaluate_dual(scaled, weights, geometry)
    combined, total, dual_norm, dual_doubt, total_doubt, rounding = dual

    c, most = (np.maximum(bounds, -_LARGEST) for bounds in scaled.given_range)
    positive, scalable = scaled.positive, scaled.scalable
    ratio = np.where(positive, (margins - doubt) / np.where(positive, most, 1.0), np.inf)
    least = ratio.min(axis=-1, initial=np.inf)
    stretch = np.where(scalable, np.minimum(least, 1.0), 1.0)
    stretch = np.where(np.isnan(least), np.nan, stretch)

    lower = np.maximum(total - total_doubt, 0.0) / (dual_norm + dual_doubt)
    lower = np.where(np.isnan(lower), 0.0, lower) * (1 - 4 * _ROUNDING)

    unmet = np.where(
        scaled.equality, np.abs(margins - c) + doubt, np.maximum(most - margins + doubt, 0.0)
    )
    unmet = np.where(scaled.equality | scaled.inequality, unmet, 0.0)
    curable = positive & scalable[:, None]
    unscaled = unmet * ~curable
    missing = margins - most, doubt + (most - c)
    upper, distance = _bounded_above(
        scaled, W, norm, stretch, curable, unscaled, *missing, geometry
    )
    reach = scaled.norms * frobenius[:, None]
    shortfall = np.where(least < 1, 1.0 - least, 0.0)
    loose = (unscaled / np.where(unscaled > 0, np.maximum(reach, np.abs(c)), 1.0)).max(
        axis=-1, initial=0.0
    )
    violation = np.where(scalable, np.maximum(shortfall, loose), loose)
    violation = np.where(np.isfinite(norm), violation, np.inf)
    gap = np.maximum(upper - lower, 0.0) / upper * (1 + 4 * _ROUNDING)
    gap = np.where(upper == 0, 0.0, np.where(np.isfinite(upper), gap, np.inf))

    alignment = inner_products(W, combined) / (norm * dual_norm)
    slack = np.abs(weights * (margins - c)).sum(-1) / np.abs(weights * c).sum(-1)
    optimal_zero = (norm == 0) & (upper == 0)
    kkt = np.maximum(np.maximum(1 - alignment, slack), violation)
    kkt = np.where(optimal_zero, violation, np.where(np.isfinite(kkt), kkt, np.inf))
    equality = np.where(scaled.equality & (unmet > 0), unmet / reach, 0.0)

    # Shares of the norm times relative slacks add up to less than the gap: a constraint whose
    # share is the larger of the two has a slack below the square root of the gap.
    size = np.where(c != 0, np.abs(c), reach)
    share = np.where(upper[:, None] > 0, weights * size / (dual_norm * upper)[:, None], 0.0)
    near = np.fmax(share, _SUPPORT_TOLERANCE) * size
    support = (scaled.inequality & (margins - c <= near)) | scaled.equality
    weight = np.abs(weights * scaled.norms).sum(-1)
    vanishing = dual_norm + dual_doubt
    if len(geometry.dual_norm_constants(*W.shape[-2:])) > 1:
        # In a block of small weight it takes more than rounding to vanish in the dual norm.
        frobenius = np.sqrt(inner_products(combined, combined)) + rounding
        vanishing = geometry.dual_norm_constant(*W.shape[-2:]) * frobenius
    lower_bound = np.where(lower > 0, scaled.restore_bound(lower, 0.0), 0.0)
    # Infinite is the bound of a contradiction alone.
    lower_bound = np.where(np.isfinite(lower), np.minimum(lower_bound, _LARGEST), lower_bound)
    solved = np.isfinite(norm)
    return Certificate(
        norm=np.where(solved, np.ldexp(norm, scaled.unit), np.nan),
        value=scaled.restore_bound(upper, np.inf),
        margin=np.where(solved, least, np.nan),
        dual_value=lower_bound,
        dual_norm=dual_norm,
        gap=gap,
        distance=np.ldexp(distance, scaled.unit),
        kkt_residual=kkt,
        violation=violation,
        loose_violation=loose,
        equality_residual=np.where(solved, equality.max(axis=-1, initial=0.0), np.nan),
        farkas_residual=np.where(lower > 0, 1 / lower_bound, np.inf),
        relative_farkas_residual=np.where(weight > 0, vanishing / weight, 0.0),
        support=support,
    )


def _bounded_above(
    scaled: ScaledConstraints,
    W: Any,
    norm: Float[np.ndarray, "instances"],
    stretch: Float[np.ndarray, "instances"],
    curable: Bool[np.ndarray, "instances m"],
    unscaled: Float[np.ndarray, "instances m"],
    slack: Float[np.ndarray, "instances m"],
    doubt: Float[np.ndarray, "instances m"],
    geometry: Geometry,
) -> tuple[Float[np.ndarray, "instances"], Float[np.ndarray, "instances"]]:
    """Norms of matrices that meet all constraints, and how far from W they lie.

    Where W meets what scaling does not cure, that is W over the stretch; else a point near W.
    """
    largest = norm * (1 + geometry.norm_rounding(*W.shape[-2:]))
    upper = largest / np.maximum(stretch, 0.0)
    upper = np.where(norm == 0, np.where(stretch > 0, 0.0, np.inf), upper * (1 + 4 * _ROUNDING))
    upper = np.where(np.isnan(upper), np.inf, upper)
    moved = np.zeros(len(W))
    open_ = np.flatnonzero(np.isfinite(upper) & unscaled.any(-1))
    if open_.size:
        constant = norm_constant(geometry, *W.shape[-2:])
        radius = nearby_radius(scaled, open_, W, slack, doubt, curable)
        c = np.where(curable, scaled.given, 1.0)
        least = (np.where(curable, slack - doubt - radius[:, None] * scaled.norms, 0.0) / c).min(-1)
        near = open_[(constant * radius <= _NEAR * norm)[open_] & (least > -0.5)[open_]]
        stretch[near], moved[near] = np.minimum(1.0, 1.0 + least[near]), radius[near]
        upper[near] = ((largest + constant * radius) / stretch * (1 + 8 * _ROUNDING))[near]
        open_ = np.setdiff1d(open_, near)
    for i in open_:
        upper[i] = np.inf
        point = feasible_point(scaled, int(i), W[i], curable[i])
        if point is None:
            continue
        c = np.where(curable[i], scaled.given[i], 1.0)
        stretch[i] = min(1.0, 1.0 + (np.where(curable[i], point.slack, 0.0) / c).min())
        if stretch[i] > 0:
            upper[i] = point.norm(W[i], geometry) / stretch[i] * (1 + 4 * _ROUNDING)
            moved[i] = point.distance
    size = np.sqrt(inner_products(W, W)) + moved
    with np.errstate(invalid="ignore"):
        distance = moved + size * np.maximum(1 / stretch - 1, 0.0) * (1 + 1e-9)
    return upper, np.where(np.isfinite(upper), distance, np.inf)


def proven_margins(
    problem: MarginProblem, W: Float[np.ndarray, "instances d e"]
) -> Float[np.ndarray, "instances m"]:
    """Lower bounds on ``a_j^T W b_j`` that no rounding undercuts; NaN in empty slots.

    Args:
        problem: The constraints, with an axis of instances.
        W: Matrices of finite entries.
    """
    scaled = ScaledConstraints.of(problem)
    in_units = np.ldexp(W, -scaled.unit[:, None, None])
    margins, doubt = _margins(scaled, in_units, np.sqrt(inner_products(in_units, in_units)))
    proven = np.ldexp(margins - doubt, scaled.unit[:, None] + scaled.shift)
    return np.where(problem.present, proven, np.nan)


def rounding_of_margins(rows: int, columns: int) -> float:
    """Shortfall, relative to ``max(|c|, ||a|| ||b|| ||W||)``, that counts as rounding."""
    return 64 * (rows + columns) * _ROUNDING


def _margins(
    scaled: ScaledConstraints, W: Any, frobenius: Any
) -> tuple[Float[np.ndarray, "instances m"], Float[np.ndarray, "instances m"]]:
    """``a_j^T W b_j`` and a bound on its error."""
    d, e = W.shape[-2:]
    margins = scaled.margins(W)
    reach = scaled.norms * frobenius[:, None]
    doubt = 1.1 * (d + e + 4) * _ROUNDING * reach
    small = _is_small(scaled)
    blurred = scaled.positive & (
        doubt > (_NEGLIGIBLE if small else _NEGLIGIBLE_AT_LARGE) * scaled.given
    )
    for i in np.flatnonzero(blurred.any(-1) & np.isfinite(frobenius)):
        # At large, only what may fall short is worth the time.
        short = small | (blurred[i] & (margins[i] - doubt[i] < scaled.given[i]))
        for rows in np.array_split(np.flatnonzero(short), -(-len(short) // _PORTION)):
            exact, rest = extended.bilinear(
                scaled.left[i, rows], (W[i], np.zeros_like(W[i])), scaled.right[i, rows]
            )
            margins[i, rows] = exact
            doubt[i, rows] = np.abs(rest) + 2 * extended.relative_error(max(d, e)) * reach[i, rows]
    return margins, doubt


def evaluate_dual(
    scaled: ScaledConstraints, weights: Any, geometry: Geometry
) -> tuple[np.ndarray, ...]:
    """``sum lambda a b^T``, ``sum c lambda``, the dual norm of the first, and error bounds.

    These bound how far the dual norm, the sum of bounds, and the first in the Frobenius norm are
    off, in turn.
    """
    m, d, e = scaled.left.shape[-2], scaled.left.shape[-1], scaled.right.shape[-1]
    parts = geometry.dual_norm_constants(d, e)
    combined = scaled.combine(weights)
    sizes = np.abs(weights)
    low, high = scaled.given_range
    bounds = np.where(sizes > 0, low, 0.0)
    total = (bounds * weights).sum(-1)
    dual_norm = geometry.dual_norm(combined)
    doubt = np.zeros(len(weights))
    for norms, constant in _norms_in_parts(scaled, parts):
        doubt += 1.1 * constant * (scaled.depth + 3) * _ROUNDING * (sizes * norms).sum(-1)
    rounding = 1.1 * (scaled.depth + 3) * _ROUNDING * (sizes * scaled.norms).sum(-1)
    total_doubt = 1.1 * (m + 2) * _ROUNDING * (sizes * np.abs(bounds)).sum(-1)
    unknown = (sizes * np.where(sizes > 0, high - low, 0.0)).sum(-1) if high is not low else 0.0
    blurred = (doubt > _NEGLIGIBLE * dual_norm) | (total_doubt > _NEGLIGIBLE * total)
    finite = np.isfinite(doubt) & np.isfinite(total_doubt) & _is_small(scaled)
    for i in np.flatnonzero(blurred & finite & (sizes > 0).any(-1)):
        _, shift = np.frexp(sizes[i].max())
        unit = np.ldexp(weights[i], -shift)
        held = unit != 0
        pair = extended.weighted_outer_sum(scaled.left[i, held], unit[held], scaled.right[i, held])
        combined[i] = np.ldexp(pair[0], shift)
        dual_norm[i] = geometry.dual_norm(combined[i])
        left_out = 2 * extended.relative_error(m) * np.sqrt(d * e)
        doubt[i] = 0.0
        for rows, columns, constant in parts:
            error = np.sqrt((pair[1][rows, columns] ** 2).sum()) + left_out
            doubt[i] += constant * np.ldexp(error, shift)
        rounding[i] = np.ldexp(np.sqrt((pair[1] ** 2).sum()) + left_out, shift)
        exact, rest = extended.inner_product(bounds[i], unit)
        total[i] = np.ldexp(exact, shift)
        largest = np.abs(bounds[i]).max(initial=0.0)
        total_doubt[i] = np.ldexp(np.abs(rest) + 2 * extended.relative_error(m) * largest, shift)
    total_doubt = total_doubt + unknown
    doubt = doubt + geometry.norm_rounding(d, e) * dual_norm
    return combined, total, dual_norm, doubt, total_doubt, rounding


def _norms_in_parts(
    scaled: ScaledConstraints, parts: tuple[tuple[slice, slice, float], ...]
) -> Iterator[tuple[Float[np.ndarray, "instances m"], float]]:
    """``||a_j|| ||b_j||`` in blocks of the matrix, and the numbers of the blocks."""
    if len(parts) == 1:
        yield scaled.norms, parts[0][2]
        return
    for rows, columns, constant in parts:
        left = np.linalg.norm(scaled.left[..., rows], axis=-1)
        yield left * np.linalg.norm(scaled.right[..., columns], axis=-1), constant


def _is_small(scaled: ScaledConstraints) -> bool:
    """Whether extended precision everywhere takes less time and memory than solving does."""
    width = max(scaled.left.shape[-1], scaled.right.shape[-1])
    return scaled.bounds.shape[-1] * width <= _MOST_EXTENDED


def rank_of(
    W: Float[np.ndarray, "instances d e"],
    value: Float[np.ndarray, "instances"],
    gap: Float[np.ndarray, "instances"],
    distance: Float[np.ndarray, "instances"],
    geometry: Geometry,
) -> Int[np.ndarray, "instances"]:
    """Number of singular values of W that the exact solution is proved to have; -1 if unknown.

    A singular value counts when it exceeds the largest one of ``W - W*`` that the gap, and the
    distance of W from the matrix of that value, allow.
    """
    rank = np.full(len(W), -1)
    for i in np.flatnonzero(np.isfinite(value) & np.isfinite(gap)):
        scale = np.abs(W[i]).max(initial=0.0)
        if scale == 0:
            rank[i] = 0
            continue
        values = np.linalg.svd(W[i] / scale, compute_uv=False)
        apart = geometry.distance_to_solution(float(value[i] / scale), float(gap[i]))
        apart += float(distance[i] / scale)
        rounding = 4 * max(W.shape[-2:]) * _ROUNDING * values[0]
        if not np.isnan(apart):
            rank[i] = (values > max(apart, rounding)).sum()
    return rank

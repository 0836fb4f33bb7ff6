"""Distances of matrices from the solution of a margin problem: the numbers of a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Frobenius, Geometry, Lp, Schatten, get_geometry, has_norm_of
from attractor.geometry.vectors import in_ordinary_units, ordinary_factor
from attractor.margin import MarginProblem, Solution
from attractor.margin.batching.batches import inner_products
from attractor.margin.batching.extended import two_product
from attractor.margin.problem import derived
from attractor.support.checks import check_kinds
from attractor.support.precision import as_real

_SERIES_TERMS = 16
_SERIES_REACH = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_QUADRATURE_REACH = 0.05
"""A step this small beside the least singular value is integrated to rounding by six nodes."""


@dataclass(frozen=True)
class DirectionMeasures:
    """Measures of a batch of matrices against one solution.

    Attributes:
        margin_ratio: ``(min_j a_j^T W b_j / c_j) / ||W|| * ||W*||`` over inequalities with
            ``c_j > 0``; at most 1, and 1 where the direction is a solution. Defined in every
            norm, also where the solution is not unique.
        correlation: ``<W, W*> / (||W||_F ||W*||_F)``; NaN where the solution is not known to be
            unique, as then one of many would decide it.
        directional_bregman_divergence: ``D = 1 - <grad psi(W / ||W||), W* / ||W*||>`` with
            ``psi = ||.||^p / p``; accurate down to 1e-30, where ``1 - correlation`` is not. NaN
            where the geometry has no mirror map.
        kkt_residual: With W scaled to the norm of the solution, the largest of the misalignment
            ``1 - <W, M> / (||W|| ||M||_dual)``, ``M = sum_j lambda_j a_j b_j^T``; the infeasibility
            ``max_j (c_j - a_j^T W b_j)_+ / c_j``; and the complementarity
            ``sum_j lambda_j |a_j^T W b_j - c_j| / sum_j lambda_j c_j``.
        violated: Number of violated inequalities with ``c_j <= 0``.
        removed_norm: Frobenius norm of the part of W that acts on equality constraints. The
            other measures are of what is left when it is removed.
    """

    margin_ratio: Float[np.ndarray, "batch"]
    correlation: Float[np.ndarray, "batch"]
    directional_bregman_divergence: Float[np.ndarray, "batch"]
    kkt_residual: Float[np.ndarray, "batch"]
    violated: Int[np.ndarray, "batch"]
    removed_norm: Float[np.ndarray, "batch"]


def measure_direction(W: Float[np.ndarray, "batch d e"], solution: Solution) -> DirectionMeasures:
    """Measures matrices against one solution.

    Args:
        W: Effective attention matrices; those that are zero or not finite measure NaN.
        solution: The solution of a single problem; infeasible ones measure NaN.
    """
    check_kinds(solution=(solution, Solution))
    W = as_real("W", W, ("batch", *solution.problem.shape))
    return measure_directions(W, solution, np.zeros(len(W), dtype=int))


def measure_directions(
    W: Float[np.ndarray, "item d e"], solution: Solution, number: Int[np.ndarray, "item"]
) -> DirectionMeasures:
    """Measures matrices, each against one of several solutions, as if one after another.

    Args:
        W: Matrices; those that are zero or not finite measure NaN.
        solution: The solution of one problem or of several; infeasible ones measure NaN.
        number: The solution that each matrix is measured against.
    """
    nothing = {field.name: np.full(len(W), np.nan) for field in fields(DirectionMeasures)}
    found = DirectionMeasures(**nothing | {"violated": np.zeros(len(W), dtype=int)})
    used, own = np.unique(number, return_inverse=True)
    problem = solution.problem.batched()
    sizes = np.where(_defined(solution)[used], problem.constraints[used], 0)
    # Solutions of as many constraints fill arrays without empty slots, and are measured at once.
    for size in np.unique(sizes[sizes > 0]):
        alike = np.flatnonzero(sizes == size)
        items = np.flatnonzero(np.isin(own, alike))
        targets = _Targets.of(solution, used[alike])
        measured = _measured(W[items], targets, np.searchsorted(alike, own[items]))
        for name, values in vars(measured).items():
            getattr(found, name)[items] = values
    return found


@dataclass(frozen=True)
class _Targets:
    """Solutions with as many constraints each, and what measuring needs of them.

    Attributes:
        problem: Their constraints, without empty slots.
        direction: Their matrices, times a power of two.
        value: Their norms.
        unique: Whether each is known to be the only one.
        multipliers: One a constraint.
        combined: ``sum_j lambda_j a_j b_j^T``.
        geometry: The norm.
    """

    problem: MarginProblem
    direction: Float[np.ndarray, "target d e"]
    value: Float[np.ndarray, "target"]
    unique: Bool[np.ndarray, "target"]
    multipliers: Float[np.ndarray, "target m"]
    combined: Float[np.ndarray, "target d e"]
    geometry: Geometry

    @classmethod
    def of(cls, solution: Solution, rows: Int[np.ndarray, "target"]) -> _Targets:
        """Some of the solutions, one or several, all with as many constraints."""
        whole = solution.problem.batched()
        present = whole.present[rows]

        def filled(array: np.ndarray) -> np.ndarray:
            kept = array[rows][present]
            return kept.reshape(len(rows), -1, *array.shape[2:])

        names = ("left", "right", "bounds", "equality", "present")
        places = dict.fromkeys(("sequence", "query", "token", "selection"))
        problem = derived(whole, **{name: filled(getattr(whole, name)) for name in names}, **places)
        multipliers = filled(solution.multipliers.reshape(whole.present.shape))
        W = solution.W.reshape(len(whole), *whole.shape)[rows]
        return cls(
            problem=problem,
            direction=W * ordinary_factor(np.abs(W).max((-1, -2), keepdims=True)),
            value=np.atleast_1d(solution.value)[rows],
            unique=_known_to_be_unique(solution)[rows],
            multipliers=multipliers,
            combined=problem.apply_adjoint(multipliers),
            geometry=solution.geometry,
        )


def _defined(solution: Solution) -> Bool[np.ndarray, "solution"]:
    """Whether there is a matrix, and a constraint that requires a margin."""
    problem = solution.problem.batched()
    required = required_margins(problem) & problem.present
    return np.isfinite(solution.W).all((-1, -2)).reshape(-1) & required.any(-1)


def _known_to_be_unique(solution: Solution) -> Bool[np.ndarray, "solution"]:
    if solution.geometry.unique:  # the answer needs no look at each problem
        return np.isfinite(solution.W).all((-1, -2)).reshape(-1)
    return np.atleast_1d(np.asarray(solution.uniqueness, dtype=object)) == "unique"


def _measured(
    W: Float[np.ndarray, "item d e"], targets: _Targets, number: Int[np.ndarray, "item"]
) -> DirectionMeasures:
    """Measures matrices, each against one of the targets."""
    geometry = targets.geometry
    # All but two of the measures are of the direction alone, and squares of large entries overflow.
    factor = ordinary_factor(np.abs(W).max((-1, -2), initial=0.0))
    W = in_ordinary_units(W)
    projected = _projected(W, targets.problem, number)
    norm = np.where(np.isfinite(W).all((-1, -2)), geometry.norm(projected), np.nan)
    norm = np.where(norm > 0, norm, np.nan)
    problem, direction = targets.problem[number], targets.direction[number]
    margins = problem.margins(projected)
    loose = ~problem.equality & (problem.bounds <= 0)
    lengths = np.linalg.norm(projected, axis=(-1, -2))
    lengths *= np.sqrt(inner_products(targets.direction, targets.direction))[number]
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = (projected * direction).sum((-1, -2)) / lengths
    return DirectionMeasures(
        margin_ratio=smallest_margin(margins, problem) / norm * targets.value[number],
        correlation=np.where(targets.unique[number] & (norm > 0), correlation, np.nan),
        directional_bregman_divergence=_divergences(projected, direction, geometry),
        kkt_residual=_kkt_residual(projected, norm, margins, problem, targets, number),
        violated=(loose & (margins < factor[:, None] * problem.bounds)).sum(-1),
        removed_norm=np.linalg.norm(W - projected, axis=(-1, -2)) / factor,
    )


def _projected(
    W: Float[np.ndarray, "item d e"], problem: MarginProblem, number: Int[np.ndarray, "item"]
) -> Float[np.ndarray, "item d e"]:
    """Matrices without the part that acts on the equality constraints of their own problem."""
    bound = np.flatnonzero(problem.equality.any(-1))
    if not bound.size:
        return W
    W = W.copy()
    for row in bound:
        own = number == row
        W[own] = project_on_equalities(W[own], problem[int(row)])
    return W


def required_margins(problem: MarginProblem) -> Bool[np.ndarray, "*instances constraint"]:
    """The constraints that require a margin: inequalities with a positive bound."""
    return ~problem.equality & (problem.bounds > 0)


def smallest_margin(
    margins: Float[np.ndarray, "batch constraint"], problem: MarginProblem
) -> Float[np.ndarray, "batch"]:
    """``min_j (a_j^T W b_j) / c_j`` over the constraints that require a margin."""
    required = required_margins(problem)
    return np.where(required, margins / np.where(required, problem.bounds, 1.0), np.inf).min(-1)


def project_on_equalities(
    W: Float[np.ndarray, "batch d e"], problem: MarginProblem
) -> Float[np.ndarray, "batch d e"]:
    """Removes from matrices the part that acts on equality constraints, in Frobenius norm.

    The result is the nearest matrix with ``a_j^T W b_j = 0`` for every equality.
    """
    chosen = problem.equality
    if not chosen.any():
        return W
    left, right = _near_one(problem.left[chosen]), _near_one(problem.right[chosen])
    inverse = np.linalg.pinv((left @ left.T) * (right @ right.T), hermitian=True)
    excess = np.einsum("mc,bce,me->bm", left, W, right, optimize=True)
    return W - np.einsum("bm,mc,me->bce", excess @ inverse, left, right, optimize=True)


def _near_one(vectors: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m d"]:
    """Vectors times a power of two, so that their squares stay finite; which is exact."""
    return np.ldexp(vectors, -int(np.frexp(np.abs(vectors).max())[1]))


def _kkt_residual(
    W: Float[np.ndarray, "item d e"],
    norm: Float[np.ndarray, "item"],
    margins: Float[np.ndarray, "item constraint"],
    problem: MarginProblem,
    targets: _Targets,
    number: Int[np.ndarray, "item"],
) -> Float[np.ndarray, "item"]:
    dual_norm = targets.geometry.dual_norm(targets.combined)[number]
    alignment = (W * targets.combined[number]).sum((-1, -2)) / (norm * dual_norm)
    weights = np.where(targets.problem.equality, 0, targets.multipliers)
    total = (weights * targets.problem.bounds).sum(-1)[number]
    scaled = margins * (targets.value[number] / norm)[:, None] - problem.bounds
    complementarity = (weights[number] * np.abs(scaled)).sum(-1) / total
    infeasibility = np.maximum(-smallest_margin(scaled, problem), 0)
    return np.maximum(np.maximum(1 - alignment, infeasibility), complementarity)


def directional_bregman_divergence(
    W: Float[np.ndarray, "batch d e"], solution: Float[np.ndarray, "d e"], geometry: Geometry | str
) -> Float[np.ndarray, "batch"]:
    """``D = 1 - <grad psi(b), a>`` with ``a = W*/||W*||`` and ``b = W/||W||``.

    It is the Bregman divergence of ``psi = ||.||^p / p`` from the direction of W to that of the
    solution: 0 where they agree, about 1 for a random W, at most 2, and not symmetric unless
    p = 2, where it is one minus the correlation. With the entrywise norms
    ``D = 1 - sum_ij sign(b_ij) |b_ij|^(p-1) a_ij``; with the Schatten norms the power is taken
    of the singular values.

    That formula loses every digit below 1e-16. A sum of Bregman divergences of entries (or of
    singular values), none of them negative, is evaluated in its place, at the exact difference of
    the two directions: errors are a few roundings of D, down to D of 1e-30. Where a Schatten norm
    meets singular values below ``||a - b||``, relative errors are about ``1e-15 / ||a - b||``.

    Args:
        W: Matrices, of any scale; those that are zero or not finite give NaN.
        solution: The matrix ``W*``, which is not zero.
        geometry: The norm; NaN where its mirror map does not exist (p = 1 and p = inf).

    Source: *Optimizing Attention with Mirror Descent* (arXiv 2410.14581), the divergence plotted.
    """
    geometry = get_geometry(geometry)
    solution = as_real("solution", solution, ("d", "e"))
    W = as_real("W", W, ("batch", *solution.shape))
    if not (np.isfinite(solution).all() and np.any(solution)):
        return np.full(len(W), np.nan)
    return _divergences(W, solution[None], geometry)


def _divergences(
    W: Float[np.ndarray, "item d e"],
    solution: Float[np.ndarray, "#item d e"],
    geometry: Geometry,
) -> Float[np.ndarray, "item"]:
    """The divergence of each matrix from a solution of its own, or from one for all."""
    usable = np.isfinite(W).all((-1, -2)) & (W != 0).any((-1, -2))
    divergence = np.full(len(W), np.nan)
    if not usable.any():
        return divergence
    try:
        geometry.mirror_map(solution[:1])
    except NotImplementedError:
        return divergence
    own, other = _scaled_by_power_of_two(W[usable]), _scaled_by_power_of_two(solution)
    if len(other) > 1:
        other = other[usable]
    if geometry == Frobenius():
        geometry = Lp(2)
    if has_norm_of(geometry, Lp):
        divergence[usable] = _divergence(own, other, geometry, _entrywise)
    elif has_norm_of(geometry, Schatten):
        divergence[usable] = _divergence(own, other, geometry, _spectral)
    else:
        unit = own / geometry.norm(own)[:, None, None]
        toward = other / geometry.norm(other)[:, None, None]
        divergence[usable] = 1 - (geometry.mirror_map(unit) * toward).sum((-1, -2))
    return np.maximum(divergence, 0)  # where directions agree, rounding leaves either sign


def _divergence(
    own: np.ndarray,
    other: np.ndarray,
    geometry: Lp | Schatten,
    bregman: Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray],
) -> np.ndarray:
    p, norm = geometry.p, geometry.norm(own)
    high, low = two_product((norm / geometry.norm(other))[:, None, None], other)
    step = (high - own) + low  # to the solution at the length of W, exact where the two are close
    value = bregman(own, step, norm, p)
    unit = own / norm[:, None, None]
    along = (geometry.mirror_map(unit) * step).sum((-1, -2)) / norm
    # The lengths agree to rounding only; ``excess`` is by how much, and D forgets it.
    excess = along + value
    return value + excess * (along - (1 + along) * (p + 1) * excess / 2)


def _entrywise(own: np.ndarray, step: np.ndarray, norm: np.ndarray, p: float) -> np.ndarray:
    """``psi(W + step) - psi(W) - <grad psi(W), step>``, over ``||W||^p``."""
    scale = norm[:, None, None]
    return _scalar_terms(own / scale, step / scale, p).sum((-1, -2))


def _scalar_terms(b: np.ndarray, step: np.ndarray, p: float) -> np.ndarray:
    """``|b + step|^p / p - |b|^p / p - sign(b) |b|^(p-1) step``, never negative."""
    size = np.abs(b)
    near = np.abs(step) * p <= _SERIES_REACH * size
    ratio = np.divide(step, b, out=np.zeros_like(step), where=near & (size > 0))
    term = (p - 1) / 2 * ratio**2
    series = term
    for k in range(2, _SERIES_TERMS):
        term = term * ((p - k) / (k + 1) * ratio)
        series = series + term
    slope = np.sign(b) * size ** (p - 1)
    plain = np.abs(b + step) ** p / p + (1 - 1 / p) * size**p - slope * (b + step)
    return np.where(near, size**p * series, np.maximum(plain, 0))


def _spectral(own: np.ndarray, step: np.ndarray, norm: np.ndarray, p: float) -> np.ndarray:
    """The same for ``psi = sum_i sigma_i^p / p``."""
    own, step = own / norm[:, None, None], step / norm[:, None, None]
    least = np.linalg.svd(own, compute_uv=False)[:, -1]
    smooth = np.linalg.norm(step, axis=(-1, -2)) <= _QUADRATURE_REACH * least
    own, step = _padded_to_square(own), _padded_to_square(step)
    value = np.empty(len(own))
    value[smooth] = _integrated(own[smooth], step[smooth], p)
    value[~smooth] = _over_pairs(own[~smooth], own[~smooth] + step[~smooth], p)
    return value


def _integrated(own: np.ndarray, step: np.ndarray, p: float) -> np.ndarray:
    """``int_0^1 (1 - t) <step, Hess psi(W + t step) step> dt``, for steps that keep the rank."""
    total = np.zeros(len(own))
    for node, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True):
        total += weight * (1 - node) * _curvature(own + node * step, step, p)
    return total


def _curvature(W: np.ndarray, step: np.ndarray, p: float) -> np.ndarray:
    """``<step, Hess psi(W) step>`` from divided differences of ``sign(s) |s|^(p-1)``."""
    U, s, V = np.linalg.svd(W)
    turned = np.swapaxes(U, -1, -2) @ step @ np.swapaxes(V, -1, -2)
    mirrored = np.swapaxes(turned, -1, -2)
    larger = np.maximum(s[:, :, None], s[:, None, :])
    smaller = np.minimum(s[:, :, None], s[:, None, :])
    present = larger > 1e-14 * s[:, :1, None]
    larger = np.where(present, larger, 1.0)
    ratio = np.where(present, smaller / larger, 1.0)
    # With f(s) = s^(p-1), the symmetric part has (f(s_i) - f(s_j)) / (s_i - s_j) and the
    # antisymmetric one (f(s_i) + f(s_j)) / (s_i + s_j), both here in units of larger^(p-2); expm1
    # keeps the digits of the first as the ratio tends to one.
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.expm1((p - 1) * np.log(ratio)) / (ratio - 1)
    falling = np.where(ratio == 1, p - 1, falling)
    rising = (1 + ratio ** (p - 1)) / (1 + ratio)
    symmetric, antisymmetric = (turned + mirrored) / 2, (turned - mirrored) / 2
    pairs = larger ** (p - 2) * (falling * symmetric**2 + rising * antisymmetric**2)
    return np.where(present, pairs, 0).sum((-1, -2))


def _over_pairs(own: np.ndarray, other: np.ndarray, p: float) -> np.ndarray:
    """``sum_ij <u_i, v_j>^2 d(lambda_i, mu_j)`` over eigenvectors of the Hermitian dilations."""
    U, s, V = np.linalg.svd(other)
    X, t, Y = np.linalg.svd(own)
    left = np.swapaxes(U, -1, -2) @ X
    right = V @ np.swapaxes(Y, -1, -2)
    s, t = np.broadcast_arrays(s[:, :, None], t[:, None, :])
    same = ((left + right) / 2) ** 2 * _scalar_terms(t, s - t, p)
    opposite = ((left - right) / 2) ** 2 * _scalar_terms(-t, s + t, p)
    return (same + opposite).sum((-1, -2))


def _padded_to_square(W: np.ndarray) -> np.ndarray:
    size = max(W.shape[-2:])
    return np.pad(W, ((0, 0), (0, size - W.shape[-2]), (0, size - W.shape[-1])))


def _scaled_by_power_of_two(W: np.ndarray) -> np.ndarray:
    """Divides by a power of two, which rounds nothing, so that the largest entry is about one."""
    exponent = np.frexp(np.abs(W).max((-1, -2), keepdims=True))[1]
    return np.ldexp(W, -exponent)

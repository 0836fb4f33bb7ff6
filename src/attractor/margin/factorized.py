"""Margin problems in factorized form: ``W = K Q^T`` with K and Q of few columns.

Key-query attention trains the factors. The least ``(||K||_F^2 + ||Q||_F^2) / 2`` is the nuclear
norm of W, and W of that rank or less (*Transformers as Support Vector Machines*, arXiv
2308.16898). With enough columns that is the nuclear margin problem; with fewer it is not convex,
and what is found is a local solution, unless the lower bound of the nuclear problem is met.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.blas import single_blas_thread
from attractor.checks import check_count, check_kinds
from attractor.errors import Status
from attractor.geometry import Nuclear
from attractor.margin._solve import solve
from attractor.margin.certificate import certify
from attractor.margin.factorized_descent import LocalSolution, descend
from attractor.margin.problem import MarginProblem
from attractor.margin.reduction import reduce_to_spans
from attractor.margin.scaling import ScaledConstraints
from attractor.margin.solution import Solution

if TYPE_CHECKING:
    import xarray as xr

_ROUNDING = 1e-12
"""Violation that scaling cannot cure, up to which an optimal solution is one."""
_STATIONARY = 1e-6
"""First-order residual up to which a point counts as a local solution."""


@dataclass(frozen=True, eq=False, repr=False)
class FactorizedSolution(Solution):
    """A solution with its factors.

    The status is *optimal* where the nuclear problem has no smaller solution, else *locally
    optimal*; *stopped early* where no start led to a local solution, with a matrix of NaN where
    none led to one that meets the constraints. *Infeasible* is said only where no matrix of any
    rank would do. The multipliers are those of the nuclear problem, or of the local solution
    where that is what was found.

    Attributes:
        K: Left factors, ``(*instances, d, width)``, with ``W = K Q^T``.
        Q: Right factors, ``(*instances, e, width)``.
        first_order_residual: Largest violation of a first-order condition in the factors.
    """

    K: Float[np.ndarray, "*instances d r"]
    Q: Float[np.ndarray, "*instances e r"]
    first_order_residual: Any

    def __getitem__(self, index: Any) -> FactorizedSolution:
        """Chooses instances, with their factors."""
        chosen = super().__getitem__(index)
        return FactorizedSolution(
            **{field.name: getattr(chosen, field.name) for field in fields(Solution)},
            K=self.K[index],
            Q=self.Q[index],
            first_order_residual=self.first_order_residual[index],
        )

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays, factors included."""
        lead = ("instance",) if self._batched else ()
        return (
            super()
            .to_xarray()
            .assign(
                K=((*lead, "row", "factor"), self.K),
                Q=((*lead, "column", "factor"), self.Q),
                first_order_residual=(lead, self.first_order_residual),
            )
        )


def solve_factorized(
    problem: MarginProblem,
    width: int,
    *,
    seed: int = 0,
    starts: int = 8,
    tolerance: float = 1e-9,
) -> FactorizedSolution:
    """Solves ``min (||K||_F^2 + ||Q||_F^2) / 2`` with the margins of ``W = K Q^T``.

    The first start is the truncated nuclear solution, the others are random.

    Args:
        problem: The constraints.
        width: Number of columns of K and Q.
        seed: Of the random starts.
        starts: Number of starts.
        tolerance: Relative duality gap at which a solution is globally optimal.

    Returns:
        The best solution found, with the leading axes of the problem.

    Raises:
        InvalidInputError: If width or starts is less than one, the seed less than zero, or the
            tolerance not positive.
    """
    check_kinds(problem=(problem, MarginProblem))
    for name, number, least in (("width", width, 1), ("starts", starts, 1), ("seed", seed, 0)):
        check_count(name, number, least)
    nuclear = solve(problem, Nuclear(), tolerance=tolerance)
    whole = problem.stripped().batched()
    d, e = whole.shape
    count, m = whole.bounds.shape
    factors = np.full((count, d + e, width), np.nan)
    residual = np.full(count, np.nan)
    W, bound = np.reshape(nuclear.W, (count, d, e)), np.reshape(nuclear.multipliers, (count, m))
    status = np.reshape(np.array(nuclear.status, dtype=object), count).copy()
    status[status != Status.INFEASIBLE] = Status.STOPPED_EARLY
    multipliers = bound.copy()
    scaled = ScaledConstraints.of(whole)
    with single_blas_thread():
        for i in np.flatnonzero(status != Status.INFEASIBLE):
            rng = np.random.default_rng([seed, int(i)])
            start = scaled.scale_matrix(W)[i]
            found = _best_of(scaled.choose([i]), start, width, starts, rng)
            if found is None:
                continue
            factors[i] = found.factors * np.exp2(0.5 * scaled.unit[i])
            multipliers[i] = np.ldexp(found.multipliers, -scaled.shift[i])
            residual[i] = found.residual
            if found.residual <= _STATIONARY:
                status[i] = Status.LOCALLY_OPTIMAL
    K, Q = factors[:, :d], factors[:, d:]
    W = K @ np.swapaxes(Q, -1, -2)
    globally = certify(whole, W, bound, Nuclear())
    optimal = (globally.gap <= tolerance) & (globally.violation <= max(tolerance, _ROUNDING))
    optimal &= globally.loose_violation <= _ROUNDING
    status[optimal], multipliers[optimal] = Status.OPTIMAL, bound[optimal]
    certificate = certify(whole, W, multipliers, Nuclear())
    arrays = W, multipliers, status, K, Q, residual
    if problem.instances is None:
        arrays = tuple(array[0] for array in arrays)
    W, multipliers, status, K, Q, residual = arrays
    return FactorizedSolution(
        W, multipliers, status, problem, Nuclear(), certificate, K, Q, residual
    )


@dataclass(frozen=True)
class _Found:
    """Factors, one above the other, that meet the constraints; multipliers; the residual."""

    factors: Float[np.ndarray, "rows r"]
    multipliers: Float[np.ndarray, "m"]
    residual: float


def _best_of(
    scaled: ScaledConstraints,
    nuclear: Float[np.ndarray, "d e"],
    width: int,
    starts: int,
    rng: np.random.Generator,
) -> _Found | None:
    """The smallest local solution of one instance; None if no start leads to a feasible one."""
    reduced, left, right = reduce_to_spans(scaled)
    left, right = left[0], right[0]
    core = left.T @ nuclear @ right
    best: LocalSolution | None = None
    for number in range(starts):
        local = descend(reduced, *_start(core, width, number, rng))
        local = _scaled_to_margins(reduced, local)
        if local is not None and (best is None or local.value < best.value):
            best = local
    if best is None:
        return None
    combined = reduced.combine(best.multipliers[None])
    size = float(Nuclear().dual_norm(combined)[0])
    multipliers = best.multipliers / size if size > 0 else best.multipliers
    return _Found(np.concatenate([left @ best.K, right @ best.Q]), multipliers, best.residual)


def _start(
    nuclear: Float[np.ndarray, "p q"], width: int, number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Factors to start from: first those of the truncated nuclear solution, then random ones."""
    p, q = nuclear.shape
    if number == 0 and np.isfinite(nuclear).all():
        U, values, V = np.linalg.svd(nuclear, full_matrices=False)
        kept = min(width, len(values))
        K, Q = np.zeros((p, width)), np.zeros((q, width))
        K[:, :kept] = U[:, :kept] * np.sqrt(values[:kept])
        Q[:, :kept] = V[:kept].T * np.sqrt(values[:kept])
        return K, Q
    return rng.normal(size=(p, width)), rng.normal(size=(q, width))


def _scaled_to_margins(scaled: ScaledConstraints, local: LocalSolution) -> LocalSolution | None:
    """Factors scaled until no margin is short, where scaling does that; None if infeasible."""
    if not local.feasible:
        return None
    c = scaled.bounds[0]
    asked = scaled.asked[0]
    if not scaled.scalable[0] or not asked.any():
        return local
    margins = scaled.margins((local.K @ local.Q.T)[None])[0]
    stretch = 1 / np.sqrt((margins[asked] / c[asked]).min())
    return replace(local, K=stretch * local.K, Q=stretch * local.Q)

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
import scipy
from jaxtyping import Float

from attractor.geometry import Nuclear
from attractor.margin._solve import solve
from attractor.margin.batching.reduction import reduce_to_spans
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import certify
from attractor.margin.problem import MarginProblem
from attractor.margin.solution import Solution
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import Status

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

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
        >>> factors = at.solve_factorized(problem, width=1)
        >>> round(factors.value, 6), round(at.solve(problem, "nuclear").norm, 6)
        (0.787047, 0.787047)
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
            start = scaled.scale(W, bound)[0][i]
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
    ((_, reduced, (left,), (right,)),) = reduce_to_spans(scaled)
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
    positive = scaled.positive[0]
    if not scaled.scalable[0] or not positive.any():
        return local
    margins = scaled.margins((local.K @ local.Q.T)[None])[0]
    stretch = 1 / np.sqrt((margins[positive] / c[positive]).min())
    return replace(local, K=stretch * local.K, Q=stretch * local.Q)


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
        kept = np.flatnonzero(scaled.present[0])
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
    multipliers = np.zeros(len(factors.bounds))
    penalty, before = 10 * max(0.5 * float(x @ x), 1.0), np.inf

    def lagrangian(x: np.ndarray) -> tuple[float, np.ndarray]:
        push = multipliers + penalty * (factors.bounds - factors.margins(x))
        push = np.where(factors.equality, push, np.maximum(push, 0.0))
        value = 0.5 * float(x @ x) + 0.5 * float(push @ push) / penalty
        return value, x - factors.pull(x, push)

    options = {"maxiter": _MOST_STEPS, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-10}
    for _ in range(_MOST_ROUNDS):
        x = scipy.optimize.minimize(lagrangian, x, jac=True, method="L-BFGS-B", options=options).x
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

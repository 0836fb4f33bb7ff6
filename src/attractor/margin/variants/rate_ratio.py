"""Attention and its head trained at a ratio of rates: between the plain and the relaxed problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.margin._solve import solve
from attractor.margin.problem import MarginProblem, norms_of, tokens_of
from attractor.margin.selection import Selection
from attractor.margin.solution import Solution, texts_of
from attractor.margin.variants.label import label_problem, label_support
from attractor.margin.variants.relaxed import at_rows
from attractor.results import Rows, Summary
from attractor.results.labeled import labeled
from attractor.support.checks import check_kinds, check_share
from attractor.support.errors import InvalidInputError, Status
from attractor.support.precision import as_float64
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

_SUPPORT_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class RateRatioDirection(Summary):
    """Where attention points when its head grows at a fixed ratio of rates.

    With ``m_j`` the label margin of a row under the unit head, ``D`` is the maximizer of

        min_j ( c m_j + a_j^T D b_j )   subject to   a_j^T D b_j >= 0,   ||D|| <= 1,

    over the constraints ``(a_j, b_j)`` of attention. Multipliers prove it: for weights
    ``w_j >= 0`` of sum one and ``u_j >= 0``, no such D gives more than
    ``sum_j w_j c m_j + ||sum_j (w_j + u_j) a_j b_j^T||_dual``.

    Attributes:
        direction: ``D``, ``(*instances, d, e)``, of norm one; NaN where there is none.
        value: The smallest ``c m_j + a_j^T D b_j``, ``(*instances)``.
        gain: What of it attention adds: ``value - min_j c m_j``, ``(*instances)``.
        gap: Upper bound on what another direction gains more, relative to that bound and for the
            label margins as they are, ``(*instances)``.
        violation: Largest ``-a_j^T D b_j / (||a_j|| ||b_j|| ||D||_F)``, or zero, ``(*instances)``.
        weights: The ``w_j``, ``(*instances, m)``.
        barrier_weights: The ``u_j``, ``(*instances, m)``.
        status: A Status, or an object array of them; infeasible where no matrix keeps the
            selection, or no head tells the labels apart.
        ratio: The ratio ``c`` of the head's norm to that of attention, ``(*instances)``.
        critical_ratio: From this ratio on the direction is that of the relaxed problem, or in a
            norm that is not strictly convex the one found, ``(*instances)``.
        label_margins: The ``m_j`` of each row, ``(*instances, n, K)``.
        label: The solution of the label problem.
        problem: The constraints of attention, with bounds one.
        geometry: The norm of D.
    """

    direction: Float[np.ndarray, "*instances d e"]
    value: Any
    gain: Any
    gap: Any
    violation: Any
    weights: Float[np.ndarray, "*instances m"]
    barrier_weights: Float[np.ndarray, "*instances m"]
    status: Any
    ratio: Any
    critical_ratio: Any
    label_margins: Float[np.ndarray, "*instances sequence query"]
    label: Solution
    problem: MarginProblem
    geometry: Any

    @cached_property
    def support_tokens(self) -> Bool[np.ndarray, "*instances sequence query token"]:
        """Tokens at which ``c m_j + a_j^T D b_j`` is smallest, by slack relative to the gain."""
        margins = np.where(self.problem.present, at_rows(self.label_margins, self.problem), np.inf)
        excess = self.ratio[..., None] * (margins - margins.min(-1, keepdims=True))
        slack = excess + self.problem.margins(self.direction) - self.gain[..., None]
        return self._tokens(slack <= _SUPPORT_TOLERANCE * self.gain[..., None])

    @cached_property
    def barrier_tokens(self) -> Bool[np.ndarray, "*instances sequence query token"]:
        """Tokens that would overtake the selected one if it were allowed: ``a_j^T D b_j = 0``."""
        problem = self.problem
        size = norms_of(problem) * np.linalg.norm(self.direction, axis=(-2, -1))[..., None]
        return self._tokens(problem.margins(self.direction) <= _SUPPORT_TOLERANCE * size)

    def _tokens(
        self, constraints: Bool[np.ndarray, "*instances m"]
    ) -> Bool[np.ndarray, "*instances sequence query token"]:
        """The tokens that constraints present compare with the selected one."""
        return tokens_of(self.problem, constraints & self.problem.present)

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        lead = () if self.problem.instances is None else ("instance",)
        names = "value gain gap violation ratio critical_ratio".split()
        data: dict[str, Any] = {name: (lead, getattr(self, name)) for name in names}
        data["direction"] = ((*lead, "row", "column"), self.direction)
        data["label_margins"] = ((*lead, "sequence", "query"), self.label_margins)
        tokens = (*lead, "sequence", "query", "token")
        data["support_tokens"] = (tokens, self.support_tokens)
        data["barrier_tokens"] = (tokens, self.barrier_tokens)
        data["status"] = (lead, texts_of(self.status))
        return labeled(data, attributes={"geometry": self.geometry.name})

    def _summary(self) -> tuple[str, Rows]:
        title = "Direction of attention beside a growing head"
        rows = [("geometry", self.geometry.name)]
        if self.problem.instances is not None:
            found = np.isfinite(self.value)
            return title, [*rows, ("instances", f"{len(found)}, {int(found.sum())} of them found")]
        rows += [("status", str(self.status)), ("ratio of rates", f"{float(self.ratio):.6g}")]
        if np.isfinite(self.value):
            rows += [
                ("relaxed from ratio", f"{float(self.critical_ratio):.6g}"),
                ("smallest joint margin", f"{float(self.value):.10g}"),
                ("relative gap", f"{float(self.gap):.1e}"),
                ("support tokens", str(int(self.support_tokens.sum()))),
            ]
        return title, rows


_MOST_STEPS = 100
_SHARPER = 1e-3
"""Gap of the label problem relative to the tolerance: its margins are taken for exact."""
_EXACT = 1e-14
"""Gap that another step does not narrow."""
_VANISHING = 1e-12
"""Bounds this small relative to the largest are zero: rounding of margins would swamp them."""


def rate_ratio_direction(
    tokens: Tokens,
    selection: Selection,
    ratio: Any,
    geometry: Geometry | str = Frobenius(),  # noqa: B008 - immutable
    *,
    label: Solution | None = None,
    tolerance: float = 1e-9,
) -> RateRatioDirection:
    """Direction of attention when the norm of its head is ``ratio`` times that of ``W``.

    Derivation. Let ``v = c R v^`` and ``W = R D`` with ``v^`` the unit label solution, R large.
    A row of label margin ``m_i`` loses about ``exp(-c R m_i)`` times what leaks to other tokens,
    ``exp(-R a_j^T D b_j)``: the loss is smallest where ``min_j (c m_j + a_j^T D b_j)`` is largest,
    as long as no other token overtakes, ``a_j^T D b_j >= 0``. A threshold ``tau`` is reached by
    D of norm one if and only if ``N(tau) <= 1``, with

        N(tau) = min ||W||   subject to   a_j^T W b_j >= max(0, tau - c m_j).

    That is a margin problem, convex and increasing in ``tau`` with derivative
    ``sum lambda_j`` over ``tau > c m_j``; Newton's method from above finds ``N(tau) = 1``, and
    its every step is an upper bound by duality. ``c = 0`` is the plain problem; from
    ``critical_ratio`` on the direction is that of the relaxed problem. The statement itself is
    derived, not quoted; it explains why the order of limits matters in the joint regularization
    path of *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596).

    Args:
        tokens: The data set, with labels -1 and +1.
        selection: One token for each row, with the same leading axes.
        ratio: ``c >= 0``: the ratio of learning rates in normalized descent, or of radii of a
            path; a number, or ``(instances,)``.
        geometry: The norm of ``W``, and of the head where ``label`` is not given; or its name.
        label: A solution of the label problem; its geometry is that of the head.
        tolerance: Relative duality gap to reach.

    Raises:
        InvalidInputError: If the ratio is negative, infinite or of another shape, the label
            solution is one of another problem, the tolerance is not between 0 and 1, or tokens
            and selection do not fit.
    """
    check_kinds(
        tokens=(tokens, Tokens), selection=(selection, Selection), label=(label, Solution | None)
    )
    check_share("tolerance", tolerance, 1e-9)
    geometry = get_geometry(geometry)
    wanted = label_problem(tokens, selection)
    if label is None:
        label = solve(wanted, geometry, tolerance=_SHARPER * tolerance)
    elif label.problem.left.shape != wanted.left.shape or (label.problem.left != wanted.left).any():
        raise InvalidInputError(
            "label",
            "it does not belong to these tokens and this selection",
            "Solve label_problem(tokens, selection), or leave the argument out",
        )
    lead = () if tokens.instances is None else (tokens.instances,)
    ratios = as_float64("ratio", ratio)
    if ratios.shape not in ((), lead) or (ratios < 0).any():
        raise InvalidInputError(
            "ratio", f"it is {ratio!r}", "Give a number >= 0, or one for each instance"
        )
    problem = MarginProblem.from_selection(tokens, selection)
    margins = _label_margins(label).reshape(tokens.mask.shape[:-1])
    ratios = np.broadcast_to(ratios, lead)
    search = _Search(problem, ratios, margins, geometry, tolerance)
    search.run(np.ravel(label.status == Status.INFEASIBLE), label.certificate.gap <= tolerance)
    names = "direction value gain gap violation weights barrier_weights critical_ratio status"
    found = {name: getattr(search, name) for name in names.split()}
    if not lead:
        found = {name: array[0] for name, array in found.items()}
    return RateRatioDirection(
        **found,
        ratio=ratios,
        label_margins=margins,
        label=label,
        problem=problem,
        geometry=geometry,
    )


def _label_margins(label: Solution) -> Float[np.ndarray, "*instances m"]:
    """Margins of the unit head; those at label support are exactly the smallest."""
    margins = label.problem.margins(label.W)
    support = label_support(label).reshape(margins.shape)
    margins = np.where(support, 1.0, np.maximum(margins, 1.0))
    margins = np.where(label.problem.present, margins, np.inf)  # infinite for rows of weight zero
    return margins / np.reshape(label.norm, (*margins.shape[:-1], 1))


class _Search:
    """Newton's method on ``N(tau) = 1`` for a batch, with the best bounds of each instance.

    ``excess`` is ``c m_j`` less its smallest value, and ``tau`` counts from there.
    """

    def __init__(
        self,
        problem: MarginProblem,
        ratio: Float[np.ndarray, "*instances"],
        margins: Float[np.ndarray, "*instances sequence query"],
        geometry: Geometry,
        tolerance: float,
    ) -> None:
        self.problem = problem.stripped().batched()
        self.geometry, self.tolerance = geometry, tolerance
        count = len(self.problem)
        per_constraint = at_rows(margins, problem).reshape(self.problem.bounds.shape)
        per_constraint = np.where(self.problem.present, per_constraint, np.inf)
        smallest = per_constraint.min(-1, keepdims=True)
        self.margin_excess = np.where(self.problem.present, per_constraint - smallest, np.inf)
        c = np.reshape(ratio, (count, 1))
        held = self.problem.present & (c > 0)
        with np.errstate(over="ignore"):
            self.excess = c * np.where(held, self.margin_excess, 0.0)
        self.excess = np.minimum(self.excess, np.finfo(np.float64).max)
        self.floor = (c * smallest)[:, 0]
        self.direction = np.full((count, *self.problem.shape), np.nan)
        self.lower, self.upper = np.full(count, -np.inf), np.full(count, np.inf)
        self.violation, self.critical_ratio = np.full(count, np.nan), np.full(count, np.nan)
        self.weights = np.zeros(self.problem.bounds.shape)
        self.barrier_weights = np.zeros(self.problem.bounds.shape)
        self.status = np.full(count, Status.STOPPED_EARLY, dtype=object)

    @property
    def gain(self) -> Float[np.ndarray, "instances"]:
        return np.where(np.isfinite(self.lower), self.lower, np.nan)

    @property
    def value(self) -> Float[np.ndarray, "instances"]:
        return self.floor + self.gain

    @property
    def gap(self) -> Float[np.ndarray, "instances"]:
        found = np.isfinite(self.lower) & np.isfinite(self.upper)
        upper = np.where(found, self.upper, 1.0)
        lower = np.where(found, self.lower, -np.inf)
        return np.maximum(upper - lower, 0.0) / upper

    def run(self, inseparable: np.ndarray, separable: np.ndarray) -> None:
        """Takes every instance with a head to its answer."""
        plain = self._solve(np.arange(len(self.problem)), self.problem.bounds)
        infeasible = (plain.status == Status.INFEASIBLE) | inseparable
        self.status[infeasible] = Status.INFEASIBLE
        open_ = np.flatnonzero(separable & np.isfinite(plain.value) & ~infeasible)
        if not open_.size:
            return
        relaxed = self._solve(open_, np.where(self.margin_excess[open_] == 0, 1.0, 0.0))
        self.critical_ratio[open_] = critical_ratio(relaxed, self.margin_excess[open_])
        tau = 1 / relaxed.norm
        for _ in range(_MOST_STEPS):
            before, excess = self.gap[open_], self.excess[open_]
            bounds = np.maximum(tau[:, None] - excess, 0.0)
            required = (bounds > _VANISHING * tau[:, None]) & self.problem.present[open_]
            solution = self._solve(open_, np.where(required, bounds, 0.0))
            self._keep_direction(open_, solution)
            self._keep_bound(open_, solution, required)
            # One step beyond the tolerance: a direction is as far off as the root of its gap.
            left = (before > self.tolerance) & (self.gap[open_] > _EXACT)
            left &= self.upper[open_] < tau
            open_, tau = open_[left], self.upper[open_][left]
            if not open_.size:
                break
        rounding = 32 * sum(self.problem.shape) * np.finfo(np.float64).eps
        tight = (self.gap <= self.tolerance) & (self.violation <= rounding)
        self.status[tight & ~infeasible] = Status.OPTIMAL

    def _solve(self, instances: np.ndarray, bounds: np.ndarray) -> Solution:
        problem = self.problem[instances]
        bounded = MarginProblem(problem.left, problem.right, bounds, False, problem.present)
        return solve(bounded, self.geometry, tolerance=self.tolerance / 4)

    def _keep_direction(self, instances: np.ndarray, solution: Solution) -> None:
        """Keeps the unit matrices that beat the best so far."""
        problem = solution.problem
        unit = solution.W / np.reshape(solution.norm, (-1, 1, 1))
        margins = problem.margins(unit)
        value = np.where(problem.present, margins + self.excess[instances], np.inf).min(-1)
        size = norms_of(problem) * np.linalg.norm(unit, axis=(-2, -1))[:, None]
        short = np.divide(
            -margins, size, out=np.zeros_like(size), where=problem.present & (size > 0)
        )
        better = np.flatnonzero(value > self.lower[instances])
        chosen = instances[better]
        self.direction[chosen], self.lower[chosen] = unit[better], value[better]
        self.violation[chosen] = np.maximum(short.max(-1), 0.0)[better]

    def _keep_bound(self, instances: np.ndarray, solution: Solution, required: np.ndarray) -> None:
        """Keeps the multipliers that prove more than the best so far."""
        multipliers, excess = np.maximum(solution.multipliers, 0.0), self.excess[instances]
        weights = np.where(required, multipliers, 0.0)
        total = weights.sum(-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = (solution.dual_norm + (weights * excess).sum(-1)) / total[:, 0]
            weights, barriers = weights / total, (multipliers - weights) / total
        better = np.flatnonzero(bound < self.upper[instances])
        chosen = instances[better]
        self.upper[chosen] = bound[better]
        self.weights[chosen], self.barrier_weights[chosen] = weights[better], barriers[better]


def critical_ratio(
    relaxed: Solution, margin_excess: Float[np.ndarray, "instances m"]
) -> Float[np.ndarray, "instances"]:
    """The least ratio at which the relaxed direction leaves every other row enough.

    Args:
        relaxed: Solutions of relaxed problems.
        margin_excess: By how much the label margin of each constraint's row, for the unit head, is
            above the smallest; zero in rows at the margin.
    """
    gain = 1 / relaxed.norm[:, None]
    short = gain - relaxed.problem.margins(relaxed.W) * gain
    others = relaxed.problem.present & (margin_excess > 0)
    need = np.divide(short, margin_excess, out=np.zeros_like(short), where=others)
    return np.maximum(need.max(-1), 0.0)

"""What a solver said about a margin problem, held against exact arithmetic.

Nothing here comes from the library: a problem is four arrays, an answer is what a solver returned,
and what it claims is checked with the sums, norms and singular values of ``exact_numbers``. Each
fault is a short text that begins with the name of the check.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fuzzing.exact_numbers import (
    CONTEXT,
    Exact,
    conjugate,
    dual_of,
    inner,
    matrix_norm,
    number,
    root_of_squares,
    singular_values,
)
from fuzzing.exact_point import feasible_near

EPS = 2.0**-52
STEP = 2.0**-1074
"""Spacing of floats below the normal numbers."""
MOST = sys.float_info.max
_TIGHT = (1e-12, 1e-10, 1e-8)
"""Slacks, relative to ``||a|| ||b|| ||W||``, of constraints that points near W may be held at."""
WITNESS = 1e-9
"""Largest relative excess of the norm, or shortfall of a margin, of another solution."""
APART = 1e-4
"""Distance from which on two solutions are two: less, and the room above is what parts them."""
OPTIMAL, INFEASIBLE = "optimal", "infeasible"
STOPPED_EARLY, OUT_OF_REACH = "stopped early", "out of reach"
UNIQUE, NOT_UNIQUE, NOT_KNOWN = "unique", "not unique", "not known"


@dataclass(frozen=True)
class Problem:
    """``min ||W||`` subject to ``a_j^T W b_j >= c_j``, or ``= c_j`` for equalities."""

    left: np.ndarray
    right: np.ndarray
    bounds: np.ndarray
    equality: np.ndarray

    @cached_property
    def rows(self) -> list[tuple[list[int], list[int], int]]:
        """Integers of a, of b, and the exponent of their product, for each constraint."""
        both = [(Exact.of(a), Exact.of(b)) for a, b in zip(self.left, self.right, strict=True)]
        return [(a.rows[0], b.rows[0], a.exponent + b.exponent) for a, b in both]

    @cached_property
    def lengths(self) -> list[Any]:
        """``||a_j|| ||b_j||``."""
        return [
            CONTEXT.sqrt(number(inner(a, a) * inner(b, b), 2 * exponent))
            for a, b, exponent in self.rows
        ]

    @cached_property
    def exact_bounds(self) -> list[tuple[int, int]]:
        """Bounds as an integer and an exponent."""
        return [(e.rows[0][0], e.exponent) for e in map(Exact.of, self.bounds)]

    @property
    def count(self) -> int:
        """Number of constraints."""
        return len(self.bounds)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.left.shape[1], self.right.shape[1]

    @property
    def scalable(self) -> bool:
        """Whether a matrix may be scaled up: only inequalities with a positive bound resist it."""
        return not ((self.bounds != 0) & (self.equality | (self.bounds < 0))).any()


@dataclass(frozen=True)
class Answer:
    """What a solver returned, and the norm it was asked about, as in ``matrix_norm``."""

    family: str
    p: Any
    tolerance: float
    status: str
    W: np.ndarray
    multipliers: np.ndarray
    norm: float
    value: float
    margin: float
    dual_value: float
    dual_norm: float
    gap: float
    kkt_residual: float
    equality_residual: float
    farkas_residual: float
    rank: int
    support: np.ndarray
    rank_evidence: dict[str, float] | None = None
    uniqueness: str = NOT_KNOWN
    other_solution: np.ndarray | None = None

    @property
    def strictly_convex(self) -> bool:
        """Whether the norm leaves room for one solution only."""
        return not self.in_blocks and 1 < self.p < math.inf

    @property
    def in_blocks(self) -> bool:
        """Whether the norm is one of several blocks."""
        return self.family in ("maximum", "sum")


@dataclass(frozen=True)
class Known:
    """What is known of a problem from how it was made.

    Attributes:
        feasible: A matrix that meets the constraints exactly.
        contradiction: Integers that combine the constraints into a contradiction, exactly.
        optimum: Smallest norms, by family and p.
    """

    feasible: np.ndarray | None = None
    contradiction: np.ndarray | None = None
    optimum: dict[tuple[str, float], float] = field(default_factory=dict)


class Evidence:
    """A matrix and multipliers, and what they prove, to fifty digits."""

    def __init__(self, problem: Problem, answer: Answer) -> None:
        self.problem, self.answer = problem, answer

    @cached_property
    def W(self) -> Exact:
        """The matrix, exactly."""
        return Exact.of(self.answer.W)

    @cached_property
    def norm(self) -> Any:
        """``||W||``."""
        return matrix_norm(self.W, self.answer.family, self.answer.p)

    @cached_property
    def slacks(self) -> list[Any]:
        """``a_j^T W b_j - c_j``."""
        return slacks(self.problem, self.W)

    @cached_property
    def ratio(self) -> Any:
        """Least ``a_j^T W b_j / c_j`` over inequalities with a positive bound."""
        p = self.problem
        ratios = [
            1 + s / CONTEXT.mpf(c)
            for s, c, held in zip(self.slacks, p.bounds.tolist(), p.equality.tolist(), strict=True)
            if c > 0 and not held
        ]
        return min(ratios, default=CONTEXT.inf)

    @cached_property
    def stretch(self) -> Any:
        """What W has to be divided by until no margin that scaling can cure is short."""
        return min(self.ratio, CONTEXT.mpf(1)) if self.problem.scalable else CONTEXT.mpf(1)

    @cached_property
    def value(self) -> Any:
        """The norm of a matrix that meets all constraints exactly; infinite where none is found."""
        if not any(self.short):
            return self.norm / self.stretch if self.stretch > 0 else CONTEXT.inf
        slacks = [*enumerate(zip(self.slacks, self.reach, strict=True))]
        tight = [[j for j, (slack, reach) in slacks if abs(slack) <= t * reach] for t in _TIGHT]
        points = feasible_near(self.problem, self.answer.W, tight)
        norms = [matrix_norm(point, self.answer.family, self.answer.p) for point in points]
        return min(norms, default=CONTEXT.inf)

    @cached_property
    def short(self) -> list[Any]:
        """Shortfalls that scaling W does not cure."""
        p = self.problem
        return [
            abs(s) if held else (CONTEXT.mpf(0) if c > 0 and p.scalable else max(-s, 0))
            for s, c, held in zip(self.slacks, p.bounds.tolist(), p.equality.tolist(), strict=True)
        ]

    @cached_property
    def reach(self) -> list[Any]:
        """``||a_j|| ||b_j|| ||W||_F``."""
        size = root_of_squares(self.W.entries(), self.W.exponent)
        return [length * size for length in self.problem.lengths]

    @cached_property
    def multipliers(self) -> Exact:
        """Multipliers, exactly, as one row."""
        return Exact.of(self.answer.multipliers)

    @cached_property
    def combined(self) -> Exact:
        """``sum_j lambda_j a_j b_j^T``."""
        x, (d, e) = self.multipliers, self.problem.shape
        used = [(n, *row) for n, row in zip(x.rows[0], self.problem.rows, strict=True) if n]
        least = min((k for *_, k in used), default=0)
        right = [[n * v << (k - least) for v in b] for n, _, b, k in used]
        columns = list(zip(*right, strict=True)) or [()] * e
        across = list(zip(*(a for _, a, _, _ in used), strict=True)) or [()] * d
        return Exact([[inner(u, v) for v in columns] for u in across], least + x.exponent)

    @cached_property
    def total(self) -> Any:
        """``sum_j c_j lambda_j``."""
        c, x = Exact.of(self.problem.bounds), self.multipliers
        return number(inner(c.rows[0], x.rows[0]), c.exponent + x.exponent)

    @cached_property
    def tau(self) -> list[Any]:
        """Singular values of the combination."""
        return singular_values(self.combined)

    @cached_property
    def sigma(self) -> list[Any]:
        """Singular values of W."""
        return singular_values(self.W)

    @cached_property
    def dual_norm(self) -> Any:
        """The dual norm of the combination."""
        return matrix_norm(self.combined, *dual_of(self.answer.family, self.answer.p))

    @cached_property
    def bound(self) -> Any:
        """What the multipliers prove: no matrix that meets the constraints has a smaller norm."""
        if self.total <= 0:
            return CONTEXT.mpf(0)
        return self.total / self.dual_norm if self.dual_norm else CONTEXT.inf

    @cached_property
    def gap(self) -> Any:
        """What value and bound prove."""
        if not CONTEXT.isfinite(self.value):
            return CONTEXT.inf
        return (self.value - self.bound) / self.value if self.value else CONTEXT.mpf(0)


def slacks(problem: Problem, W: Exact) -> list[Any]:
    """``a_j^T W b_j - c_j``."""
    columns = list(zip(*W.rows, strict=True))
    result = []
    for (a, b, exponent), (c, k) in zip(problem.rows, problem.exact_bounds, strict=True):
        margin, shift = inner([inner(a, w) for w in columns], b), exponent + W.exponent
        least = min(shift, k)
        result.append(number((margin << (shift - least)) - (c << (k - least)), least))
    return result


def faults(problem: Problem, answer: Answer, known: Known = Known()) -> list[str]:
    """What is wrong with an answer, or with what it says of itself; empty if nothing is."""
    found: list[str] = []
    evidence = Evidence(problem, answer)
    if not np.isfinite(answer.multipliers).all():
        return ["multipliers: not finite"]
    negative = (answer.multipliers < 0) & ~problem.equality
    if negative.any():
        found.append(f"multipliers: {answer.multipliers[negative].min():.3g} on an inequality")
    found += _planted(evidence, known)
    if answer.status == INFEASIBLE:
        return found + _infeasible(evidence)
    found += _bound(evidence)
    if np.isfinite(answer.W).all():
        found += _numbers(evidence) + _rank(evidence) + _uniqueness(evidence)
    elif answer.status == OPTIMAL or answer.gap < math.inf or answer.value < math.inf:
        found.append(f"matrix: none, though {answer.status} with gap {answer.gap:.3g}")
    if answer.status == OPTIMAL:
        found += _optimal(evidence)
    elif answer.status not in (STOPPED_EARLY, OUT_OF_REACH):
        found.append(f"status: {answer.status!r}")
    return found


def meets(problem: Problem, W: np.ndarray) -> bool:
    """Whether a matrix meets all constraints, exactly."""
    differences = slacks(problem, Exact.of(W))
    return all(
        s == 0 if held else s >= 0
        for s, held in zip(differences, problem.equality.tolist(), strict=True)
    )


def contradicts(problem: Problem, x: np.ndarray) -> bool:
    """Whether integers combine the constraints into a contradiction, exactly."""
    if ((x < 0) & ~problem.equality).any():
        return False
    answer = Answer(
        "entrywise", 2, 0, INFEASIBLE, np.zeros(problem.shape), x,
        *[math.nan] * 9, -1, np.zeros(0, bool),
    )  # fmt: skip
    evidence = Evidence(problem, answer)
    return evidence.total > 0 and not any(evidence.combined.entries())


def solution_fault(
    problem: Problem, family: str, p: float, value: float, W: np.ndarray, within: float = WITNESS
) -> str | None:
    """Why a matrix is no solution, given what the smallest norm is; None if it is one.

    Its norm may exceed the smallest, and its margins fall short of their bounds, by the fraction
    `within`. Margins of equalities and of bounds that stop W from being scaled need to be right
    to rounding: of bounds of zero no fraction can be taken.
    """
    if not np.isfinite(W).all():
        return "not finite"
    exact = Exact.of(W)
    norm = matrix_norm(exact, family, p)
    if norm > CONTEXT.mpf(value) * (1 + CONTEXT.mpf(within)):
        return f"norm larger by {float(norm / CONTEXT.mpf(value) - 1):.3g}"
    length = root_of_squares(exact.entries(), exact.exponent)
    for j, (s, c, held) in enumerate(
        zip(slacks(problem, exact), problem.bounds.tolist(), problem.equality.tolist(), strict=True)
    ):
        short = abs(s) if held else -s
        size = abs(CONTEXT.mpf(c))
        allowed = CONTEXT.mpf(within) * size
        if held or c <= 0 or not problem.scalable:
            size = max(size, problem.lengths[j] * length)
            allowed = max(allowed, CONTEXT.mpf(2.0**-46) * sum(problem.shape) * size)
        if short > allowed:
            return f"constraint {j}, bound {c:.3g}, short by {float(short / size):.3g} of its size"
    return None


def strain(problem: Problem, answer: Answer) -> float:
    """By what fraction of a bound rounding W can move a margin, if W is no longer than proved.

    Where that is more than the tolerance, a matrix of floats may be none of the solutions.
    """
    if answer.dual_value > 1e300:  # no float may be as large as its entries
        return math.inf
    asked = (problem.bounds > 0) & ~problem.equality & (answer.multipliers > 0)
    sizes = [problem.lengths[j] / CONTEXT.mpf(problem.bounds[j]) for j in np.flatnonzero(asked)]
    return float(max(sizes, default=0) * CONTEXT.mpf(answer.dual_value) * EPS)


def distance(W: np.ndarray, other: np.ndarray) -> float:
    """``||W - other||_F / ||W||_F``."""
    one, difference = Exact.of(W), Exact.of(other).minus(Exact.of(W))
    size = root_of_squares(one.entries(), one.exponent)
    apart = root_of_squares(difference.entries(), difference.exponent)
    return float(apart / size) if size else (math.inf if apart else 0.0)


def _planted(evidence: Evidence, known: Known) -> list[str]:
    """Whether the status and the bounds agree with what is known of the problem."""
    answer, found = evidence.answer, []
    if known.contradiction is not None and answer.status == OPTIMAL:
        found.append("planted: optimal, though the constraints contradict each other")
    if known.feasible is not None:
        if answer.status == INFEASIBLE:
            found.append("planted: infeasible, though a matrix meets all constraints")
        else:
            most = matrix_norm(Exact.of(known.feasible), answer.family, answer.p)
            if answer.dual_value > most * (1 + 4 * EPS):
                found.append(
                    f"planted: bound {answer.dual_value:.17g} above a norm of {float(most):.17g}"
                )
    optimum = known.optimum.get((answer.family, answer.p))
    if optimum is not None and answer.status == OPTIMAL:
        off = abs(answer.value / optimum - 1)
        if off > 2 * answer.tolerance:
            found.append(f"planted: value off by {off:.3g}")
    return found


def _infeasible(evidence: Evidence) -> list[str]:
    """Whether the multipliers contradict, to rounding; the file is checked for exact ones."""
    answer, problem, found = evidence.answer, evidence.problem, []
    if not np.isnan(answer.W).all():
        found.append("matrix: given, though infeasible")
    if not evidence.total > 0:
        found.append(f"contradiction: bounds add up to {float(evidence.total):.3g}")
        return found
    sizes = [abs(CONTEXT.mpf(x)) for x in answer.multipliers.tolist()]
    weight = CONTEXT.fsum(x * n for x, n in zip(sizes, problem.lengths, strict=True))
    allowed = 4 * problem.count * CONTEXT.mpf(EPS) * _constant(answer, problem.shape) * weight
    if evidence.dual_norm > allowed:
        found.append(
            f"contradiction: the sum is {float(evidence.dual_norm / weight):.3g} of its terms"
        )
    found += _bound(evidence)
    if answer.uniqueness != NOT_KNOWN:
        found.append("uniqueness: claimed, though infeasible")
    return found


def _constant(answer: Answer, shape: tuple[int, int]) -> Any:
    """The least k such that the dual norm is at most k times the Frobenius norm."""
    return _constant_of(answer.family, answer.p, shape)


def _constant_of(family: str, p: Any, shape: tuple[int, int]) -> Any:
    if family in ("maximum", "sum"):
        each = []
        for rows, columns, weight, *norm in p:
            size = rows[1] - rows[0], columns[1] - columns[0]
            each.append(_constant_of(*norm, size) / CONTEXT.mpf(weight))
        return CONTEXT.norm(each) if family == "maximum" else max(each)
    q = conjugate(p)
    number_of = min(shape) if family == "schatten" else shape[0] * shape[1]
    inverse = CONTEXT.mpf(0) if q == CONTEXT.inf else 1 / q
    return CONTEXT.mpf(number_of) ** max(CONTEXT.mpf(0), inverse - CONTEXT.mpf(0.5))


def _bound(evidence: Evidence) -> list[str]:
    """Whether the multipliers prove the lower bound that is claimed."""
    answer, found = evidence.answer, []
    if answer.dual_value > evidence.bound * (1 + 4 * EPS):
        found.append(f"bound: claims {answer.dual_value:.17g}, proves {float(evidence.bound):.17g}")
    return found


def _next_to(given: float, exact: Any) -> bool:
    """Whether no more than two steps of the numbers below the normal ones lie in between."""
    return abs(CONTEXT.mpf(given) - exact) <= CONTEXT.mpf(2.0**-1073)


def _numbers(evidence: Evidence) -> list[str]:
    """Whether what an answer says about W and the multipliers is so."""
    answer, problem, found = evidence.answer, evidence.problem, []
    rounding = 64 * (sum(problem.shape) + problem.count) * EPS
    if _off(answer.norm, evidence.norm) > rounding and not _next_to(answer.norm, evidence.norm):
        found.append(f"norm: claims {answer.norm:.17g}, is {float(evidence.norm):.17g}")
    # Of two points near a W that meets constraints to rounding alone, either may be the shorter.
    apart = rounding if any(evidence.short) else 4 * EPS
    settled = answer.status == OPTIMAL or not any(evidence.short)
    if settled and answer.value < evidence.value * (1 - apart):
        found.append(f"value: claims {answer.value:.17g}, is {float(evidence.value):.17g}")
    most = evidence.value * (1 + answer.tolerance)
    if settled and most < answer.value < math.inf and not _next_to(answer.value, most):
        found.append(f"value: claims {answer.value:.17g}, only {float(evidence.value):.17g}")
    value, bound = CONTEXT.mpf(answer.value), CONTEXT.mpf(answer.dual_value)
    stated = (value - bound) / value if 0 < value < CONTEXT.inf else CONTEXT.mpf(0)
    apart = 4 * STEP / value if 0 < value < CONTEXT.inf else 0  # both are rounded outwards
    if answer.gap < stated - 8 * EPS - apart:
        found.append(f"gap: claims {answer.gap:.3g}, is {float(stated):.3g}")
    # Far below its bound a margin is one that no scaling cures: how far then says nothing.
    least = max(evidence.ratio, CONTEXT.mpf(-1))
    beyond = answer.margin == math.inf and least > MOST  # what no float holds is infinite
    if answer.margin > least + 4 * EPS * abs(least) and not beyond:
        found.append(f"margin: claims {answer.margin:.17g}, is {float(evidence.ratio):.17g}")
    if answer.status == OPTIMAL and evidence.norm:
        found += _residuals(evidence)
    return found


def _residuals(evidence: Evidence) -> list[str]:
    """Whether the residuals of a solution are no smaller than they should be."""
    answer, problem, found = evidence.answer, evidence.problem, []
    weights = [CONTEXT.mpf(x) for x in answer.multipliers.tolist()]
    bounds = [CONTEXT.mpf(c) for c in problem.bounds.tolist()]
    size = CONTEXT.fsum(abs(x * c) for x, c in zip(weights, bounds, strict=True))
    if size:
        slack = CONTEXT.fsum(abs(x * s) for x, s in zip(weights, evidence.slacks, strict=True))
        if answer.kkt_residual < slack / size - 1e-10:
            found.append(
                f"kkt residual: claims {answer.kkt_residual:.3g}, slack {float(slack / size):.3g}"
            )
    held = [
        abs(s) / r
        for s, r, equal in zip(
            evidence.slacks, evidence.reach, problem.equality.tolist(), strict=True
        )
        if equal and r
    ]
    if answer.equality_residual < max(held, default=CONTEXT.mpf(0)) * (1 - 1e-6) - 8 * EPS:
        found.append(
            f"equality residual: claims {answer.equality_residual:.3g}, is {float(max(held)):.3g}"
        )
    if evidence.bound > 0 and answer.farkas_residual < 1 / evidence.bound * (1 - 1e-9):
        found.append(
            f"farkas residual: claims {answer.farkas_residual:.3g}, "
            f"is {float(1 / evidence.bound):.3g}"
        )
    for j in np.flatnonzero(~answer.support & ~problem.equality):
        share = weights[j] * bounds[j] / evidence.norm
        if share > max(2e-6, 2 * float(max(evidence.gap, 0)) ** 0.5):
            found.append(f"support: leaves out constraint {j} of share {float(share):.3g}")
    return found


def _optimal(evidence: Evidence) -> list[str]:
    """Whether W meets the constraints, and nothing that does is smaller by the tolerance."""
    answer, problem, found = evidence.answer, evidence.problem, []
    if not answer.gap <= answer.tolerance:
        found.append(f"tolerance: optimal with a gap of {answer.gap:.3g}")
    if not np.isfinite(answer.W).all():
        return found
    if evidence.gap > answer.tolerance + (1e-12 if any(evidence.short) else 0):
        found.append(f"tolerance: the gap is {float(evidence.gap):.3g}")
    if 1 - evidence.stretch > max(answer.tolerance, 0):
        found.append(f"margins: short by {float(1 - evidence.stretch):.3g}")
    rounding = CONTEXT.mpf(2.0**-46) * sum(problem.shape)
    for j, (short, reach, c) in enumerate(
        zip(evidence.short, evidence.reach, problem.bounds.tolist(), strict=True)
    ):
        if short > rounding * max(abs(CONTEXT.mpf(c)), reach):
            found.append(f"margins: constraint {j} short by {float(short):.3g}, bound {c:.3g}")
    return found


def _rank(evidence: Evidence) -> list[str]:
    """Whether the singular values bear out the rank."""
    answer, found = evidence.answer, []
    if answer.value == math.inf or (answer.rank_evidence is None and answer.rank < 0):
        return found
    if not evidence.norm:
        return [] if answer.rank == 0 else [f"rank: {answer.rank} of zero"]
    sigma = evidence.sigma
    if answer.rank_evidence is None:
        if answer.in_blocks:
            return [f"rank: {answer.rank}, where nothing bounds the distance to the solution"]
        p, value, gap = answer.p, evidence.value, max(evidence.gap, CONTEXT.mpf(0))
        if 1 < p <= 2:
            tail = value * CONTEXT.sqrt(2 * gap / (CONTEXT.mpf(p) - 1))
        elif answer.family == "schatten" and p < math.inf:
            tail = 2 * value * (p * gap / 2) ** (1 / CONTEXT.mpf(p))
        else:
            return [f"rank: {answer.rank}, where nothing bounds the distance to the solution"]
        proved = sum(s > tail for s in sigma)
        return [f"rank: {answer.rank} claimed, {proved} proved"] if answer.rank > proved else []
    told = answer.rank_evidence
    k = int(told["multiplicity"])
    if not evidence.dual_norm or not k:
        return found
    gap = evidence.value - evidence.bound
    if k < len(sigma):
        separation = 1 - evidence.tau[k] / evidence.tau[0]
        if told["separation"] > separation + 8 * EPS:
            found.append(f"rank: separation {told['separation']:.3g}, is {float(separation):.3g}")
        # Von Neumann: sum_i sigma_i (1 - tau_i) is at most the gap, whatever the solution.
        tail = gap / separation if separation > 0 else CONTEXT.inf
        if told["tail_bound"] < tail * (1 - 1e-6) - 8 * EPS * evidence.value - STEP:
            found.append(f"rank: tail bound {told['tail_bound']:.3g}, is {float(tail):.3g}")
        beyond = CONTEXT.fsum(sigma[k:]) / evidence.stretch
        if beyond > CONTEXT.mpf(told["tail_bound"]) + 64 * EPS * evidence.value:
            found.append(f"rank: {float(beyond):.3g} beyond the tail bound")
    if abs(told["smallest_kept"] - sigma[k - 1]) > 1e-13 * sigma[0] + STEP:
        found.append(f"rank: smallest kept {told['smallest_kept']:.3g}")
    if answer.rank > k or (answer.rank > 0 and sigma[answer.rank - 1] <= told["tail_bound"]):
        found.append(f"rank: {answer.rank} claimed, {k} of the combination are one")
    return found


def _uniqueness(evidence: Evidence) -> list[str]:
    """Whether the answer holds against what is known, and another solution is one."""
    answer, problem, found = evidence.answer, evidence.problem, []
    other = answer.other_solution
    given = other is not None and np.isfinite(other).any()
    if given != (answer.uniqueness == NOT_UNIQUE):
        found.append(f"witness: {'' if given else 'not '}given, though {answer.uniqueness}")
    if answer.uniqueness == NOT_UNIQUE:
        if only_one(problem, answer):
            found.append("uniqueness: not unique, where there is only one solution")
        if given:
            fault = solution_fault(problem, answer.family, answer.p, answer.value, other)
            if fault:
                found.append(f"witness: {fault}")
            if (apart := distance(answer.W, other)) < APART:
                found.append(f"witness: only {apart:.3g} away")
    return found


def only_one(problem: Problem, answer: Answer) -> bool:
    """Whether the norm is strictly convex on matrices of the shape, or zero is the solution."""
    row = answer.family == "schatten" and min(problem.shape) == 1
    return answer.strictly_convex or row or problem.shape == (1, 1) or not answer.W.any()


def _off(claimed: float, exact: Any) -> float:
    """Relative difference."""
    if not exact:
        return abs(claimed)
    return float(abs(CONTEXT.mpf(claimed) / exact - 1))


def disagreements(shape: tuple[int, int], answers: list[Answer]) -> list[str]:
    """What answers to one problem in several norms, or two in one norm, say against each other."""
    found = []
    for one in answers:
        for other in answers:
            names = f"{one.family} {one.p} and {other.family} {other.p}"
            if one.status == INFEASIBLE and other.status == OPTIMAL:
                found.append(f"norms: infeasible and optimal in {names}")
            factor = _norm_ratio(shape, (one.family, one.p), (other.family, other.p))
            room = (1 + other.tolerance) * (1 + 1e-12)
            if one.dual_value > factor * other.value * room:
                found.append(
                    f"norms: bound {one.dual_value:.17g} and value {other.value:.17g} in {names}"
                )
    return found


def _norm_ratio(shape: tuple[int, int], one: tuple, other: tuple) -> float:
    """A number k, perhaps infinite, with ``||W||_one <= k ||W||_other`` for every matrix."""
    (family, p), (against, q) = one, other
    if {family, against} & {"maximum", "sum"}:
        return 1.0 if one == other else math.inf
    if min(shape) == 1:  # the one singular value is the Euclidean length
        p, family = (2, against) if family == "schatten" else (p, family)
        q, against = (2, family) if against == "schatten" else (q, against)
    if 2 in (p, q):  # the norm of both families
        family = against = against if p == 2 else family
    if family != against:
        nested = p >= max(2, q) if family == "entrywise" else q <= min(2, p)
        return 1.0 if nested else math.inf
    number_of = min(shape) if family == "schatten" else shape[0] * shape[1]
    return float(number_of ** max(0.0, 1 / p - 1 / q))

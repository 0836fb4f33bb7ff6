"""Many constraints on few unknowns: solving on a working set that grows by what it violates.

A solution is held by no more constraints than W has entries (Caratheodory), so that almost all of
m constraints are slack where m is far larger than that. Each round solves

    min ||W||   subject to   a_j^T W b_j >= c_j   for j in the working set

by the dense methods of the geometry, evaluates all margins, and adds the constraints violated by
most (Kelley 1960, *The cutting-plane method for solving convex programs*). Multipliers of the
working set, zero elsewhere, are feasible for the dual of the whole problem; W divided by its
smallest ``a_j^T W b_j / c_j`` is feasible for the whole problem: both bounds are known in every
round, and a round is solved only ten times as closely as they are apart. A round costs one
product with the constraints, linear in m, beside a dense solve whose size depends on the number
of unknowns alone.

Constraints without a multiplier leave when the working set gets too large. Rounds end because its
optimum rises: what leaves does not hold it. A contradiction within the working set is one of the
whole problem.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Frobenius, Geometry
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import Certificate, rounding_of_margins
from attractor.margin.large.instance import Report
from attractor.margin.methods import Candidates, Method, Task, attempt
from attractor.support.errors import Status

_FEWEST_PER_UNKNOWN = 4
"""Constraints per unknown from which on few of them are solved at a time."""
_MOST_UNKNOWNS, _MOST_UNKNOWNS_FROBENIUS = 600, 1100
"""Unknowns up to which as many constraints, and half as many more, are solved fast."""
_MOST_ROUNDS = 60
_FIRST_TOLERANCE, _CLOSER = 1e-2, 0.1
"""Gap that the first rounds are solved to; later that of the bounds times the factor."""
_GROWTH = 0.1
"""Constraints per unknown by which the working set may get larger a round."""
_ADDED = 1 / 3
"""Constraints added in a round at most, as a share of the working set at first."""
_EXAMINED = 16
"""Times as many are compared, so that copies of one constraint do not take all places."""
_FEWEST = 64
_NEGLIGIBLE = 1e-4
"""Share of the largest multiplier below which a constraint may leave, if slack by the next."""
_SLACK = 1e-3


def is_overdetermined(constraints: int, shape: tuple[int, int], geometry: Geometry) -> bool:
    """Whether there are far more constraints than unknowns, and few enough unknowns."""
    unknowns = shape[0] * shape[1]
    most = _MOST_UNKNOWNS_FROBENIUS if geometry == Frobenius() else _MOST_UNKNOWNS
    return unknowns <= most and constraints >= _FEWEST_PER_UNKNOWN * unknowns


def solve_by_constraint_generation(
    task: Task, methods: tuple[Method, ...], report: Report, *, started: bool, largest: float
) -> Candidates:
    """Candidates for one instance of many constraints on few unknowns.

    Args:
        task: A batch of one instance.
        methods: Methods for the working set, in the order to try them.
        report: Callback, called with the number of a round and the gap after it.
        started: Whether the methods start from the W of the task, which meets all constraints.
        largest: Constraints in the working set, per unknown, beyond which slack ones leave; it
            grows round by round, so that none comes and goes without end.
    """
    scaled = task.scaled
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    unknowns = W.size
    if (started and not task.warm_started.size) or scaled.equality.sum() > largest * unknowns:
        return W, x
    impossible = np.flatnonzero(scaled.impossible[0])[:1]
    if impossible.size:
        x[0, impossible] = np.sign(scaled.bounds[0, impossible])
        return W, x
    working = _near_start(task) if started else _spread(scaled)
    if not working.any():
        return W, x
    goal = task.tolerance / 4
    inner = max(_FIRST_TOLERANCE, goal)
    for number in range(_MOST_ROUNDS):
        few = keep(scaled, working)
        tried = (_start_from(task, working), *methods) if started else methods
        W, multipliers, certificate, status = attempt(few, task.geometry, tried, inner)
        x[:] = 0.0
        x[0, working] = multipliers[0]
        if np.isnan(W).any():  # the multipliers are a contradiction, or nothing
            return W, x if status[0] is Status.INFEASIBLE else np.zeros_like(x)
        margins = scaled.margins(W)
        violated = _violated(scaled, W, margins, goal) & ~working
        gap = _gap(scaled, margins, certificate)
        report(number + 1, gap)
        if not violated.any():
            if gap <= 2 * goal or inner <= goal:
                break
            inner = max(_CLOSER * min(gap, inner), goal)
            continue
        inner = max(min(inner, _CLOSER * gap), goal)
        most = max(int(_ADDED * largest * unknowns), _FEWEST)
        added = _most_violated(scaled, margins, np.flatnonzero(violated), most)
        excess = working.sum() + added.size - int((largest + _GROWTH * number) * unknowns)
        working &= ~_leaving(scaled, margins, x, working, max(excess, 0))
        working[added] = True
    return _scaled_to_meet(scaled, W), x


def keep(scaled: ScaledConstraints, working: Bool[np.ndarray, "m"]) -> ScaledConstraints:
    """The constraints chosen of one instance, in the same units."""
    return replace(
        scaled,
        **{
            name: getattr(scaled, name)[:, working]
            for name in (
                "left",
                "right",
                "bounds",
                "given",
                "inequality",
                "equality",
                "norms",
                "shift",
            )
        },
    )


def _start_from(task: Task, working: Bool[np.ndarray, "m"]) -> Method:
    """A method that returns the W of a task and its multipliers of the working set."""
    return lambda _: (task.W, task.multipliers[:, working])


def _near_start(task: Task) -> Bool[np.ndarray, "m"]:
    """The constraints that hold the W of a task, and those of least slack."""
    scaled = task.scaled
    slack = (scaled.margins(task.W) - scaled.bounds)[0]
    weights = task.multipliers[0] * scaled.norms[0]
    held = scaled.nonzero[0] & (weights > 1e-6 * weights.max(initial=0.0))
    return held | _least(scaled, slack, task.W.size)


def _spread(scaled: ScaledConstraints) -> Bool[np.ndarray, "m"]:
    """The constraints of least margin under their sum, and half as many evenly among all."""
    unknowns = scaled.left.shape[-1] * scaled.right.shape[-1]
    total = scaled.combine(np.where(scaled.positive, 1.0, 0.0))
    working = _least(scaled, scaled.margins(total)[0], unknowns)
    places = np.flatnonzero(scaled.nonzero[0])
    evenly = np.linspace(0, places.size - 1, min(unknowns // 2, places.size), dtype=int)
    working[places[evenly]] = True
    return working


def _least(
    scaled: ScaledConstraints, slack: Float[np.ndarray, "m"], count: int
) -> Bool[np.ndarray, "m"]:
    """The equalities, and the distinct inequalities of least slack: so many at most."""
    working = scaled.equality[0] & scaled.nonzero[0]
    places = np.flatnonzero(scaled.inequality[0] & scaled.nonzero[0])
    working[_distinct(scaled, places, slack[places], count)] = True
    return working


def _violated(
    scaled: ScaledConstraints, W: np.ndarray, margins: np.ndarray, goal: float
) -> Bool[np.ndarray, "m"]:
    """Constraints that fall short by more than scaling W up can cure at no cost."""
    short = np.where(scaled.equality, np.abs(margins - scaled.bounds), scaled.bounds - margins)
    reach = np.maximum(scaled.norms * np.sqrt((W**2).sum()), np.abs(scaled.bounds))
    allowed = rounding_of_margins(*W.shape[-2:]) / 2 * reach
    curable = scaled.positive & scaled.scalable[:, None]
    allowed = np.where(curable, np.maximum(allowed, goal * scaled.bounds), allowed)
    return (short > allowed)[0] & scaled.nonzero[0]


def _gap(scaled: ScaledConstraints, margins: np.ndarray, certificate: Certificate) -> float:
    """The relative gap of both bounds on the optimum of the whole problem; one if W is no bound."""
    positive = scaled.positive
    least = 1.0
    if positive.any():
        least = min(float((margins[positive] / scaled.bounds[positive]).min()), 1.0)
    if not (least > 0 and certificate.norm[0] > 0):
        return 1.0
    return max(1 - least * float(certificate.dual_value[0] / certificate.norm[0]), 0.0)


def _most_violated(
    scaled: ScaledConstraints, margins: np.ndarray, places: Int[np.ndarray, "k"], most: int
) -> Int[np.ndarray, "n"]:
    """The constraints that W is farthest from meeting, without copies."""
    distance = (margins - scaled.bounds)[0, places] / scaled.norms[0, places]
    return _distinct(scaled, places, distance, most)


def _distinct(
    scaled: ScaledConstraints,
    places: Int[np.ndarray, "k"],
    order: Float[np.ndarray, "k"],
    count: int,
) -> Int[np.ndarray, "n"]:
    """The first places in an order, but one only of those that hold the same constraint."""
    most = _EXAMINED * count
    if places.size > most:
        chosen = np.argpartition(order, most)[:most]
        places, order = places[chosen], order[chosen]
    places = places[np.argsort(order, kind="stable")]
    rows = np.hstack(
        [scaled.left[0, places], scaled.right[0, places], scaled.bounds[0, places, None]]
    )
    _, first = np.unique(rows, axis=0, return_index=True)
    return places[np.sort(first)[:count]]


def _leaving(
    scaled: ScaledConstraints,
    margins: np.ndarray,
    x: np.ndarray,
    working: Bool[np.ndarray, "m"],
    most: int,
) -> Bool[np.ndarray, "m"]:
    """The slackest inequalities of the working set without a multiplier."""
    slack = (margins - scaled.bounds)[0]
    weights = x[0] * scaled.norms[0]
    inactive = working & scaled.inequality[0] & (slack > _SLACK)
    places = np.flatnonzero(inactive & (weights <= _NEGLIGIBLE * weights.max()))
    leaving = np.zeros_like(working)
    leaving[places[np.argsort(-slack[places], kind="stable")[:most]]] = True
    return leaving


def _scaled_to_meet(scaled: ScaledConstraints, W: np.ndarray) -> np.ndarray:
    """W scaled up until the smallest margin is what it must be, where scaling does that."""
    positive = scaled.positive
    if not (positive.any() and scaled.scalable[0]):
        return W
    least = float((scaled.margins(W)[positive] / scaled.bounds[positive]).min())
    return W / least if 0 < least < 1 else W

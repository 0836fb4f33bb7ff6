"""Large problems: an augmented Lagrangian, and the stages it is driven through."""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius, Geometry, Lp, Schatten, has_norm_of
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import Certificate
from attractor.margin.large.conjugate_gradients import FreeSystem
from attractor.margin.large.constraint_generation import (
    is_overdetermined,
    solve_by_constraint_generation,
)
from attractor.margin.large.instance import LargeInstance, Report
from attractor.margin.large.proximal_newton import solve_by_proximal_newton
from attractor.margin.linear.largest_margin import solve_by_largest_margin
from attractor.margin.methods import Candidates, Method, Task, attempt, methods_for
from attractor.margin.problem import MarginProblem
from attractor.support.memory import require_memory
from attractor.support.progress import ProgressBar

_FIRST_DELTA = 1.0
_STAGES = 60
_EXCHANGES = 40
_PATIENCE = 3
_SETTLED = 0.005
"""Share of free constraints on the wrong side below which a stage is done."""
_STALLED = 8
"""Stages at the last delta, without a better gap, after which no more are tried."""
_SUSPICIOUS = 1e-3
"""Norm of W, relative to its multipliers, below which a contradiction is looked for."""
_VANISHED = 1e-13
"""Norm of the sum, relative to the multipliers, that is rounding."""
_ROUNDS = 12


@dataclass(frozen=True)
class StageSettings:
    """Schedule of delta, and accuracy of a stage.

    Attributes:
        fall: Factor of delta a stage.
        last_delta: The last delta.
        reduction: Residual of a linear solve, relative to its first.
    """

    fall: float
    last_delta: float
    reduction: float


AGGRESSIVE = StageSettings(fall=0.2, last_delta=1e-12, reduction=1e-3)
CONSERVATIVE = StageSettings(fall=0.5, last_delta=1e-12, reduction=1e-6)


@dataclass
class _Stage:
    """Iterate of an augmented Lagrangian.

    Attributes:
        u: Coefficients of W.
        y: Margins of W.
        free: Constraints taken to be short.
        wrong: Number of constraints on the wrong side.
    """

    u: Float[np.ndarray, "m"]
    y: Float[np.ndarray, "m"]
    free: Bool[np.ndarray, "m"]
    wrong: int


def solve_by_augmented_lagrangian(
    task: Task, settings: StageSettings, report: Report
) -> Candidates:
    """Candidates for one instance with many constraints.

    Args:
        task: A batch of one instance.
        settings: Schedule of delta, and accuracy of a stage.
        report: Callback, called at the end of every stage.
    """
    scaled = task.scaled
    _, m, d = scaled.left.shape
    W, multipliers = np.full((1, d, scaled.right.shape[-1]), np.nan), np.zeros((1, m))
    impossible = np.flatnonzero(scaled.impossible[0])[:1]
    if impossible.size:
        multipliers[0, impossible] = np.sign(scaled.bounds[0, impossible])
        return W, multipliers
    instance = LargeInstance.of(scaled)
    u, feasible = _minimize(instance, task.tolerance, settings, report)
    if feasible:
        settled = instance.settle(instance.constraints.combine(u), u)
        W[0] = instance.scaled_to_meet(settled)
    size = float(task.geometry.dual_norm(instance.constraints.combine(u)))
    multipliers[0, instance.slots] = u / (size if feasible and size > 0 else 1.0)
    return W, multipliers


def _minimize(
    instance: LargeInstance, tolerance: float, settings: StageSettings, report: Report
) -> tuple[Float[np.ndarray, "m"], bool]:
    """Multipliers, and whether they make a W; otherwise they are Farkas multipliers or a bound."""
    m = len(instance.bounds)
    x, delta = np.zeros(m), _FIRST_DELTA
    stage = _Stage(x, x, np.ones(m, dtype=bool), m)
    best, best_gap, stalled, vanishing = x, np.inf, 0, _SUSPICIOUS
    for number in range(_STAGES):
        stage = _solve_stage(instance, x, delta, stage, settings)
        x = np.where(instance.inequality, np.maximum(stage.u, 0.0), stage.u)
        gap = _gap(instance, x)
        report(number + 1, gap)
        stalled = 0 if gap < best_gap / 2 or delta > settings.last_delta else stalled + 1
        if gap < best_gap:
            best, best_gap = x, gap
        if gap <= tolerance / 4 and not stage.wrong:
            break
        residual = instance.farkas_residual(x)
        if np.isinf(best_gap) and residual < vanishing:
            farkas = contradiction(instance, x)
            if farkas is not None:
                return farkas, False
            vanishing = residual / 10
        if stalled >= _STALLED:
            break
        delta = max(settings.fall * delta, settings.last_delta)
    return (best, True) if np.isfinite(best_gap) else (x, False)


def _gap(instance: LargeInstance, x: Float[np.ndarray, "m"]) -> float:
    """Relative duality gap of x and the W it makes; infinite where no multiple of that will do."""
    combined = instance.constraints.combine(x)
    W, size = instance.settle(combined, x), float(np.sqrt((combined**2).sum()))
    norm, margins = float(np.sqrt((W**2).sum())), instance.constraints.margins(W)
    upper, lower = instance.bounds_from(norm, x / (size if size > 0 else 1.0), margins)
    return (upper - lower) / upper if 0 < upper < np.inf else upper


def _solve_stage(
    instance: LargeInstance,
    x: Float[np.ndarray, "m"],
    delta: float,
    start: _Stage,
    settings: StageSettings,
) -> _Stage:
    """One stage, as closely as it pays."""
    held = ~instance.inequality
    u, y, free = start.u, start.y, start.free | held
    fewest, patience, wrong_count = len(x) + 1, _PATIENCE, 0
    target = instance.bounds + delta * x
    for _ in range(_EXCHANGES):
        system = FreeSystem(instance.constraints, free, delta)
        s, noise = system.solve(target, u, reduction=settings.reduction)
        image = instance.constraints.gram_times(s)
        noise += np.finfo(np.float64).eps * np.abs(s).max(initial=0.0)
        wrong = instance.inequality & ((free & (s < 0)) | (~free & (target - image > noise)))
        wrong_count = int(wrong.sum())
        # All on the wrong side are exchanged while their number falls; then Newton steps take over.
        patience = _PATIENCE if wrong_count < fewest else patience - 1
        fewest = min(fewest, wrong_count)
        if patience >= 0:
            u, y, free = s, image, free ^ wrong
        else:
            step = _line_search(instance.inequality, target, delta, u, y, s - u, image - y)
            u, y = u + step * (s - u), y + step * (image - y)
            free = held | (target - y > 0)
        if wrong_count <= _SETTLED * np.count_nonzero(free):
            break
    return _Stage(u, y, free, wrong_count)


def _line_search(
    inequality: Bool[np.ndarray, "m"],
    target: Float[np.ndarray, "m"],
    delta: float,
    u: Float[np.ndarray, "m"],
    y: Float[np.ndarray, "m"],
    du: Float[np.ndarray, "m"],
    dy: Float[np.ndarray, "m"],
) -> float:
    """The step in [0, 1] that minimizes the augmented Lagrangian along a direction."""

    def slope(step: float) -> float:
        short = target - y - step * dy
        short = np.where(inequality, np.maximum(short, 0.0), short)
        return float(du @ y + step * (du @ dy) - (short @ dy) / delta)

    low, high = 0.0, 1.0
    if slope(high) <= 0:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return low


def contradiction(
    instance: LargeInstance, x: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"] | None:
    """Multipliers that combine the constraints to zero and the bounds to more, close to x.

    What is left of ``sum x_j a_j b_j^T`` is taken out by the smallest change of the multipliers
    that are not zero. One that the change makes negative is left out of the next round.
    """
    x = x / np.abs(x).max()
    free = np.asarray(~instance.inequality | (x > 0))
    system = FreeSystem(instance.constraints, free, 0.0)
    for _ in range(_ROUNDS):
        image = instance.constraints.gram_times(x)
        change, _ = system.solve(image, np.zeros_like(x), reduction=1e-8)
        x = x - change
        negative = instance.inequality & (x < 0)
        if negative.any():
            x = np.where(negative, 0.0, x)
            free = free & ~negative
            system = FreeSystem(instance.constraints, free, 0.0)
        elif instance.farkas_residual(x) < _VANISHED:
            return x
    return None


_MOST_DENSE = 2000
"""Constraints up to which methods that hold a Gram matrix are faster or more exact."""
_FEWEST_GENERATED = 500
"""Constraints from which on solving few of them at a time is faster, where unknowns are few: 2 to 9
times at 500 to 700 constraints, 25 to 90 times from 1,500 on (but not in the Frobenius norm)."""
_START_TOLERANCE = 0.1
"""Gap of a Frobenius solution from which constraint generation starts in another norm."""
_LARGEST, _LARGEST_LINEAR = 1.5, 2.5
"""Constraints per unknown in working sets: in general, and where their number costs little."""


def is_large(constraints: int) -> bool:
    """Whether an instance of so many constraints is solved without a Gram matrix."""
    return constraints > _MOST_DENSE


def has_few_unknowns(constraints: int, shape: tuple[int, int], geometry: Geometry) -> bool:
    """Whether few of its constraints at a time are solved for, though all would not be too many."""
    # Of a vector, every Schatten norm is that of Frobenius.
    is_frobenius = geometry == Frobenius() or (min(shape) == 1 and has_norm_of(geometry, Schatten))
    return (
        _FEWEST_GENERATED <= constraints <= _MOST_DENSE
        and _is_known(geometry)
        and not is_frobenius
        and is_overdetermined(constraints, shape, geometry)
    )


def _is_known(geometry: Geometry) -> bool:
    return has_norm_of(geometry, Lp) or has_norm_of(geometry, Schatten)


def check_memory(problem: MarginProblem) -> None:
    """Refuses a problem whose solution does not fit into memory.

    Raises:
        InvalidInputError: With the memory it takes, and the number of constraints that would fit.
    """
    (d, e), m = problem.shape, problem.bounds.shape[-1]
    instances = problem.instances or 1

    def remedy(available: float) -> str:
        sizes = range(_MOST_DENSE + 1)
        fitting = bisect.bisect_right(sizes, available, key=lambda n: _bytes(n, d, e, instances))
        if fitting > _MOST_DENSE:
            sizes = range(_MOST_DENSE + 1, m + 1)
            fitting += bisect.bisect_right(
                sizes, available, key=lambda n: _bytes(n, d, e, instances)
            )
        if fitting <= 1:
            return f"Not even one constraint on a {d} x {e} matrix would fit; take smaller vectors"
        return (
            f"With matrices of that size, about {fitting - 1:,} constraints would fit; take fewer, "
            "or vectors of a lower dimension"
        )

    require_memory(
        "problem",
        f"solving {m:,} constraints on a {d} x {e} matrix",
        needed=_bytes(m, d, e, instances),
        remedy=remedy,
    )


def _bytes(m: int, d: int, e: int, instances: int) -> float:
    """Memory taken beyond that of the problem."""
    matrices = 8.0 * d * e * (15 + 2 * instances)
    if is_large(m):  # scaled vectors, a copy of those that are free, blocks, other vectors
        return matrices + 8.0 * m * (2 * d + e + 464)
    return matrices + 8.0 * m * (2 * d + 2 * e + 6 * m)


def solve_large(
    scaled: ScaledConstraints,
    geometry: Geometry,
    tolerance: float,
    progress: ProgressBar,
    dense: tuple[Method, ...],
    *,
    first: tuple[Method, ...] = (),
    own: tuple[Method, ...] | None = None,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Certificate, np.ndarray]:
    """Tries the methods for many constraints on one instance; returns what ``attempt`` does.

    Args:
        scaled: The constraints of one instance.
        geometry: The norm.
        tolerance: Relative duality gap to reach.
        progress: Is moved on by one in all, as the gap falls.
        dense: Methods that hold a Gram matrix, tried last where there are not too many for one.
        first: Methods to try before those for many constraints.
        own: Methods of the user's own in place of those for many constraints.
        start: Multipliers that the first method is handed, in the units of ``scaled``.
    """
    done = 0.0

    def report(stage: int, gap: float) -> None:
        nonlocal done
        progress.note(f"stage {stage}, gap {gap:.1e}")
        share = np.log(min(gap, 1.0)) / np.log(min(tolerance, 0.1)) if gap > 0 else 1.0
        if share > done:
            progress(min(share, 1.0) - done)
            done = min(share, 1.0)

    shape = scaled.left.shape[-1], scaled.right.shape[-1]
    overdetermined = is_overdetermined(scaled.bounds.shape[-1], shape, geometry)
    last = () if is_large(scaled.bounds.shape[-1]) else dense
    known = large_methods_of(geometry, report, own, overdetermined=overdetermined, last=last)
    found = attempt(scaled, geometry, (*first, *known), tolerance, start)
    progress(1.0 - done)
    return found


def large_methods_of(
    geometry: Geometry,
    report: Report,
    own: tuple[Method, ...] | None = None,
    *,
    overdetermined: bool = False,
    last: tuple[Method, ...] = (),
) -> tuple[Method, ...]:
    """The methods of a geometry for one large instance, in the order to try them.

    Args:
        geometry: The norm.
        report: Callback, called at the end of every stage.
        own: Methods of the user's own, in place of those known for the geometry.
        overdetermined: Whether there are far more constraints than unknowns.
        last: Methods in place of those for all constraints at a time.
    """
    methods = methods_for(geometry) if own is None else own
    dense = methods_for(Frobenius())
    if methods == dense:
        whole: list[Method] = [
            functools.partial(solve_by_augmented_lagrangian, settings=settings, report=report)
            for settings in (AGGRESSIVE, CONSERVATIVE)
        ]
        few = [_generate(dense, report, started=False)] if overdetermined else []
        return (*few, *whole)

    def report_start(stage: int, gap: float) -> None:
        report(stage, np.inf)  # the gap in the Frobenius norm is none in this geometry

    start: Method
    start = functools.partial(
        solve_by_augmented_lagrangian, settings=AGGRESSIVE, report=report_start
    )
    first: list[Method] = [start]
    if overdetermined:
        first = [functools.partial(_generate_start, otherwise=start, report=report_start)]
    if overdetermined and own is None:
        first.append(_generate(methods, report, started=True))
        if isinstance(geometry, Lp) and geometry.p in (1, np.inf):
            linear = (solve_by_largest_margin,)
            first.insert(0, _generate(linear, report, started=False, largest=_LARGEST_LINEAR))
    if last:
        return *first, *last
    if own is None and _is_known(geometry):
        return *first, functools.partial(solve_by_proximal_newton, report=report)
    return *first, *methods  # those that know the norm, at any size


def _generate(
    methods: tuple[Method, ...], report: Report, *, started: bool, largest: float = _LARGEST
) -> Method:
    """Constraint generation with methods for the working set."""
    return functools.partial(
        solve_by_constraint_generation,
        methods=methods,
        report=report,
        started=started,
        largest=largest,
    )


def _generate_start(task: Task, otherwise: Method, report: Report) -> Candidates:
    """A matrix near the Frobenius solution, by constraint generation or else by another method."""
    scaled, tolerance = task.scaled, max(task.tolerance, _START_TOLERANCE)
    generate = _generate(methods_for(Frobenius()), report, started=False)
    W, x = generate(replace(task, geometry=Frobenius(), tolerance=tolerance))
    if not x.any():
        return otherwise(task)
    size = float(task.geometry.dual_norm(scaled.combine(x))[0])
    return W, x / (size if np.isfinite(W).all() and size > 0 else 1.0)

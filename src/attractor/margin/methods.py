"""The methods that solve margin problems, by geometry: their contract, and how they are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from attractor.geometry import Geometry, has_norm_of
from attractor.geometry.duality import check_duality
from attractor.margin.batching.batches import Batch, inner_products
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import (
    Certificate,
    certify_scaled,
    rounding_of_margins,
)
from attractor.margin.certificates.contradiction import proved_multipliers
from attractor.support.errors import InvalidInputError, Status

Candidates: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Matrices ``(instances, d, e)`` and multipliers ``(instances, m)`` of a scaled batch."""


@dataclass(frozen=True)
class Task(Batch):
    """The problems that a method is to solve, and the best answers so far.

    Attributes:
        scaled: The constraints of a batch.
        geometry: The norm that is to be smallest.
        tolerance: Relative duality gap to reach.
        W: Best matrices so far, in the units of ``scaled``; NaN where there is none. In every
            geometry but Frobenius the first are Frobenius solutions.
        multipliers: Best multipliers so far; zero where there are none.
    """

    scaled: ScaledConstraints
    geometry: Geometry
    tolerance: float
    W: Float[np.ndarray, "instances d e"]
    multipliers: Float[np.ndarray, "instances m"]

    @property
    def warm_started(self) -> Int[np.ndarray, "k"]:
        """Instances whose start is finite and not zero; where it is zero, zero is the solution."""
        return np.flatnonzero(np.isfinite(self.W).all((-1, -2)) & self.W.any((-1, -2)))


Method: TypeAlias = Callable[[Task], Candidates]
"""From a task to candidates.

Where a method finds the constraints contradictory it returns a W of NaN and Farkas multipliers,
of any scale; elsewhere multipliers are scaled to ``||sum_j lambda_j a_j b_j^T||_dual = 1``.
Where it finds neither it returns a W of NaN and zero multipliers. It does not judge its answer:
that is for the certificate.
"""

MethodTable: TypeAlias = Callable[[Geometry], tuple[Method, ...]]
"""From a geometry of one class to its methods, cheapest first."""

_TABLES: dict[type[Geometry], MethodTable] = {}


def register_methods(geometry: type[Geometry], table: MethodTable) -> None:
    """Sets the methods of a class of geometries, and of those derived from it that keep its norm.

    Each later method is tried only on the instances whose certificate is not yet tight enough.
    """
    _TABLES[geometry] = table


def methods_for(geometry: Geometry) -> tuple[Method, ...]:
    """The methods of a geometry: those of its class, or of the next above it that has any.

    Raises:
        InvalidInputError: If margin problems cannot be solved in it, or norm and dual norm of a
            geometry of the user's own do not belong together.
    """
    own = type(geometry)
    kind = next((kind for kind in own.__mro__ if kind in _TABLES), None)
    if not is_of_library(geometry):
        check_duality(geometry)
    if kind is not None and has_norm_of(geometry, kind):
        return _TABLES[kind](geometry)
    why = "" if kind is None else f", which overrides the norm of {kind.__name__}"
    known = ", ".join(sorted(kind.__name__ for kind in _TABLES))
    raise InvalidInputError(
        "geometry",
        f"no solver is known for {own.__module__}.{own.__qualname__}{why}",
        "Give a geometry of one of these classes, or of one derived from them that keeps its "
        f"norm: {known}; or name its solver, attractor.margin.register_methods({own.__name__})",
    )


def is_of_library(geometry: Geometry) -> bool:
    """Whether a norm is one of ours, and not of the user's own."""
    return type(geometry).__module__.partition(".")[0] == __name__.partition(".")[0]


_EPS = np.finfo(np.float64).eps
_NEARLY_VANISHED = 1e-6
"""Rest of a combination, relative to its terms, from which on exact multipliers are looked for."""


def attempt(
    scaled: ScaledConstraints,
    geometry: Geometry,
    methods: tuple[Method, ...],
    tolerance: float,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Certificate, np.ndarray]:
    """Tries methods in turn on what is not yet certified; keeps the best of each instance.

    Args:
        scaled: The constraints of a batch.
        geometry: The norm.
        methods: The methods, in the order to try them.
        tolerance: Relative duality gap to reach.
        start: Multipliers that the first method is handed, in the units of ``scaled``.

    Returns:
        W and multipliers in the units of ``scaled``, which those of the given problem hold
        exactly, their certificate, and the status of each instance.
    """
    count, m, d = scaled.left.shape
    W = np.full((count, d, scaled.right.shape[-1]), np.nan)
    multipliers = np.zeros((count, m)) if start is None else start
    status = np.full(count, Status.STOPPED_EARLY, dtype=object)
    best: Certificate | None = None
    for method in methods:
        open_ = np.flatnonzero(is_open(status))
        if best is not None and not open_.size:
            break
        part = scaled if open_.size == count else scaled.choose(open_)
        active = part if best is None else _without_inactive(part, geometry, best.value[open_])
        found = _try(method, Task(active, geometry, tolerance, W[open_], multipliers[open_]), part)
        if best is None:
            W, multipliers, best, status = found
            continue
        new_W, new_multipliers, new, new_status = found
        better = _better(new, new_status, best[open_])
        chosen, of = open_[better], np.flatnonzero(better)
        W[chosen], multipliers[chosen] = new_W[of], new_multipliers[of]
        status[chosen] = new_status[of]
        best = best.replaced(chosen, new[of])
    assert best is not None
    return W, multipliers, best, status


def _without_inactive(
    scaled: ScaledConstraints, geometry: Geometry, value: np.ndarray
) -> ScaledConstraints:
    """The constraints less those that no matrix of twice the norm of the incumbent comes near.

    Bounds far below all others would set the scale of a method's arithmetic to no purpose.
    """
    constant = geometry.dual_norm_constant(scaled.left.shape[-1], scaled.right.shape[-1])
    with np.errstate(invalid="ignore"):  # zero times infinity, where there is no incumbent
        reach = 2 * constant * scaled.norms * np.ldexp(value, -scaled.unit)[:, None]
    inactive = scaled.inequality & (scaled.bounds <= -reach)
    return scaled.without(inactive) if inactive.any() else scaled


def _try(
    method: Method, task: Task, scaled: ScaledConstraints
) -> tuple[np.ndarray, np.ndarray, Certificate, np.ndarray]:
    """W, multipliers, what they prove of all constraints, and the status, by one method."""
    geometry = task.geometry
    W, x = _call(method, task)
    x = np.where(task.scaled.present, x, 0.0)
    W, x = _representable(scaled, W, x)
    certificate = certify_scaled(scaled, W, x, geometry)
    useless = np.isfinite(certificate.norm) & scaled.scalable & ~(certificate.margin > 0)
    proved = np.zeros(len(W), dtype=bool)
    for i in np.flatnonzero((np.isnan(certificate.norm) | useless) & (certificate.dual_value > 0)):
        if certificate.relative_farkas_residual[i] <= _NEARLY_VANISHED:
            exact = proved_multipliers(scaled, int(i), x[i])
            if exact is not None:
                proved[i], x[i] = True, exact
    if (useless | proved).any():  # no multiple of W satisfies the constraints
        W[useless | proved] = np.nan
        x[proved] = _representable(scaled, W, x)[1][proved]
        certificate = certify_scaled(scaled, W, x, geometry)
    status = status_of(scaled, certificate, geometry, task.tolerance)
    status[proved] = Status.INFEASIBLE
    return W, x, certificate, status


def _call(method: Method, task: Task) -> Candidates:
    """A method's answer; an instance it fails on gets none, and harms no other."""
    try:
        W, multipliers = method(task)
    except np.linalg.LinAlgError:
        count = len(task.W)
        if count == 1:
            return np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
        halves = [
            _call(method, task.choose(half)) for half in (np.s_[: count // 2], np.s_[count // 2 :])
        ]
        W, multipliers = (np.concatenate(parts) for parts in zip(*halves, strict=True))
    shapes, wanted = (np.shape(W), np.shape(multipliers)), (task.W.shape, task.multipliers.shape)
    if shapes != wanted:
        raise InvalidInputError(
            "methods",
            f"{getattr(method, '__name__', method)} returned arrays of the shapes {shapes}",
            f"Return matrices and multipliers of the shapes {wanted}",
        )
    return W, multipliers


def _representable(scaled: ScaledConstraints, W: np.ndarray, x: np.ndarray) -> Candidates:
    """Candidates rounded to what the given units hold, in scaled units.

    Without a matrix multipliers are scaled to ``sum_j c_j lambda_j = 1`` in given units.
    """
    given, multipliers = scaled.restore(W, x)
    total = inner_products(scaled.bounds, x)
    alone = np.isnan(given).any((-1, -2)) & (total > 0)
    exponent = -scaled.unit[alone, None] - scaled.shift[alone]
    with np.errstate(over="ignore"):
        multipliers[alone] = np.ldexp(x[alone] / total[alone, None], exponent)
    W, x = scaled.scale(given, multipliers)
    return W, np.where(np.isfinite(x), x, 0.0)  # infinite ones would spoil what others prove


def is_open(status: np.ndarray) -> np.ndarray:
    """Where an answer is neither certified nor known not to exist."""
    return (status == Status.STOPPED_EARLY) | (status == Status.OUT_OF_REACH)


def status_of(
    scaled: ScaledConstraints, certificate: Certificate, geometry: Geometry, tolerance: float
) -> np.ndarray:
    """The status of each instance that a certificate proves, but for a contradiction.

    Args:
        scaled: The constraints of a batch.
        certificate: Certificates of matrices and multipliers.
        geometry: The norm.
        tolerance: Relative duality gap to reach.
    """
    count, rows, columns = len(scaled.left), scaled.left.shape[-1], scaled.right.shape[-1]
    rounding = rounding_of_margins(rows, columns)
    constraints = scaled.present.sum(-1)
    # A sum of constraints that vanishes but for rounding is that small in the Frobenius norm.
    vanished = 4 * constraints * _EPS * geometry.dual_norm_constant(rows, columns)
    none = np.isnan(certificate.norm)
    vanishing = certificate.relative_farkas_residual <= vanished
    optimal = (
        ~none
        & (certificate.gap <= tolerance)
        & (certificate.violation <= max(rounding, tolerance))
        & (certificate.loose_violation <= rounding)
    )
    status = np.full(count, Status.STOPPED_EARLY, dtype=object)
    status[none & vanishing & (certificate.dual_value > 0)] = Status.OUT_OF_REACH
    status[optimal] = Status.OPTIMAL
    return status


def _better(new: Certificate, status: np.ndarray, old: Certificate) -> np.ndarray:
    """Where a new answer proves more than the incumbent, which is not tight enough.

    Of two that prove no gap, the one that comes nearer to meeting the constraints.
    """
    better = ~is_open(status)
    tied = np.ones(len(status), dtype=bool)
    for one, other in (
        (new.gap, old.gap),
        (new.violation, old.violation),
        (-new.dual_value, -old.dual_value),
    ):
        better |= tied & (one < other)
        tied &= one == other
    return better

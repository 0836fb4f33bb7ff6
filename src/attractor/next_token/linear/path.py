"""The regularization path of a linear decoder: where the loss is least over growing balls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from attractor.blas import single_blas_thread
from attractor.errors import InvalidInputError, Status, TrialStatus
from attractor.margin import solve
from attractor.next_token.linear.contexts import Contexts
from attractor.next_token.linear.cross_entropy import log_excess_of, rows_of, targets_of
from attractor.next_token.linear.path_coordinates import PathCoordinates
from attractor.next_token.linear.problem import decoder_problem
from attractor.next_token.linear.train import check_contexts
from attractor.next_token.linear.trajectory import LinearTrajectory, linear_data
from attractor.precision import double_precision
from attractor.progress import progress_bar
from attractor.training.measurements import Records
from attractor.training.paths.checks import check_radii, check_tolerance

_FACTOR = 2.0
"""Largest ratio of a radius to the one before, on the way to those asked for."""
_SMALL = 0.1
"""Range of logits below which the loss is all but linear."""
_STEPS = 400
_HALVINGS = 6
_NEAR = 1e-2
"""Range of logits of a Newton step below which the next one is far shorter, but for rounding."""
_ARRIVED = 1e-5
"""Relative length of a Newton step that is left below which the next radius can be tried."""
_DESCRIPTIONS = {
    "log_multiplier": "logarithm of the multiplier of the ball: minus the gradient over W",
    "optimality": "relative length of the Newton step that is left",
    "kkt_residual": "||grad CE + lambda W|| / (lambda B) beyond the subspace of the supports",
}


class _Point(NamedTuple):
    """The minimizer over one ball; see ``PathCoordinates`` for a and b."""

    radius: float
    a: Float[np.ndarray, "f"]
    b: Float[np.ndarray, "g"]
    log_multiplier: float
    optimality: float
    kkt_residual: float
    steps: int


def linear_regularization_path(
    contexts: Contexts, *, radii: Any = None, tolerance: float = 1e-8, progress: bool = False
) -> LinearTrajectory:
    """Minimizes the cross-entropy over Frobenius balls of growing radius.

        W(B) = argmin CE(W)   subject to   ||W||_F <= B

    The problem is convex, and on separable data its only solution lies on the sphere, where
    ``grad CE(W) = -lambda W``. Its direction tends to that of the ``decoder_problem``, and its
    projection on the subspace F of the supports to ``finite_part``; where data are not compatible,
    to the matrix of F with the least loss within the supports.

    Found by Newton's method with the exact Hessian, in coordinates that tell F from its
    complement and measure the latter in units of lambda: radii at which the loss is e^-5000 above
    its infimum are as exact as others. Steps are shortened by the range of logits that they span,
    as suits generalized self-concordant functions (Sun and Tran-Dinh 2019).

    Args:
        contexts: The data sets, separable.
        radii: Increasing radii; default: 17, evenly spread over the logarithm from 1 to 10^4.
        tolerance: ``optimality`` up to which a point counts as the minimizer; a data set that
            exceeds it at some radius has the status ``UNCONVERGED``.
        progress: Whether to show a progress bar.

    Returns:
        A trajectory along ``radius`` with ``loss``, ``excess_loss``, ``log_excess_loss``,
        ``norm``, ``W``; ``log_multiplier``, the logarithm of lambda; ``kkt_residual``,
        ``||grad CE + lambda W|| / (lambda B)`` in the complement of F, a bound on the distance
        over B from the minimizer given the part in F; and ``optimality``, the larger of the length
        over B of the Newton step that is left, which tells of F, too, and the relative change of
        log lambda that goes with it. In F the gradient is a difference of probabilities of
        ordinary size, whose rounding exceeds small lambda. ``steps_taken`` counts Newton steps.
        Where embeddings differ in length by orders of magnitude, Newton's method may lose the
        path: everything is NaN from there on, and ``optimality`` infinite.

    Raises:
        InvalidInputError: If an argument cannot be used, a data set is not separable, or a decoder
            has more than 4,000 unknowns.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), regularization path.
    """
    check_contexts(contexts)
    radii, tolerance = check_radii(radii), check_tolerance(tolerance)
    whole = contexts.batched()
    coordinates = [PathCoordinates(one) for one in whole]
    _check_separable(whole)
    found: list[list[_Point]] = []
    with single_blas_thread(), progress_bar("path", len(whole), enabled=progress) as advance:
        for each in coordinates:
            found.append(list(_follow(each, radii)))
            advance(1)
    series = _series(whole, coordinates, found)
    settled = (series["optimality"] <= tolerance).all(-1)
    records = Records(
        series,
        np.where(settled, TrialStatus.TRAINED, TrialStatus.UNCONVERGED).astype(np.int32),
        np.array([sum(point.steps for point in points) for points in found]),
    )
    data = linear_data(records, whole.instance_numbers, np.arange(1), radii, "radius")
    for name, description in _DESCRIPTIONS.items():
        data[name].attrs["description"] = description
    return LinearTrajectory(
        data, contexts, "regularization path", "frobenius", {"tolerance": tolerance}
    )


def _check_separable(contexts: Contexts) -> None:
    if contexts.support.all((-1, -2)).any():
        raise InvalidInputError(
            "contexts",
            "there is a data set whose tokens all follow every context, so that its path ends at "
            "the finite part",
            "Give contexts that some token does not follow",
        )
    status = np.asarray(solve(decoder_problem(contexts)).status)
    wrong = np.flatnonzero(status != Status.OPTIMAL)
    if len(wrong):
        raise InvalidInputError(
            "contexts",
            f"data set {wrong[0]} is not separable: its margin problem is {status[wrong[0]]}",
            "Give separable contexts; separability(contexts) tells which are",
        )


def _follow(coordinates: PathCoordinates, radii: Float[np.ndarray, "radius"]) -> Iterator[_Point]:
    """Minimizers at increasing radii, each found from those before."""
    a, b = coordinates.steepest()
    size = np.hypot(np.linalg.norm(a), np.linalg.norm(b))
    radius = min(_SMALL * size / coordinates.logit_range(a, b), float(radii[0]))
    log_multiplier = float(np.log(size / radius))
    zero = _Point(0.0, -coordinates.finite, 0 * b, log_multiplier, np.inf, np.inf, 0)
    share = radius / size
    start = zero._replace(radius=radius, a=zero.a + share * a, b=share * b)
    before, last = zero, _correct(coordinates, start, radius)
    for target in radii:
        steps = 0
        while last.radius < target and last.optimality <= _ARRIVED:
            radius = min(_FACTOR * last.radius, float(target))
            point = _reach(coordinates, before, last, radius, _HALVINGS)
            steps += point.steps
            before, last = last, point
        if last.optimality > _ARRIVED:  # lost, and with it all that lies beyond
            last = last._replace(a=np.nan * a, b=np.nan * b, optimality=np.inf)
        yield last._replace(steps=steps)


def _reach(
    coordinates: PathCoordinates, before: _Point, last: _Point, radius: float, halvings: int
) -> _Point:
    """The minimizer at a radius, by way of one between where Newton's method fails."""
    point = _correct(coordinates, _predict(before, last, radius), radius)
    if point.optimality <= _ARRIVED or not halvings:
        return point
    middle = _reach(coordinates, before, last, np.sqrt(last.radius * radius), halvings - 1)
    steps = point.steps + middle.steps
    if middle.optimality > _ARRIVED:
        return middle._replace(steps=steps)
    found = _reach(coordinates, last, middle, radius, halvings - 1)
    return found._replace(steps=steps + found.steps)


def _predict(before: _Point, last: _Point, radius: float) -> _Point:
    """A point on the line through the last two, as the path is a line in the end."""
    share = (radius - last.radius) / (last.radius - before.radius)
    a = last.a + share * (last.a - before.a)
    b = last.b + share * (last.b - before.b)
    rise = last.log_multiplier - before.log_multiplier
    return _Point(radius, a, b, last.log_multiplier + share * rise, np.inf, np.inf, 0)


@np.errstate(over="ignore", invalid="ignore")  # of points too far off, which are given up
def _correct(coordinates: PathCoordinates, start: _Point, radius: float) -> _Point:
    """Newton's method for a point and the multiplier that puts it on the sphere."""
    a, b, log_multiplier = start.a, start.b, start.log_multiplier
    best = start._replace(radius=radius)
    for step in range(_STEPS):
        try:
            found = coordinates.step(a, b, log_multiplier)
        except (np.linalg.LinAlgError, ValueError):
            return best._replace(steps=step)
        whole = coordinates.finite + a
        growth = float(whole @ found.moved_inside + b @ found.moved_outside)
        if not growth < 0:  # the norm falls as the multiplier grows
            return best._replace(steps=step)
        short = (radius**2 - whole @ whole - b @ b) / 2
        change = float(short - whole @ found.inside - b @ found.outside) / growth
        to_a = found.inside + change * found.moved_inside
        to_b = found.outside + change * found.moved_outside
        moved = float(np.hypot(np.linalg.norm(to_a), np.linalg.norm(to_b))) / radius
        left = max(moved, abs(change) / max(1.0, abs(log_multiplier)))
        if not np.isfinite(left):
            return best._replace(steps=step)
        reach = max(coordinates.logit_range(to_a, to_b), abs(change))
        if reach < _NEAR and left > best.optimality / 2:
            return best._replace(steps=step)  # rounding is all that still moves it
        best = _Point(radius, a, b, log_multiplier, left, found.residual / radius, step)
        share = np.log1p(reach) / reach if reach > 0 else 1.0
        a, b, log_multiplier = a + share * to_a, b + share * to_b, log_multiplier + share * change
    return best._replace(steps=_STEPS)


def _series(
    contexts: Contexts, coordinates: list[PathCoordinates], found: list[list[_Point]]
) -> dict[str, np.ndarray]:
    """Everything recorded, over (instance, radius, ...)."""
    W = np.array(
        [
            [each.matrix(point.a, point.b) for point in points]
            for each, points in zip(coordinates, found, strict=True)
        ]
    )
    with double_precision():
        log_excess = np.asarray(_log_excess(W, targets_of(contexts)))
    excess = np.exp(log_excess)

    def column(name: str) -> np.ndarray:
        return np.array([[getattr(point, name) for point in points] for points in found])

    return {
        "loss": contexts.entropy[:, None] + excess,
        "excess_loss": excess,
        "log_excess_loss": log_excess,
        "norm": np.linalg.norm(W, axis=(-1, -2)),
        "log_multiplier": column("log_multiplier"),
        "optimality": column("optimality"),
        "kkt_residual": column("kkt_residual"),
        "W": W,
    }


@jax.jit
def _log_excess(W: Any, targets: Any) -> Any:
    def one(W: Any, targets: Any) -> Any:
        return log_excess_of(rows_of(W, targets), targets)

    return jax.vmap(lambda many, own: jax.vmap(lambda W: one(W, own))(many))(W, targets)

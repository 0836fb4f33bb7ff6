"""The regularization path of a linear decoder: where the loss is least over growing balls.

A minimizer over a ball lies in the span of the embeddings and has columns of sum zero. What is
left splits into the subspace F of the supports, which determines the odds within them, and its
complement, in which all tokens of a support move together and only those outside move against
them. The loss outside is e^-B in the radius B: measured in the multiplier of the ball, which is as
small, every number of these coordinates is of ordinary size at any radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Float

from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.corpora.linear.supports import anchors, reduced_embeddings, support_space
from attractor.corpora.linear.train import check_contexts, log_excess_of, rows_of, targets_of
from attractor.corpora.linear.trajectory import LinearTrajectory, decoder_problem, linear_data
from attractor.margin import solve
from attractor.support.blas import single_blas_thread
from attractor.support.errors import InvalidInputError, Status, TrialStatus
from attractor.support.precision import double_precision
from attractor.support.progress import progress_bar
from attractor.training.measurements import Records
from attractor.training.paths.checks import check_radii, check_tolerance

_FACTOR = 2.0
"""Largest ratio of a radius to the one before, on the way to those requested."""
_SMALL = 0.1
"""Range of logits below which the loss is all but linear."""
_STEPS = 400
_HALVINGS = 6
_NEAR = 1e-2
"""Range of logits of a Newton step below which the next one is far shorter, but for rounding."""
_CONVERGED = 1e-5
"""Relative length of the remaining Newton step below which the next radius can be tried."""
_DESCRIPTIONS = {
    "log_multiplier": "logarithm of the multiplier of the ball: minus the gradient over W",
    "optimality": "relative length of the Newton step that is left",
    "kkt_residual": "||grad CE + lambda W|| / (lambda B) beyond the subspace of the supports",
}
_COMPATIBLE = 1e-9
"""Log-odds that the finite part lacks, relative to one plus the largest, which count as none."""
_LARGEST = 4000
"""Unknowns up to which Newton's systems are affordable."""


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
    contexts: EmbeddedContexts,
    *,
    radii: Any = None,
    tolerance: float = 1e-8,
    progress: bool = False,
) -> LinearTrajectory:
    """Minimizes the cross-entropy over Frobenius balls of growing radius.

        W(B) = argmin CE(W)   subject to   ||W||_F <= B

    The problem is convex, and on separable data its only solution lies on the sphere, where
    ``grad CE(W) = -lambda W``. Its direction tends to that of the ``decoder_problem``, and its
    projection on the subspace F of the supports to ``finite_part``; where data are not compatible,
    to the matrix of F with the least loss within the supports.

    Found by Newton's method with the exact Hessian, in coordinates that separate F from its
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
        over B of the remaining Newton step, which includes F, and the relative change of
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
    converged = (series["optimality"] <= tolerance).all(-1)
    records = Records(
        series,
        np.where(converged, TrialStatus.TRAINED, TrialStatus.UNCONVERGED).astype(np.int32),
        np.array([sum(point.steps for point in points) for points in found]),
    )
    data = linear_data(records, whole.instance_numbers, np.arange(1), radii, "radius")
    for name, description in _DESCRIPTIONS.items():
        data[name].attrs["description"] = description
    return LinearTrajectory(
        data, contexts, "regularization path", "frobenius", {"tolerance": tolerance}
    )


def _check_separable(contexts: EmbeddedContexts) -> None:
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
        while last.radius < target and last.optimality <= _CONVERGED:
            radius = min(_FACTOR * last.radius, float(target))
            point = _reach(coordinates, before, last, radius, _HALVINGS)
            steps += point.steps
            before, last = last, point
        if last.optimality > _CONVERGED:  # the path is lost, and so are all larger radii
            last = last._replace(a=np.nan * a, b=np.nan * b, optimality=np.inf)
        yield last._replace(steps=steps)


def _reach(
    coordinates: PathCoordinates, before: _Point, last: _Point, radius: float, halvings: int
) -> _Point:
    """The minimizer at a radius, by way of one between where Newton's method fails."""
    point = _correct(coordinates, _predict(before, last, radius), radius)
    if point.optimality <= _CONVERGED or not halvings:
        return point
    middle = _reach(coordinates, before, last, np.sqrt(last.radius * radius), halvings - 1)
    steps = point.steps + middle.steps
    if middle.optimality > _CONVERGED:
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


@np.errstate(over="ignore", invalid="ignore")  # of points too far off, which are abandoned
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
            return best._replace(steps=step)  # converged to rounding
        best = _Point(radius, a, b, log_multiplier, left, found.residual / radius, step)
        share = np.log1p(reach) / reach if reach > 0 else 1.0
        a, b, log_multiplier = a + share * to_a, b + share * to_b, log_multiplier + share * change
    return best._replace(steps=_STEPS)


def _series(
    contexts: EmbeddedContexts, coordinates: list[PathCoordinates], found: list[list[_Point]]
) -> dict[str, np.ndarray]:
    """All records, over (instance, radius, ...)."""
    W = np.array(
        [
            [each.matrix(point.a, point.b) for point in points]
            for each, points in zip(coordinates, found, strict=True)
        ]
    )
    with double_precision():
        log_excess = np.asarray(_log_excess(W, targets_of(contexts)))
    excess = np.exp(log_excess)
    return {
        "loss": contexts.entropy[:, None] + excess,
        "excess_loss": excess,
        "log_excess_loss": log_excess,
        "norm": np.linalg.norm(W, axis=(-1, -2)),
        **{
            name: np.array([[getattr(point, name) for point in points] for points in found])
            for name in _DESCRIPTIONS
        },
        "W": W,
    }


@jax.jit
def _log_excess(W: Any, targets: Any) -> Any:
    def one(W: Any, targets: Any) -> Any:
        return log_excess_of(rows_of(W, targets), targets)

    return jax.vmap(lambda many, own: jax.vmap(lambda W: one(W, own))(many))(W, targets)


class Step(NamedTuple):
    """Newton's step at a point, and how the solution moves with the multiplier.

    Attributes:
        inside: Step in F.
        outside: Step in the complement.
        moved_inside: Derivative of the solution in F by the logarithm of the multiplier.
        moved_outside: Derivative in the complement.
        residual: Length of ``grad CE / lambda + W`` in the complement.
    """

    inside: Float[np.ndarray, "f"]
    outside: Float[np.ndarray, "g"]
    moved_inside: Float[np.ndarray, "f"]
    moved_outside: Float[np.ndarray, "g"]
    residual: float


class PathCoordinates:
    """``CE(W) + lambda ||W||^2 / 2`` of one data set, with W as coordinates in F and beyond.

    Those in F are measured from the finite part, at which the odds within supports are met: what
    is left of them is then known to its own rounding, and rare tokens beside likely ones are.

    Attributes:
        inside: Orthonormal matrices that span F, ``(f, V, d)``.
        outside: Orthonormal matrices that span the complement, ``(g, V, d)``.
        finite: Coordinates of the finite part in F.
    """

    def __init__(self, contexts: EmbeddedContexts) -> None:
        """Finds the coordinates.

        Args:
            contexts: A single data set, without an axis of instances.

        Raises:
            InvalidInputError: If there are too many unknowns.
        """
        V = contexts.classes
        _, span = reduced_embeddings(contexts.embeddings)
        unknowns = (V - 1) * len(span)
        if unknowns > _LARGEST:
            raise InvalidInputError(
                "contexts",
                f"a decoder has {unknowns:,} unknowns: tokens less one, times the rank of the "
                "embeddings",
                f"Give a problem of {_LARGEST:,} at most",
            )
        self.contexts, self.best = contexts, anchors(contexts)
        space = support_space(contexts)
        self.inside = space.basis
        self.finite = np.tensordot(space.basis, space.solution, 2)
        balanced = scipy.linalg.null_space(np.ones((1, V)))
        whole = np.einsum("vk,rd->krvd", balanced, span).reshape(unknowns, V, -1)
        found = np.einsum("kvd,fvd->kf", whole, self.inside)
        rest = np.linalg.qr(found, mode="complete")[0][:, len(self.inside) :]
        self.outside = np.einsum("kg,kvd->gvd", rest, whole)
        self.context, self.token = np.nonzero(~contexts.support)
        self._inside_logits = np.einsum("md,fvd->mvf", contexts.embeddings, self.inside)
        outside_logits = np.einsum("md,gvd->mvg", contexts.embeddings, self.outside)
        self._lacking = self._odds_lacking()
        supports = outside_logits[np.arange(contexts.count), self.best]
        self._rise = outside_logits[self.context, self.token] - supports[self.context]

    def matrix(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]
    ) -> Float[np.ndarray, "V d"]:
        """The decoder of coordinates."""
        return self.move(self.finite + a, b)

    def move(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]
    ) -> Float[np.ndarray, "V d"]:
        """The difference of two decoders whose coordinates differ by so much."""
        beyond = np.tensordot(b, self.outside, 1)
        # The basis is orthogonal to F up to rounding, which matters where b is large.
        a = a - np.tensordot(self.inside, beyond, 2)
        return np.tensordot(a, self.inside, 1) + beyond

    def logit_range(self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]) -> float:
        """The largest difference that a move makes between two logits of one context."""
        logits = self.contexts.embeddings @ self.move(a, b).T
        return float(np.ptp(logits, axis=-1).max())

    def steepest(self) -> tuple[Float[np.ndarray, "f"], Float[np.ndarray, "g"]]:
        """The direction of descent at zero."""
        contexts = self.contexts
        slope = contexts.probabilities - 1 / contexts.classes
        slope = slope.T @ (contexts.frequencies[:, None] * contexts.embeddings)
        return np.tensordot(self.inside, slope, 2), np.tensordot(self.outside, slope, 2)

    def step(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"], log_multiplier: float
    ) -> Step:
        """Newton's step towards the minimum of ``CE + lambda ||W||^2 / 2``.

        With ``omega = pi q t / lambda`` the probabilities of tokens outside in units of lambda,
        and D the rise of their logits above the support, the part in the complement reads

            D^T omega + b = 0,

        at any lambda. In F the loss itself is of ordinary size.

        Raises:
            LinAlgError: If the point is so far off that its Hessian is not positive definite.
            ValueError: If it is so far off that a number is not finite.
        """
        frequencies, (context, token) = self.contexts.frequencies, (self.context, self.token)
        multiplier = np.exp(log_multiplier)
        within, s, kept, log_outside = self._softmax(a, b)
        omega = np.exp(np.log(frequencies)[context] + log_outside - log_multiplier)
        share = np.exp(log_outside)
        # The softmax, and the softmax less p, each from parts that do not cancel.
        full, pull = s * kept[:, None], within - s * (1 - kept)[:, None]
        full[context, token] = pull[context, token] = share

        mean = np.einsum("mv,mvf->mf", full, self._inside_logits)
        spread = self._inside_logits - mean[:, None]
        rows = (spread * np.sqrt(frequencies[:, None] * full)[..., None]).reshape(full.size, len(a))
        inner = rows.T @ rows
        slope = np.einsum("m,mv,mvf->f", frequencies, pull, self._inside_logits)
        cross = (spread[context, token] * omega[:, None]).T @ self._rise
        sums = self._per_context(self._rise * omega[:, None])
        rise = self._rise - (multiplier / frequencies)[context, None] * sums[context]
        sums *= np.sqrt(kept * multiplier / frequencies)[:, None]
        outer = (rise * omega[:, None]).T @ rise + sums.T @ sums

        # Block elimination: F first, then its Schur complement, in units of the multiplier.
        inner[np.diag_indices_from(inner)] += multiplier
        outer[np.diag_indices_from(outer)] += 1
        factor = scipy.linalg.cho_factor(inner) if len(a) else None

        def solve_inside(right: np.ndarray) -> np.ndarray:
            return right if factor is None else scipy.linalg.cho_solve(factor, right)

        bent = multiplier * solve_inside(cross)
        complement = scipy.linalg.cho_factor(outer - cross.T @ bent)

        def solve(inside: np.ndarray, outside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            first = solve_inside(inside)
            second = scipy.linalg.cho_solve(complement, outside - cross.T @ first)
            return first - bent @ second, second

        gradient, penalty = self._rise.T @ omega + b, multiplier * (self.finite + a)
        newton, moved = solve(-(slope + penalty), -gradient), solve(-penalty, -b)
        return Step(*newton, *moved, float(np.linalg.norm(gradient)))

    def _softmax(
        self, a: Float[np.ndarray, "f"], b: Float[np.ndarray, "g"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """``s - p``, the softmax s in each support, its mass, and the log probabilities outside."""
        p, support = self.contexts.probabilities, self.contexts.support
        ratio = np.where(support, self._inside_logits @ a + self._lacking, -np.inf)
        top = ratio.max(-1, keepdims=True)
        log_total = top + np.log((p * np.exp(ratio - top)).sum(-1, keepdims=True))
        small = np.minimum(ratio, 1)
        near = np.abs(np.where(support, ratio, 0)).max(-1, keepdims=True) < 1
        change = np.where(near, (p * np.expm1(small)).sum(-1, keepdims=True), 0)
        delta = ratio - np.where(near, np.log1p(change), log_total)
        s = p * np.exp(delta)
        within = np.where(delta > 1, s - p, p * np.expm1(np.minimum(delta, 1)))

        logits = self._inside_logits @ (self.finite + a)
        log_support = np.logaddexp.reduce(np.where(support, logits, -np.inf), axis=-1)
        odds = logits[self.context, self.token] - log_support[self.context] + self._rise @ b
        spread = np.full(logits.shape, -np.inf)
        spread[self.context, self.token] = odds
        log_whole = np.logaddexp(0, np.logaddexp.reduce(spread, axis=-1))
        return within, s, np.exp(-log_whole), odds - log_whole[self.context]

    def _odds_lacking(self) -> Float[np.ndarray, "m V"]:
        """Log-odds against the anchor at the finite part, less the target log-odds."""
        contexts, own = self.contexts, (np.arange(self.contexts.count), self.best)
        logs = np.log(np.where(contexts.support, contexts.probabilities, 1.0))
        logits = self._inside_logits @ self.finite
        wanted, found = (each - each[own][:, None] for each in (logs, logits))
        lacking = np.where(contexts.support, found - wanted, 0)
        size = 1 + np.abs(np.where(contexts.support, wanted, 0)).max()
        return lacking if np.abs(lacking).max() > _COMPATIBLE * size else np.zeros_like(lacking)

    def _per_context(self, rows: Float[np.ndarray, "pairs g"]) -> Float[np.ndarray, "m g"]:
        total = np.zeros((self.contexts.count, rows.shape[1]))
        np.add.at(total, self.context, rows)
        return total

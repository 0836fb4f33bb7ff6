"""Single steps of mirror descent: the identity, the descent of the loss, the divergence."""

from __future__ import annotations

import numpy as np

from attractor.analysis import directional_bregman_divergence
from attractor.files.case import Case
from attractor.geometry import Lp
from attractor.papers.claim import Claims, Comparison, Exponent, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, feasible, trains
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.measurements.mirror_steps import loss_at, potential_divergence, step_from
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import steps_known
from attractor.results.paper import MIRROR_DESCENT as PAPER
from attractor.training import mirror_descent, train

CLAIMS = Claims(PAPER, Case, "mirror-descent")

_NORMS = (0.1, 1.0, 5.0, 30.0)
_EACH = 50


def _matrices(case: Case, seed: int, purpose: int) -> np.ndarray:
    """Random matrices of several norms."""
    random = np.random.default_rng([seed, purpose])
    shape = (case.tokens.key_dimension, case.tokens.query_dimension)
    drawn = random.standard_normal((len(_NORMS), _EACH, *shape))
    drawn *= np.array(_NORMS)[:, None, None, None]
    return drawn.reshape(-1, *shape)


def _difference(case: Case, seed: int, q: Exponent) -> Measurement:
    """Left less right side, over the largest term, with the potential of an exponent."""
    p, rate = steps_known(case)
    U, W = _matrices(case, seed, 3), _matrices(case, seed, 5)
    after = step_from(case, W, p, rate)
    before, behind = loss_at(case, W), loss_at(case, after)
    risen = behind.value - before.value
    along = (before.gradient * (after - W)).sum((-1, -2))
    terms = [
        potential_divergence(U, W, q),
        -potential_divergence(U, after, q),
        -(potential_divergence(after, W, q) - rate * (risen - along)),
        rate * (before.gradient * (U - W)).sum((-1, -2)),
        -rate * risen,
    ]
    largest = np.max([np.abs(term) for term in terms], axis=0)
    relative = np.abs(np.sum(terms, axis=0)) / largest
    return Measurement(float(relative.max()), len(W), {"p": p, "learning rate": rate})


STEP_IDENTITY = CLAIMS.claim(
    "step-identity",
    "a step changes the divergence from any U by what potential, gradient and loss say",
    statement="identity of one step of mirror descent",
    assuming=(trains("W"), MIRROR_DESCENT),
    contrast=Comparison(
        "difference of the sides of D(U, W) = D(U, W+) + D_(psi - eta L)(W+, W) "
        "- eta <grad L, U - W> + eta (L+ - L), relative to the largest term",
        _difference,
        lambda case, seed: Exponent(steps_known(case).p),
        "the same with the potential of the exponent p + 0.01",
        lambda case, seed: Exponent(steps_known(case).p + 0.01),
        bound=1e-12,
        reason="an identity, but for a few roundings of its largest term",
    ),
    data=lambda seed: [
        random_case(4 * seed),
        *(with_exponent(random_case(4 * seed + 1), p) for p in (1.1, 2.0, 3.0)),
    ],
    note="unnormalized steps, at random matrices of several norms",
)


_LENGTH = 300
_STARTS = 4
_PARTS = np.linspace(0, 1, 5)
_ROUNDING = 1e-14
_SEEN = 1e-10
"""Share of the loss from which on a fall is more than its rounding."""


@once
def _path(case: Case) -> np.ndarray:
    """Matrices of every step of unnormalized runs, ``(start, step, d, e)``.

    Starts are the same for every seed: the assumption is checked on the runs that are measured.
    """
    p, rate = steps_known(case)
    steps = _LENGTH if case.steps is None else case.steps
    run = train(
        case.tokens,
        case.head,
        mirror_descent(rate, p, normalize=False),
        steps=steps,
        seeds=_STARTS if case.initial is None else 1,
        initial=case.initial,
        record=np.arange(steps + 1),
        weights="all",
    )
    return run.data["W"].values[0]


def _convex_steps(case: Case) -> Check:
    """Checks that the slope of ``psi - eta L`` rises from part to part of every step."""
    (p, rate), path = steps_known(case), _path(case)
    step = path[:, 1:] - path[:, :-1]
    slopes = []
    for part in _PARTS:
        W = (path[:, :-1] + part * step).reshape(-1, *path.shape[2:])
        image = np.sign(W) * np.abs(W) ** (p - 1) - rate * loss_at(case, W).gradient
        slopes.append((image.reshape(step.shape) * step).sum((-1, -2)))
    rise = np.diff(slopes, axis=0)
    size = np.abs(slopes).max(0)
    wrong = int((rise < -_ROUNDING * size).any(0).sum())
    return Check(wrong == 0, f"{wrong} of {size.size} steps are not")


CONVEX_STEPS = Assumption(
    "small steps",
    "psi - eta L is convex along every step.",
    _convex_steps,
    lambda: random_case(0).replace(optimizer="mirror descent:p=1.75,learning_rate=1e4"),
)


def _rise(case: Case, seed: int, factor: float) -> Measurement:
    """The largest of ``L+ - L + factor D(W, W+) / eta``, relative to the loss."""
    (p, rate), path = steps_known(case), _path(case)
    loss = loss_at(case, path.reshape(-1, *path.shape[2:])).value.reshape(path.shape[:2])
    moved = potential_divergence(path[:, :-1], path[:, 1:], p) / rate
    rises = np.diff(loss, axis=1)
    worst = ((rises + factor * moved) / loss[:, :-1]).max(initial=-np.inf)
    raised = int((rises > _ROUNDING * loss[:, :-1]).sum())
    seen = moved > _SEEN * loss[:, :-1]
    details = {
        "p": p,
        "learning rate": rate,
        "steps that raise the loss": raised,
        "largest factor that holds": float((-rises[seen] / moved[seen]).min(initial=np.inf)),
    }
    return Measurement(float(worst), rises.size, details)


DESCENT = CLAIMS.claim(
    "descent",
    "small steps lower the loss, each by its own divergence over the learning rate",
    statement="descent of mirror descent",
    assuming=(trains("W"), MIRROR_DESCENT, CONVEX_STEPS),
    contrast=Comparison(
        "largest rise of the loss in a step, with D(W, W+) / eta added, relative to the loss",
        _rise,
        lambda *_: 1.0,
        "the same with 2 D(W, W+) / eta, which is the fall of a step that is infinitely short",
        lambda *_: 2.0,
        bound=_ROUNDING,
        reason="the sum is never positive but for rounding of the loss",
    ),
    data=lambda seed: [
        random_case(4 * seed),
        *(with_exponent(random_case(4 * seed + 1), p) for p in (1.5, 2.0, 3.0)),
    ],
    note="unnormalized steps; for p above 2 no learning rate is small enough at W = 0",
)


_AWAY = (1e-6, 1e-3, 0.1, 1.0, 10.0)
"""Lengths of what is added to a direction, before it is made a direction again."""
_DIRECTIONS = 20

_Bound = tuple[float, Exponent]
"""The constant and the power of the distance."""


def _bound(case: Case) -> _Bound:
    p = steps_known(case).p
    return ((p - 1) / 2, Exponent(2)) if p <= 2 else (1 / (p * 2**p), Exponent(p))


def _with_smaller_power(case: Case) -> _Bound:
    constant, power = _bound(case)
    return constant, Exponent(power - 0.5)


def _largest_share(case: Case, seed: int, bound: _Bound) -> Measurement:
    """The largest bound over the divergence, by the distance in the norm of the statement.

    Divergences are those of the solution's direction, and of one with two entries, from the same
    turned by random matrices and along single entries, by little and by much, and negated. For p
    below 2 that with two entries comes nearest to the bound.
    """
    geometry = steps_known(case).geometry
    W = case.solution(geometry, case.optimal).W
    drawn = np.random.default_rng([seed, 71]).standard_normal((_DIRECTIONS, *W.shape))
    entries = np.eye(W.size).reshape(-1, *W.shape)
    turns = np.concatenate([drawn / np.abs(drawn).max((-1, -2), keepdims=True), entries, -entries])
    (constant, power), shares = bound, []
    for base in (W, entries[:2].sum(0)):
        direction = base / geometry.norm(base)
        near = (direction + np.multiply.outer(_AWAY, turns)).reshape(-1, *W.shape)
        matrices = np.concatenate([near, -direction[None]])
        matrices /= geometry.norm(matrices)[:, None, None]
        distance = Lp(max(geometry.p, 2.0)).norm(direction - matrices)
        divergence = directional_bregman_divergence(matrices, direction, geometry)
        shares.append(constant * distance**power / divergence)
    details = {
        "p": geometry.p,
        "smallest share": float(np.min(shares)),
        "largest from the solution": float(np.max(shares[0])),
        "largest from the direction with two entries": float(np.max(shares[1])),
    }
    return Measurement(float(np.max(shares)), np.size(shares), details)


DIVERGENCE_BOUNDS_DISTANCE = CLAIMS.claim(
    "divergence-bounds-distance",
    "the divergence is at least (p - 1)/2 |a - b|^2, for p above 2 |a - b|_p^p/(p 2^p)",
    statement="inequalities between the directional divergence and the distance of directions",
    assuming=(trains("W"), MIRROR_DESCENT, UNIQUE_OPTIMUM, feasible(of="optimum")),
    contrast=Comparison(
        "largest bound over the divergence, of two directions from others",
        _largest_share,
        lambda case, seed: _bound(case),
        "the same with a power of the distance that is less by a half",
        lambda case, seed: _with_smaller_power(case),
        bound=1 + 1e-8,
        reason="an inequality, and for p = 2 an identity, between directions a millionth apart",
    ),
    data=lambda seed: [
        random_case(3 * seed),
        *(with_exponent(random_case(3 * seed + 1), p) for p in (1.1, 1.5, 2.0)),
        *(with_exponent(random_case(3 * seed + 2), p) for p in (2.5, 3.0, 4.0)),
    ],
    note="p is that of the data's optimizer; the constant could be larger by 1.1 at p = 1.75, by "
    "1.8 at p = 1.1, and by 4 to 5 times for p above 2",
    exchange="one",
)

"""Every small step of mirror descent lowers the loss."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import trains
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.measurements.mirror_steps import loss_at, potential_divergence
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import steps_known
from attractor.results.paper import MIRROR_DESCENT as PAPER
from attractor.training import mirror_descent, train

CLAIMS = Claims(PAPER, Case, "mirror-descent")

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

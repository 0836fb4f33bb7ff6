"""The exact change of the divergence from any matrix in one step of mirror descent."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Exponent, Measurement
from attractor.papers.hypotheses import trains
from attractor.papers.measurements.mirror_steps import loss_at, potential_divergence, step_from
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import steps_known
from attractor.results.paper import MIRROR_DESCENT as PAPER

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

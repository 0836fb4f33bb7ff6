"""How far directions are apart, from the directional Bregman divergence."""

from __future__ import annotations

import numpy as np

from attractor.analysis import directional_bregman_divergence
from attractor.files.case import Case
from attractor.geometry import Lp
from attractor.papers.claim import Claims, Comparison, Exponent, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, feasible, trains
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import steps_known
from attractor.results.paper import MIRROR_DESCENT as PAPER

CLAIMS = Claims(PAPER, Case, "mirror-descent")

_AWAY = (1e-6, 1e-3, 0.1, 1.0, 10.0)
"""Lengths of what is added to a direction, before it is made a direction again."""
_EACH = 20

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
    drawn = np.random.default_rng([seed, 71]).standard_normal((_EACH, *W.shape))
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

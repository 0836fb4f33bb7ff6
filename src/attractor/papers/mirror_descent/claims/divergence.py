"""How far directions are apart, from the directional Bregman divergence."""

from __future__ import annotations

import numpy as np

from attractor.analysis import directional_bregman_divergence
from attractor.files.case import Case
from attractor.geometry import Lp
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import UNIQUE_OPTIMUM, feasible, trains
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.data import random_case
from attractor.papers.mirror_descent.hypotheses import MIRROR_DESCENT
from attractor.papers.mirror_descent.training import steps_known
from attractor.papers.paper import MIRROR_DESCENT as PAPER

CLAIMS = Claims(PAPER, Case, "mirror-descent")

_AWAY = (1e-6, 1e-3, 0.1, 1.0, 10.0)
"""Lengths of what is added to the direction of the solution, before it is made a direction."""
_EACH = 20


def _largest_share(case: Case, seed: int, power: float | None = None) -> Measurement:
    """The largest bound over the divergence, perhaps with another power of the distance.

    Matrices are the direction of the solution turned by random matrices and along single entries,
    by little and by much, and its negative.
    """
    geometry = steps_known(case).geometry
    p, W = geometry.p, case.solution(geometry, case.optimal).W
    solution = W / geometry.norm(W)
    drawn = np.random.default_rng([seed, 71]).standard_normal((_EACH, *W.shape))
    entries = np.eye(W.size).reshape(-1, *W.shape)
    turns = np.concatenate([drawn / np.abs(drawn).max((-1, -2), keepdims=True), entries, -entries])
    near = (solution + np.multiply.outer(_AWAY, turns)).reshape(-1, *W.shape)
    matrices = np.concatenate([near, -solution[None]])
    matrices /= geometry.norm(matrices)[:, None, None]
    q, constant = (2.0, (p - 1) / 2) if p <= 2 else (p, 1 / (p * 2**p))
    distance = Lp(q).norm(solution - matrices)
    divergence = directional_bregman_divergence(matrices, solution, geometry)
    share = constant * distance ** (power or q) / divergence
    details = {"p": p, "smallest share": float(share.min())}
    return Measurement(float(share.max()), len(share), details)


DIVERGENCE_BOUNDS_DISTANCE = CLAIMS.claim(
    "divergence-bounds-distance",
    "the divergence is at least (p - 1)/2 |a - b|^2, for p above 2 |a - b|_p^p/(p 2^p)",
    statement="inequalities between the directional divergence and the distance of directions",
    assuming=(trains("W"), MIRROR_DESCENT, UNIQUE_OPTIMUM, feasible(of="optimum")),
    contrast=Contrast(
        "largest bound over the divergence of the solution's direction from others",
        lambda case, seed: _largest_share(case, seed),
        "the same with the distance to the power 3/2",
        lambda case, seed: _largest_share(case, seed, 1.5),
        bound=1 + 1e-8,
        reason="an inequality, and for p = 2 an identity, between directions a millionth apart",
    ),
    data=lambda seed: [
        random_case(3 * seed),
        *(with_exponent(random_case(3 * seed + 1), p) for p in (1.1, 1.5, 2.0)),
        *(with_exponent(random_case(3 * seed + 2), p) for p in (2.5, 3.0, 4.0)),
    ],
    note="p is that of the data's optimizer; for p near 1, and above 2, the bound is never reached",
)

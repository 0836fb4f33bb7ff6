"""Gradient flow whose gate stays off: it keeps a balance, and tends to Bayes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attractor.papers import Assumption, Check, Comparison, Measurement
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.claims.discriminant_saddles import Parameters
from attractor_further.gaussian_mixtures.discriminant import Classes, Effective, classes, risk
from attractor_further.gaussian_mixtures.discriminant_head import Matrices, head_flow
from attractor_further.gaussian_mixtures.mixture_data import CLASSES, two_classes

_ROUNDING = 1e-9
_STARTS = 2
_GROWTHS = 10.0
"""Number of times that a gate opened by rounding grows by ``e`` while the balance is measured."""
_RECORDS = 21
_SMALLER = 0.5
"""The norm of ``U11`` where that of ``v21`` is one."""
_SHRINKAGES = 20.0
_LONGEST = 1e5
"""Time after which the gate, off at an unstable point, may have been opened by rounding."""
_STEP = 1e-4


def _equally_likely(case: HeadCase) -> Check:
    odds = classes(case).log_odds
    return Check(abs(odds) <= _ROUNDING, f"the log-odds of the labels are {odds:.4g}")


def _opposite(case: HeadCase) -> Check:
    of = classes(case)
    size, scale = np.linalg.norm(of.positive + of.negative), np.linalg.norm(of.between)
    words = f"the sum of the means has norm {size:.4g}, their difference {scale:.4g}"
    return Check(bool(scale > 0 and size <= _ROUNDING * scale), words)


def _small_krylov(case: HeadCase) -> Check:
    of = classes(case)
    d, spanned = len(of.positive), _krylov(of).shape[1]
    return Check(spanned < d, f"a space of dimension {spanned} of {d}")


_LABELS = Assumption[HeadCase](
    "equally likely labels",
    "Both labels have probability one half.",
    _equally_likely,
    lambda: two_classes((1.0, 0.0), (-1.0, 0.0), 0.6),
)
_MEANS = Assumption[HeadCase](
    "opposite means",
    "The means of the classes are opposite and not equal.",
    _opposite,
    lambda: two_classes(probability=0.5),
)
_KRYLOV = Assumption[HeadCase](
    "a small Krylov subspace",
    "The mean, multiplied by the covariance again and again, does not span all of space.",
    _small_krylov,
    lambda: two_classes((1.0, 0.0), (-1.0, 0.0), 0.5, wide=True),
)
_ASSUMPTIONS = (*CLASSES, _LABELS, _MEANS, _KRYLOV)


def _krylov(of: Classes) -> Float[np.ndarray, "d basis"]:
    """An orthonormal basis of the span of ``m, Gamma m, Gamma^2 m, ...``."""
    covariance = of.covariance / np.linalg.norm(of.covariance, 2)
    basis = np.empty((len(of.between), 0))
    vector = of.between
    while basis.shape[1] < len(vector):
        size = np.linalg.norm(vector)
        for _ in range(2):  # once more for what rounding leaves
            vector = vector - basis @ (basis.T @ vector)
        if np.linalg.norm(vector) <= _ROUNDING * size:
            break
        basis = np.column_stack([basis, vector / np.linalg.norm(vector)])
        vector = covariance @ basis[:, -1]
    return basis


def _starts(case: HeadCase, seed: int, *, orthogonal: bool = True) -> list[Matrices]:
    """Random ``U11`` and ``v21`` of norm one, ``u12 = 0`` and ``v22 = 0``.

    Args:
        case: Labeled points.
        seed: Names what is drawn.
        orthogonal: Whether ``U11`` vanishes on the Krylov subspace and ``v21`` is orthogonal to it.
    """
    of, draws = classes(case), np.random.default_rng([seed, 53])
    d, basis = len(of.positive), _krylov(of)
    away = np.eye(d) - basis @ basis.T * orthogonal
    found = []
    for _ in range(_STARTS):
        U11, v21 = draws.standard_normal((d, d)) @ away, away @ draws.standard_normal(d)
        head = Matrices(U11 / np.linalg.norm(U11), np.zeros(d), v21 / np.linalg.norm(v21), 0.0)
        found.append(head)
    return found


def _flat(heads: Sequence[Matrices]) -> list[Parameters]:
    return [head.flat for head in heads]


def _change_of_balance(case: HeadCase, seed: int, starts: Sequence[Parameters]) -> Measurement:
    """The largest change of ``||U11||^2 - ||v21||^2`` along flows from starts.

    The gate is off at an unstable point: with ``m`` half the difference of the means ``r`` and
    ``s`` grow at about ``||m|| (1 + ||m||^2) / 2`` at most.
    """
    of = classes(case)
    size = float(np.linalg.norm(of.between)) / 2
    times = np.linspace(0, _GROWTHS / max(1.0, size * (1 + size**2) / 2), _RECORDS)
    changes, moves = [], []
    for start in starts:
        path = head_flow(of, start, times, tolerance=1e-9)
        balance = np.array([Matrices.of(one).balance for one in path])
        changes.append(float(np.abs(balance - balance[0]).max()))
        moves.append(float(np.linalg.norm(path[-1] - start)))
    return Measurement(max(changes), len(changes), {"moved": moves})


def _data(seed: int) -> Sequence[HeadCase]:
    others = (0.0,) * 19
    return [
        two_classes((1.0, 0.0), (-1.0, 0.0), 0.5),
        two_classes((0.5, 0.0, 0.5), (-0.5, 0.0, -0.5), 0.5, wide=True),
        two_classes((1.0, *others), (-1.0, *others), 0.5),
    ]


DISCRIMINANT_BALANCE_KEPT = CLAIMS.claim(
    "discriminant-balance-kept",
    "flow that leaves a Krylov subspace and the gate alone keeps ||U11||^2 - ||v21||^2",
    statement="what gradient flow of the logistic risk keeps",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "largest change of ||U11||^2 - ||v21||^2 along flows with U11 zero on the Krylov subspace, "
        "v21 orthogonal to it, u12 = 0 and v22 = 0",
        _change_of_balance,
        lambda case, seed: _flat(_starts(case, seed)),
        "the same along flows from other U11 and v21, where the gate opens",
        lambda case, seed: _flat(_starts(case, seed, orthogonal=False)),
        bound=1e-6,
        reason="the flow is followed to 1e-9",
    ),
    data=_data,
    note="which starts the statement is about is derived: from these r = s = b = 0 throughout, and "
    "from others the balance changes",
)


def _needed_time(of: Classes) -> float:
    """Time in which distances from Bayes shrink by ``e`` twenty times, near Bayes.

    There ``d(w - w*)/dt`` is ``-M H (w - w*)`` with ``H`` the Hessian in ``w`` and ``M`` at least
    ``||Gamma v21||^2``, and the balance that is kept leaves ``||v21||^2 >= 1 - ||U11||^2``.
    """
    (w, _), d = of.bayes, len(of.positive)

    def slope(w: Float[np.ndarray, "d"]) -> Float[np.ndarray, "d"]:
        return risk(of, Effective(w, 0.0, 0.0, np.zeros(d)).flat).gradient[:d]

    rows = [slope(w + step) - slope(w - step) for step in _STEP * np.eye(d)]
    hessian = np.stack(rows) / (2 * _STEP)
    curvature = np.linalg.eigvalsh((hessian + hessian.T) / 2)[0]
    values = (1 - _SMALLER**2) * np.linalg.eigvalsh(of.covariance)[0] ** 2
    return _SHRINKAGES / float(values * max(curvature, np.finfo(float).tiny))


def _leading_values(case: HeadCase, seed: int) -> list[Parameters]:
    """Starts with ``||v21|| > ||U11||``."""
    return _flat([head._replace(U11=head.U11 * _SMALLER) for head in _starts(case, seed)])


def _no_values(case: HeadCase, seed: int) -> list[Parameters]:
    """Starts with ``v21 = 0``, and columns of ``U11`` orthogonal to the mean."""
    mean = classes(case).between
    return _flat(
        [
            head._replace(
                U11=head.U11 - np.outer(mean, mean @ head.U11) / (mean @ mean), v21=head.v21 * 0
            )
            for head in _starts(case, seed)
        ]
    )


def _off_bayes(case: HeadCase, seed: int, starts: Sequence[Parameters]) -> Measurement:
    """The largest distance of ``w`` from that of Bayes at the end of flows, over its norm."""
    of = classes(case)
    time, bayes = _needed_time(of), of.bayes[0]
    if not time <= _LONGEST:
        return Measurement(np.nan, 0, {"time": time})
    distances = []
    for start in starts:
        last = head_flow(of, start, np.array([0.0, time]), tolerance=1e-8)[-1]
        w = Matrices.of(last).score(of).w
        distances.append(float(np.linalg.norm(w - bayes) / np.linalg.norm(bayes)))
    return Measurement(max(distances), len(distances), {"time": time, "distances": distances})


DISCRIMINANT_GLOBAL_CONVERGENCE = CLAIMS.claim(
    "discriminant-global-convergence",
    "flow that leaves a Krylov subspace alone tends to Bayes if ||v21|| > ||U11|| at first",
    statement="global convergence of gradient flow of the logistic risk",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "relative distance of w from that of Bayes, after flows with U11 zero on the Krylov "
        "subspace, v21 orthogonal to it, u12 = 0, v22 = 0 and ||v21|| = 2 ||U11||",
        _off_bayes,
        _leading_values,
        "the same with the balance the other way: v21 = 0, and U11 orthogonal to the mean",
        _no_values,
        bound=1e-6,
        reason="they last until distances shrank by exp(-20), and are followed to 1e-8",
    ),
    data=_data,
    note="derived: the balance keeps v21 away from zero, so that only Bayes has no gradient; with "
    "||U11|| > ||v21|| there are critical points with w = 0",
)

"""Parameters far away whose risk is nearly that of Bayes, though they are not near Bayes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from attractor.papers import Assumption, Check, Comparison, Measurement
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.discriminant import (
    Classes,
    Effective,
    bayes_risk,
    classes,
    risk,
)
from attractor_further.gaussian_mixtures.mixture_data import CLASSES, two_classes

_SIZES = (1e1, 1e2, 1e3, 1e4)
"""Sizes of the gate along a sequence."""


def _apart(case: HeadCase) -> Check:
    size = float(np.linalg.norm(classes(case).between))
    return Check(size > 1e-6, f"the difference of the means has norm {size:.4g}")


_DIFFERENT_MEANS = Assumption[HeadCase](
    "different means",
    "The means of the classes differ.",
    _apart,
    lambda: two_classes((1.0, 0.0), (1.0, 0.0)),
)


def _by_gate_alone(of: Classes, size: float) -> Effective:
    """A score with ``w = 0`` whose wide, flat gate does the work of ``w``.

    For large ``r`` and ``s = w* / (p (1 - p) r)`` what ``r (sigmoid(s0 + s^T x) - p)`` leaves of
    ``w*^T x`` is of the order of ``(s^T x)^2 r``.
    """
    p = expit(of.log_odds)
    return _with_gate(of, size, p * (1 - p))


def _by_gate_too_flat(of: Classes, size: float) -> Effective:
    """The same without the slope ``p (1 - p)`` of the gate in its middle."""
    return _with_gate(of, size, 1.0)


def _with_gate(of: Classes, size: float, slope: float) -> Effective:
    w, b = of.bayes
    means = np.stack([of.positive, of.negative])
    r = size * max(1.0, float(w @ of.covariance @ w + ((means @ w) ** 2).max()))
    return Effective(0 * w, b - r * expit(of.log_odds), r, w / (slope * r))


def _from_bayes(of: Classes, score: Effective) -> float:
    """The distance from the nearest Bayes parameters: those with ``r = 0`` and with ``s = 0``."""
    w, b = of.bayes
    p = expit(of.log_odds)
    without_gate = [score.b - b, score.r]
    constant_gate = [(score.b + score.r * p - b) / np.sqrt(1 + p**2), *score.s]
    rest = min(np.linalg.norm(without_gate), np.linalg.norm(constant_gate))
    return float(np.hypot(np.linalg.norm(score.w - w), rest))


def _excess_far_away(
    case: HeadCase, seed: int, sequence: Callable[[Classes, float], Effective]
) -> Measurement:
    """The risk above that of Bayes at the end of a sequence, infinite if that does not escape."""
    of = classes(case)
    found = [sequence(of, size) for size in _SIZES]
    norms = [float(np.linalg.norm(score.flat)) for score in found]
    distance = min(_from_bayes(of, score) for score in found)
    excess = [risk(of, score.flat).value - bayes_risk(of) for score in found]
    escapes = min(np.diff(norms)) > 0 and distance >= np.linalg.norm(of.bayes[0]) / 2
    details = {"risk above that of Bayes": excess, "norms": norms, "distance from Bayes": distance}
    return Measurement(excess[-1] if escapes else np.inf, len(found), details)


DISCRIMINANT_ESCAPE = CLAIMS.claim(
    "discriminant-escape",
    "the risk tends to that of Bayes along w = 0, where parameters escape to infinity",
    statement="minimizing sequences of the logistic risk that escape to infinity",
    assuming=(*CLASSES, _DIFFERENT_MEANS),
    contrast=Comparison(
        "logistic risk above that of Bayes with w = 0, r of the order of 1e4 and s = "
        "w* / (p (1 - p) r), after smaller r, and always at a distance from Bayes parameters",
        _excess_far_away,
        lambda *_: _by_gate_alone,
        "the same with s = w* / r",
        lambda *_: _by_gate_too_flat,
        bound=1e-8,
        reason="it falls like a constant of the order of 0.01 over r^2",
    ),
    data=lambda seed: [
        two_classes(),
        two_classes(wide=True, probability=0.3),
        two_classes(probability=0.5),
        two_classes((1.0, 0.0, 0.5), (0.0, 1.0, 0.0)),
    ],
    note="which sequences the statement is about is derived. That all escape it cannot say, as "
    "Bayes parameters exist; but with w = 0 there are none, so that there all have to",
)

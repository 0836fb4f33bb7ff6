"""Critical points of the risk in the matrices of a head: those that are not Bayes are saddles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize
from jaxtyping import Float

from attractor.files.head import HeadCase
from attractor.papers.assumption import Assumption, Check
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import MIXTURE_CLAIMS
from attractor.papers.large_prompt.discriminant import bayes_risk, classes
from attractor.papers.large_prompt.discriminant_head import (
    bayes_matrices,
    head_hessian,
    head_risk,
)
from attractor.papers.large_prompt.mixture_data import CLASSES, two_classes
from attractor.papers.once import once_a_case

_SCALES, _STARTS = (0.1, 0.5, 2.0), 3
_CRITICAL = 1e-8
"""Gradient below which a point is critical."""
_EXCESS = 1e-6


def _opposite(case: HeadCase) -> Check:
    of = classes(case)
    size = float(np.linalg.norm(of.positive + of.negative))
    return Check(size > 1e-6, f"the sum of the means has norm {size:.4g}")


NOT_OPPOSITE = Assumption[HeadCase](
    "means not opposite",
    "The means of the classes do not add up to zero.",
    _opposite,
    lambda: two_classes((1.0, 0.0), (-1.0, 0.0)),
)


@once_a_case
def _critical_points(case: HeadCase, seed: int) -> list[Float[np.ndarray, "parameter"]]:
    """Zeros of the gradient that are not Bayes, found from starts of several sizes."""
    of = classes(case)
    draws = np.random.default_rng([seed, 43])
    found = []
    for scale in _SCALES:
        for start in scale * draws.standard_normal((_STARTS, (len(of.positive) + 1) ** 2)):
            point = scipy.optimize.root(lambda flat: head_risk(of, flat).gradient, start).x
            value, gradient = head_risk(of, point)
            if np.linalg.norm(gradient) <= _CRITICAL and value > bayes_risk(of) + _EXCESS:
                found.append(point)
    return found


def _bayes_points(case: HeadCase, seed: int) -> list[Float[np.ndarray, "parameter"]]:
    """Random matrices of heads that are Bayes, with a gate and with a constant one."""
    of, draws = classes(case), np.random.default_rng([seed, 44])
    drawn = [bayes_matrices(of, draws, gate=gate) for gate in (True, False)]
    return [point for point in drawn if point is not None]


def _least_curvature(
    case: HeadCase, points: Sequence[Float[np.ndarray, "parameter"]]
) -> Measurement:
    """The largest, over points, of their least second derivative."""
    of = classes(case)
    curvatures = [float(np.linalg.eigvalsh(head_hessian(of, point))[0]) for point in points]
    excess = sorted(
        {round(float(head_risk(of, point).value - bayes_risk(of)), 4) for point in points}
    )
    details = {"points": len(points), "risks above that of Bayes": excess}
    return Measurement(max(curvatures, default=np.nan), len(points), details)


DISCRIMINANT_SADDLES = MIXTURE_CLAIMS.claim(
    "discriminant-saddles",
    "critical points found in the matrices of a head that are not Bayes are strict saddles",
    statement="critical points of the logistic risk in the matrices of a head",
    assuming=(*CLASSES, NOT_OPPOSITE),
    contrast=Contrast(
        "largest least eigenvalue of the Hessian, at critical points found that are not Bayes",
        lambda case, seed: _least_curvature(case, _critical_points(case, seed)),
        "the same at critical points that are Bayes, which are no saddles",
        lambda case, seed: _least_curvature(case, _bayes_points(case, seed)),
        bound=-1e-4,
        reason="differences leave 1e-8",
    ),
    data=lambda seed: [
        two_classes(),
        two_classes(wide=True, probability=0.3),
        two_classes(probability=0.5),
        two_classes((2.0, 0.5), (-1.0, 0.5), 0.7),
        two_classes((1.0, 0.0, 0.5), (0.0, 1.0, 0.0)),
    ],
    note="found as zeros of the gradient from random starts of three sizes: mostly heads whose "
    "score is constant. What no start leads to is not looked at",
)

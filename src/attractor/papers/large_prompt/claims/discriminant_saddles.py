"""Critical points of the risk in the matrices of a head: those that are not Bayes are saddles."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from attractor.files.head import HeadCase
from attractor.papers.assumption import Assumption, Check
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import MIXTURE_CLAIMS
from attractor.papers.large_prompt.discriminant import bayes_risk, classes
from attractor.papers.large_prompt.discriminant_head import head_hessian, head_risk
from attractor.papers.large_prompt.mixture_data import CLASSES, two_classes
from attractor.papers.once import once_a_case

_STARTS = 4
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
def _least_curvature(case: HeadCase, seed: int) -> Measurement:
    """The largest, over critical points that are not Bayes, of their least second derivative."""
    of = classes(case)
    size = (len(of.positive) + 1) ** 2
    starts = 0.3 * np.random.default_rng([seed, 43]).standard_normal((_STARTS, size))
    curvatures = []
    for start in starts:
        point = scipy.optimize.root(lambda flat: head_risk(of, flat).gradient, start).x
        value, gradient = head_risk(of, point)
        if np.linalg.norm(gradient) <= _CRITICAL and value > bayes_risk(of) + _EXCESS:
            curvatures.append(float(np.linalg.eigvalsh(head_hessian(of, point))[0]))
    largest = max(curvatures, default=np.nan)
    return Measurement(largest, len(curvatures), {"least curvatures": curvatures})


DISCRIMINANT_SADDLES = MIXTURE_CLAIMS.claim(
    "discriminant-saddles",
    "in the matrices of a head every critical point that is not Bayes is a strict saddle",
    statement="critical points of the logistic risk in the matrices of a head",
    assuming=(*CLASSES, NOT_OPPOSITE),
    contrast=Contrast(
        "largest least eigenvalue of the Hessian, at critical points found that are not Bayes",
        _least_curvature,
        "the same eigenvalue, which no direction of descent would leave at zero or more",
        _least_curvature,
        bound=-1e-4,
        reason="differences leave 1e-8",
        wrong_sense=">=",
    ),
    data=lambda seed: [two_classes(), two_classes(wide=True, probability=0.3)],
    note="found as zeros of the gradient from random starts: mostly heads whose score is constant",
)

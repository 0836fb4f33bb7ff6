"""Critical points of the risk in the matrices of a head: those that are not Bayes are saddles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.optimize
from jaxtyping import Float

from attractor.papers import Assumption, Check, Comparison, Measurement, once
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.discriminant import (
    Classes,
    Effective,
    bayes_risk,
    classes,
    risk,
)
from attractor_further.gaussian_mixtures.discriminant_head import (
    LEAST_SUM,
    Matrices,
    head_hessian,
    head_risk,
)
from attractor_further.gaussian_mixtures.mixture_data import CLASSES, two_classes

Parameters = Float[np.ndarray, "parameter"]
"""Matrices of a head in a row."""

_SCALES, _STARTS = (0.1, 0.5, 2.0), 2
_SCORES, _WIDTH = 16, 2.0
"""Number of heads with ``v21 = 0`` that are searched for, and the size of where searches start."""
_CRITICAL = 1e-8
"""Gradient below which a point is critical."""
_STEEPEST = 5.0
"""Deviation of the exponent of a gate up to which the quadrature is exact to that."""
_EXCESS = 1e-6


def _opposite(case: HeadCase) -> Check:
    of = classes(case)
    size = float(np.linalg.norm(of.positive + of.negative))
    return Check(size > LEAST_SUM, f"the sum of the means has norm {size:.4g}")


NOT_OPPOSITE = Assumption[HeadCase](
    "means not opposite",
    "The means of the classes do not add up to zero.",
    _opposite,
    lambda: two_classes((1.0, 0.0), (-1.0, 0.0)),
)


@once
def _critical_points(case: HeadCase, seed: int) -> list[Parameters]:
    """Zeros of the gradient that are not Bayes.

    Some are found from starts of several sizes. Where the gradient in ``u12`` is zero, that in
    ``U11`` is ``g_w (Gamma v21)^T`` with ``g_w`` the slope in ``w``, so that ``v21`` vanishes or
    ``g_w`` does, and from ``g_w = 0`` it follows that all slopes of the score vanish, which they do
    for Bayes alone. With ``v21 = 0`` few numbers are left to search.
    """
    of = classes(case)
    draws = np.random.default_rng([seed, 43])
    starts = [
        start
        for scale in _SCALES
        for start in scale * draws.standard_normal((_STARTS, (len(of.positive) + 1) ** 2))
    ]
    ends = [_zero(lambda flat: head_risk(of, flat).gradient, start) for start in starts]
    ends += [_without_values_of_points(of, draws) for _ in range(_SCORES)]
    return [point for point in ends if _excess(of, point) > _EXCESS and _is_critical(of, point)]


def _zero(
    function: Callable[[Parameters], Parameters], start: Parameters, **options: int
) -> Parameters:
    return scipy.optimize.root(function, start, tol=1e-12, options=options).x


def _without_values_of_points(of: Classes, draws: np.random.Generator) -> Parameters:
    """Matrices with ``v21 = 0``, critical where a search for ``v22`` and ``s`` has found a zero."""

    def unbalanced(values: Float[np.ndarray, "number"]) -> Float[np.ndarray, "number"]:
        slope = _slopes(of, values[0], values[1:])
        return np.concatenate([[2 * slope.r - slope.b], slope.s])

    start = _WIDTH * draws.standard_normal(len(of.positive) + 1)
    found = _zero(unbalanced, start, maxfev=200)
    return _of_gate(of, float(found[0]), found[1:], draws)


def _slopes(of: Classes, v22: float, s: Float[np.ndarray, "d"]) -> Effective:
    """The gradient in the score of a head with ``v21 = 0``."""
    score = Effective(np.zeros(len(of.positive)), -v22, 2 * v22, s)
    return Effective.of(risk(of, score.flat).gradient)


def _of_gate(
    of: Classes, v22: float, s: Float[np.ndarray, "d"], draws: np.random.Generator
) -> Parameters:
    """Matrices with ``v21 = 0``, of ``v22`` and ``s``, without a gradient in ``v21``."""
    d, slope = len(of.positive), _slopes(of, v22, s)
    # The gradient in v21 is what Gamma U11^T g_w and the slope in b leave.
    wanted = -slope.b * np.linalg.solve(of.covariance, of.positive + of.negative) / 2
    U11 = draws.standard_normal((d, d))
    square = max(slope.w @ slope.w, np.finfo(float).tiny)
    U11 += np.outer(slope.w, wanted - U11.T @ slope.w) / square
    return Matrices(U11, (s - U11 @ of.between) / 2, np.zeros(d), v22).flat


def _excess(of: Classes, point: Parameters) -> float:
    return head_risk(of, point).value - bayes_risk(of)


def _is_critical(of: Classes, point: Parameters) -> bool:
    """Whether the gradient is zero, and the gate so flat that the quadrature resolves it."""
    s = Matrices.of(point).score(of).s
    steepness = np.sqrt(s @ of.covariance @ s)
    gradient = np.linalg.norm(head_risk(of, point).gradient)
    return bool(gradient <= _CRITICAL and steepness <= _STEEPEST)


def _without_values(case: HeadCase, seed: int) -> list[Parameters]:
    """Heads whose values are zero and whose gate is drawn.

    The gradient in ``v22`` is zero, and all of it with that, where the probability of the label is
    one that belongs to the gate.
    """
    of, draws = classes(case), np.random.default_rng([seed, 44])
    s = _WIDTH * draws.standard_normal(len(of.positive))
    return [_of_gate(of, 0.0, s, draws) for _ in range(_STARTS)]


def _least_curvature(case: HeadCase, seed: int, points: Sequence[Parameters]) -> Measurement:
    """The largest, over points, of their least second derivative; infinite at one not critical."""
    of = classes(case)
    curvatures = [
        float(np.linalg.eigvalsh(head_hessian(of, point))[0]) if _is_critical(of, point) else np.inf
        for point in points
    ]
    excess = sorted({round(_excess(of, point), 4) for point in points})
    values = max((float(np.linalg.norm(Matrices.of(point).v21)) for point in points), default=0.0)
    details = {
        "points": len(points), "risks above that of Bayes": excess, "largest norm of v21": values
    }  # fmt: skip
    return Measurement(max(curvatures, default=np.nan), len(points), details)


DISCRIMINANT_SADDLES = CLAIMS.claim(
    "discriminant-saddles",
    "critical points found in the matrices of a head that are not Bayes are strict saddles",
    statement="critical points of the logistic risk in the matrices of a head",
    assuming=(*CLASSES, NOT_OPPOSITE),
    contrast=Comparison(
        "largest least eigenvalue of the Hessian, at critical points found that are not Bayes",
        _least_curvature,
        _critical_points,
        "the same at heads without values whose gate is drawn, most of which are not critical",
        _without_values,
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
    note="found as zeros of the gradient, from random starts and among heads with v21 = 0, which "
    "critical points that are not Bayes have (derived): heads whose score is zero, and heads that "
    "return a multiple of the mean label. What no start leads to is not looked at",
)

"""A head that classifies points of two classes: it can be Bayes, and minimizers of its risk are."""

from __future__ import annotations

import numpy as np
import scipy.optimize
from jaxtyping import Bool, Float
from scipy.special import expit

from attractor.files.head import HeadCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.large_prompt.claims import MIXTURE_CLAIMS
from attractor.papers.large_prompt.data import Queries
from attractor.papers.large_prompt.discriminant import (
    Effective,
    bayes_head,
    bayes_risk,
    classes,
    risk,
)
from attractor.papers.large_prompt.mixture_data import (
    CLASSES,
    FEW_DIMENSIONS,
    two_classes,
)
from attractor.papers.large_prompt.quadrature import attended, cluster_points
from attractor.prompt.head import AttentionHead

_QUERIES = 8
_NODES = 40
_DRAWN = 4
_STARTS = 5
_SETTLED = 1e-6
"""Gradient below which a minimizer has been found."""


def _off_log_odds(case: HeadCase, seed: int, with_labels: bool) -> Measurement:
    """The largest difference of attention over labeled points from the exact log-odds."""
    of = classes(case)
    points = case.queries.sample(_QUERIES, seed=seed)[:, :-1]
    head = bayes_head(of, with_labels=with_labels)
    from scipy.stats import multivariate_normal  # a second to load

    found = _attention(case, head, np.column_stack([points, np.zeros(len(points))]))
    density = [
        multivariate_normal.logpdf(points, mean, of.covariance)  # pyright: ignore[reportArgumentType]
        for mean in (of.positive, of.negative)
    ]
    difference = found - (of.log_odds + density[0] - density[1])
    return Measurement(float(np.abs(difference).max()), len(points))


def _attention(case: HeadCase, head: AttentionHead, queries: Queries) -> Float[np.ndarray, "query"]:
    """The first output of a head, by quadrature over the tokens."""
    directions = queries @ np.asarray(head.score_matrix).T
    return attended(cluster_points(case, _NODES), directions) @ np.asarray(head.value_matrix)[0]


BAYES_HEAD = MIXTURE_CLAIMS.claim(
    "bayes-discriminant",
    "on labeled points of two Gaussian classes one head returns the exact log-odds",
    statement="one head realizes the posterior of two Gaussian classes",
    assuming=(*CLASSES, FEW_DIMENSIONS.broken_by(lambda: _in_many_dimensions())),
    contrast=Contrast(
        "largest difference of attention by quadrature over labeled points from the log-odds",
        lambda case, seed: _off_log_odds(case, seed, True),
        "the same for the head that does not use labels",
        lambda case, seed: _off_log_odds(case, seed, False),
        bound=1e-9,
        reason="rounding",
    ),
    data=lambda seed: [
        two_classes(),
        two_classes(wide=True, probability=0.3),
        two_classes(probability=0.5),
        two_classes((1.0, 0.0), (-1.0, 0.0)),
    ],
)


def _in_many_dimensions(dimension: int = 5) -> HeadCase:
    """Two classes that differ along one coordinate of several."""
    positive = np.eye(dimension)[0]
    return two_classes(tuple(positive), tuple(-positive / 2), 0.6)


def _gradient_at_bayes(case: HeadCase, seed: int, together: bool) -> Measurement:
    """The largest gradient where the score is the log-odds, or where gates move it as well."""
    of = classes(case)
    w, b = of.bayes
    draws = np.random.default_rng([seed, 23])
    found = []
    for r, s in zip(
        draws.standard_normal(_DRAWN), draws.standard_normal((_DRAWN, len(w))), strict=True
    ):
        without_gate = Effective(w, b, 0.0, s)
        with_constant_gate = Effective(w, b - r * expit(of.log_odds), r, np.zeros(len(w)))
        with_both = Effective(w, b - r * expit(of.log_odds), r, s)
        chosen = [with_both] if together else [without_gate, with_constant_gate]
        found += [np.linalg.norm(risk(of, one.flat).gradient) for one in chosen]
    return Measurement(float(max(found)), len(found))


BAYES_CRITICAL = MIXTURE_CLAIMS.claim(
    "bayes-parameters-critical",
    "both families of Bayes parameters, without a gate and with a constant one, are critical",
    statement="critical points of the logistic risk in the effective parameters",
    assuming=CLASSES,
    contrast=Contrast(
        "largest gradient of the logistic risk at Bayes parameters with r = 0 or s = 0",
        lambda case, seed: _gradient_at_bayes(case, seed, False),
        "the same at the same parameters with both r and s",
        lambda case, seed: _gradient_at_bayes(case, seed, True),
        bound=1e-9,
        reason="rounding in the quadrature",
    ),
    data=lambda seed: [
        two_classes(),
        two_classes(wide=True, probability=0.3),
        _in_many_dimensions(),
    ],
)


def _excess_of_minimizers(case: HeadCase, seed: int, affine: bool) -> Measurement:
    """The largest risk above that of Bayes, among minimizers from random starts.

    Args:
        case: Labeled points.
        seed: Names the starts.
        affine: Whether the score has an intercept and a gate.
    """
    of = classes(case)
    d = len(of.positive)
    free = np.ones(2 * d + 2, dtype=bool)
    if not affine:
        free[d:] = False
    starts = np.random.default_rng([seed, 29]).standard_normal((_STARTS, len(free)))
    found = [_minimized(case, start * free, free) for start in starts]
    settled = [(value, gradient) for value, gradient in found if gradient <= _SETTLED]
    if not settled:
        return Measurement(np.nan, 0)
    least = bayes_risk(of)
    excess = [value - least for value, _ in settled]
    details = {"least excess": min(excess), "gradient": max(gradient for _, gradient in settled)}
    return Measurement(float(max(excess)), len(settled), details)


def _minimized(
    case: HeadCase, start: Float[np.ndarray, "parameter"], free: Bool[np.ndarray, "parameter"]
) -> tuple[float, float]:
    """The risk where descent in the free parameters ends, and its gradient there."""
    of = classes(case)

    def placed(values: Float[np.ndarray, "free"]) -> Float[np.ndarray, "parameter"]:
        flat = start.copy()
        flat[free] = values
        return flat

    def objective(values: Float[np.ndarray, "free"]) -> tuple[float, np.ndarray]:
        value, gradient = risk(of, placed(values))
        return value, gradient[free]

    end = scipy.optimize.minimize(
        objective, start[free], jac=True, method="BFGS", options={"gtol": _SETTLED / 10}
    )
    value, gradient = risk(of, placed(end.x))
    return value, float(np.linalg.norm(gradient[free]))


DISCRIMINANT_MINIMIZERS = MIXTURE_CLAIMS.claim(
    "discriminant-minimizers",
    "every critical point of the logistic risk in w, b, r, s has the risk of Bayes",
    statement="critical points of the logistic risk in the effective parameters are global",
    assuming=CLASSES,
    contrast=Contrast(
        "largest logistic risk above that of Bayes, at critical points found from random starts",
        lambda case, seed: _excess_of_minimizers(case, seed, True),
        "the same for linear attention, whose score has no intercept",
        lambda case, seed: _excess_of_minimizers(case, seed, False),
        bound=1e-6,
        reason="gradients of 1e-6 are left, over curvatures of the order of one",
    ),
    data=lambda seed: [two_classes(), two_classes(wide=True, probability=0.3)],
    note="found by descent, so that saddles would be seen only where descent stalls; with means "
    "that are opposite and labels equally likely linear attention is Bayes too, and the claim "
    "vacuous",
)

"""A head that classifies points of two classes: it can be Bayes, as critical points are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize
from jaxtyping import Float
from scipy.special import expit
from scipy.stats import multivariate_normal

from attractor.papers import Comparison, Measurement, once
from attractor.papers.measures import attended_means
from attractor.prompts import AttentionHead, HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.discriminant import (
    Effective,
    Risk,
    bayes_head,
    bayes_risk,
    classes,
    risk,
)
from attractor_further.gaussian_mixtures.mixture_data import CLASSES, FEW_DIMENSIONS, two_classes
from attractor_further.gaussian_mixtures.quadrature import cluster_points
from attractor_further.shapes import Queries

Parameters = Float[np.ndarray, "parameter"]
"""``w``, ``b``, ``r`` and ``s`` of a score in a row."""

_QUERIES = 8
_NODES = 40
_DRAWN = 4
_SCALES, _STARTS = (0.3, 1.0, 3.0), 2
_SETTLED = 1e-6
"""Gradient below which a critical point has been found."""


def _bayes_head(case: HeadCase, seed: int) -> AttentionHead:
    return bayes_head(classes(case))


def _without_labels(case: HeadCase, seed: int) -> AttentionHead:
    """The head for tokens whose labels are zero, so that its scores do separate the classes."""
    head, points = _bayes_head(case, seed), np.ones(case.tokens.dimension)
    points[-1] = 0.0
    return AttentionHead(points[:, None] * head.score_matrix, head.value_matrix * points)


def _off_log_odds(case: HeadCase, seed: int, head: AttentionHead) -> Measurement:
    """The largest difference of attention over labeled points from the exact log-odds."""
    of = classes(case)
    points = case.queries.sample(_QUERIES, seed=seed)[:, :-1]

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
    means = attended_means(cluster_points(case, _NODES), directions)
    return means @ np.asarray(head.value_matrix)[0]


BAYES_HEAD = CLAIMS.claim(
    "bayes-discriminant",
    "on labeled points of two Gaussian classes one head returns the exact log-odds",
    statement="one head realizes the posterior of two Gaussian classes",
    assuming=(*CLASSES, FEW_DIMENSIONS.broken_by(lambda: _in_many_dimensions())),
    contrast=Comparison(
        "largest difference of attention by quadrature over labeled points from the log-odds",
        _off_log_odds,
        _bayes_head,
        "the same for the head that does not use labels",
        _without_labels,
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


def _drawn_gates(case: HeadCase, seed: int) -> list[tuple[float, Float[np.ndarray, "d"]]]:
    """Random ``r`` and ``s``."""
    draws = np.random.default_rng([seed, 23])
    r, s = draws.standard_normal(_DRAWN), draws.standard_normal((_DRAWN, len(case.U) - 1))
    return list(zip(r.tolist(), s, strict=True))


def _with_one(case: HeadCase, seed: int) -> list[Parameters]:
    """Parameters whose score is the log-odds, with ``s`` but ``r = 0`` or the other way round."""
    of = classes(case)
    w, b = of.bayes
    found = []
    for r, s in _drawn_gates(case, seed):
        found.append(Effective(w, b, 0.0, s).flat)
        found.append(Effective(w, b - r * expit(of.log_odds), r, np.zeros(len(w))).flat)
    return found


def _with_both(case: HeadCase, seed: int) -> list[Parameters]:
    """The same with both ``r`` and ``s``, so that a gate moves the score as well."""
    of = classes(case)
    w, b = of.bayes
    gates = _drawn_gates(case, seed)
    return [Effective(w, b - r * expit(of.log_odds), r, s).flat for r, s in gates]


def _gradient(case: HeadCase, seed: int, points: Sequence[Parameters]) -> Measurement:
    """The largest gradient of the risk at parameters."""
    of = classes(case)
    found = [float(np.linalg.norm(risk(of, point).gradient)) for point in points]
    return Measurement(max(found), len(found))


BAYES_CRITICAL = CLAIMS.claim(
    "bayes-parameters-critical",
    "both families of Bayes parameters, without a gate and with a constant one, are critical",
    statement="critical points of the logistic risk in the effective parameters",
    assuming=CLASSES,
    contrast=Comparison(
        "largest gradient of the logistic risk at Bayes parameters with r = 0 or s = 0",
        _gradient,
        _with_one,
        "the same at the same parameters with both r and s",
        _with_both,
        bound=1e-9,
        reason="rounding in the quadrature",
    ),
    data=lambda seed: [
        two_classes(),
        two_classes(wide=True, probability=0.3),
        _in_many_dimensions(),
    ],
)


@once
def _critical_risks(case: HeadCase, seed: int) -> list[float]:
    """The risk at zeros of the gradient that are found from starts of several sizes.

    Gradients are weighed by the size of parameters, as the risk flattens far away.
    """
    of = classes(case)
    draws = np.random.default_rng([seed, 29])
    found = []
    for start in _starts(draws, 2 * len(of.positive) + 2):
        point = scipy.optimize.root(lambda flat: risk(of, flat).gradient, start, tol=_SETTLED).x
        value, gradient = risk(of, point)
        if np.linalg.norm(gradient) * max(1.0, float(np.linalg.norm(point))) <= _SETTLED:
            found.append(value)
    return found


def _starts(draws: np.random.Generator, count: int) -> Float[np.ndarray, "start parameter"]:
    return np.concatenate([scale * draws.standard_normal((_STARTS, count)) for scale in _SCALES])


def _off_risk(case: HeadCase, seed: int, least: float) -> Measurement:
    """The largest distance of the risk at critical points from one."""
    found = _critical_risks(case, seed)
    distances = [abs(value - least) for value in found]
    return Measurement(max(distances, default=np.nan), len(found), {"risks": found})


def _least_without_intercept(case: HeadCase, seed: int) -> float:
    """The least risk of a score ``w^T x``."""
    of = classes(case)
    d = len(of.positive)

    def of_weights(w: Float[np.ndarray, "d"]) -> Risk:
        value, gradient = risk(of, Effective(w, 0.0, 0.0, np.zeros(d)).flat)
        return Risk(value, gradient[:d])

    return float(scipy.optimize.minimize(of_weights, of.bayes[0], jac=True).fun)


DISCRIMINANT_MINIMIZERS = CLAIMS.claim(
    "discriminant-minimizers",
    "every critical point of the logistic risk in w, b, r, s has the risk of Bayes",
    statement="critical points of the logistic risk in the effective parameters are global",
    assuming=CLASSES,
    contrast=Comparison(
        "largest distance of the logistic risk at critical points from that of Bayes",
        _off_risk,
        lambda case, seed: bayes_risk(classes(case)),
        "the same from the least risk of linear attention, whose score has no intercept",
        _least_without_intercept,
        bound=1e-6,
        reason="gradients of 1e-6 are left; where r and s vanish the risk grows as a fourth power",
    ),
    data=lambda seed: [two_classes(), two_classes(wide=True, probability=0.3)],
    note="found as zeros of the gradient from random starts of three sizes, not by descent, which "
    "would pass by saddles; with means that are opposite and labels equally likely linear "
    "attention is Bayes too, and the claim vacuous",
)

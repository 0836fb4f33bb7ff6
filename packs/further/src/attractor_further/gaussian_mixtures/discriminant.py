"""The score of a head on labeled points, its logistic risk, and the parameters of Bayes."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from attractor.prompts import AttentionHead, HeadCase
from attractor_further.gaussian_mixtures.mixture_data import clusters

_SPACING = 0.2
_END = 8.4


class Classes(NamedTuple):
    """Two classes of points.

    Attributes:
        positive: Mean of the points with the label 1.
        negative: Mean of those with the label -1.
        covariance: Of both.
        log_odds: Logarithm of the odds of the label 1.
    """

    positive: Float[np.ndarray, "d"]
    negative: Float[np.ndarray, "d"]
    covariance: Float[np.ndarray, "d d"]
    log_odds: float

    @property
    def between(self) -> Float[np.ndarray, "d"]:
        """The difference of the means."""
        return self.positive - self.negative

    @property
    def bayes(self) -> tuple[Float[np.ndarray, "d"], float]:
        """``w`` and ``b`` of the exact log-odds ``w^T x + b`` of the label 1."""
        solved = np.linalg.solve(self.covariance, np.stack([self.positive, self.negative], -1))
        squares = self.positive @ solved[:, 0] - self.negative @ solved[:, 1]
        return solved[:, 0] - solved[:, 1], self.log_odds - float(squares) / 2


def classes(case: HeadCase) -> Classes:
    """The classes of a case of labeled points."""
    weights, means, covariances = clusters(case)
    order = np.argsort(-means[:, -1])
    (first, second), points = weights[order], means[order, :-1]
    return Classes(points[0], points[1], covariances[0][:-1, :-1], float(np.log(first / second)))


class Effective(NamedTuple):
    """The score of a head, ``w^T x + b + r sigmoid(s0 + s^T x)``, as one flat array and by name.

    Attributes:
        w: Weights of the point.
        b: The intercept.
        r: Amplitude of the gate.
        s: Weights of the point in the gate.
    """

    w: Float[np.ndarray, "d"]
    b: float
    r: float
    s: Float[np.ndarray, "d"]

    @classmethod
    def of(cls, flat: Float[np.ndarray, "parameter"]) -> Effective:
        """From a flat array."""
        d = len(flat) // 2 - 1
        return cls(flat[:d], float(flat[d]), float(flat[d + 1]), flat[d + 2 :])

    @property
    def flat(self) -> Float[np.ndarray, "parameter"]:
        """As a flat array."""
        return np.concatenate([self.w, [self.b, self.r], self.s])


class Risk(NamedTuple):
    """The logistic risk and its gradient."""

    value: float
    gradient: Float[np.ndarray, "parameter"]


def risk(of: Classes, flat: Float[np.ndarray, "parameter"]) -> Risk:
    """The logistic risk of a score, by quadrature over the two directions it depends on.

    Args:
        of: The classes.
        flat: ``w``, ``b``, ``r`` and ``s`` of the score.
    """
    score = Effective.of(flat)
    factor = np.linalg.cholesky(of.covariance)
    # With x = mean + L z the score depends on z along two directions only, for w and for s.
    directions, seen = np.linalg.qr(factor.T @ np.stack([score.w, score.s], axis=-1))
    nodes, weights = _plane()
    # The coordinates of the point in all other directions average out of the gradient.
    nodes = nodes[:, : directions.shape[1]]
    turned = (factor @ directions).T
    along = nodes @ seen
    value, gradient = 0.0, np.zeros(len(flat))
    for label, mean in ((1.0, of.positive), (-1.0, of.negative)):
        probability = weights * expit(label * of.log_odds)
        gate = expit(of.log_odds + mean @ score.s + along[:, 1])
        margin = label * (mean @ score.w + along[:, 0] + score.b + score.r * gate)
        small = np.exp(-np.abs(margin))  # the one exponential of the loss and of its slope
        loss = np.maximum(-margin, 0.0) + np.log1p(small)
        slope = -label * np.where(margin > 0, small, 1.0) / (1 + small) * probability
        moves = score.r * gate * (1 - gate)
        gated = slope * moves
        in_w = slope.sum() * mean + slope @ nodes @ turned
        in_s = gated.sum() * mean + gated @ nodes @ turned
        value += float(loss @ probability)
        gradient += np.concatenate([in_w, [slope.sum(), slope @ gate], in_s])
    return Risk(value, gradient)


@cache
def _plane() -> tuple[Float[np.ndarray, "node 2"], Float[np.ndarray, "node"]]:
    """The trapezoidal rule for two standard normal variables.

    It is exact to rounding for smooth functions; Gauss-Hermite is not for the logistic one.
    """
    axis = np.arange(-_END, _END + _SPACING / 2, _SPACING)
    weight = _SPACING * np.exp(-(axis**2) / 2) / np.sqrt(2 * np.pi)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    return grid.reshape(-1, 2), np.outer(weight, weight).ravel()


def bayes_risk(of: Classes) -> float:
    """The logistic risk of the exact log-odds."""
    w, b = of.bayes
    return risk(of, Effective(w, b, 0.0, np.zeros(len(w))).flat).value


def bayes_head(of: Classes) -> AttentionHead:
    """A head whose score is the exact log-odds.

    Its scores do not separate the classes, so that its gate stays at the probability of the
    label 1, and the values of the labels make up for the intercept.
    """
    w, b = of.bayes
    d, between, probability = len(w), of.between, expit(of.log_odds)
    values = -np.linalg.solve(of.covariance, between)  # v21
    # U11 Gamma v21 = w; there is nothing to say where both classes are one.
    points = -np.outer(w, between) / max(between @ between, np.finfo(float).tiny)
    mean = probability * of.positive + (1 - probability) * of.negative
    labels = 2 * probability - 1
    last = (b - values @ mean) / labels if labels else 0.0
    U = np.zeros((d + 1, d + 1))
    U[:d, :d] = points.T
    U[d, :d] = -points @ between / 2
    return AttentionHead(U, np.concatenate([values, [last]])[None])

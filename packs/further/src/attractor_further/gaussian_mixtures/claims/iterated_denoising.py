"""The limits of points that are denoised again and again."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from attractor.papers import Assumption, Check, Comparison, Measurement, once
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.denoising import posterior_mean
from attractor_further.gaussian_mixtures.denoising_data import DENOISING, noisy_points, variances
from attractor_further.gaussian_mixtures.mixture_data import clusters

_STARTS = 16
_STEPS = 2000
_LEAST_SHARE = 0.1


def _even(case: HeadCase) -> Check:
    share = float(clusters(case).weights[0])
    return Check(abs(share - 0.5) <= 1e-9, f"probabilities {share:.4g} and {1 - share:.4g}")


_EVEN = Assumption[HeadCase](
    "equally likely clusters",
    "Both clusters have probability one half.",
    _even,
    lambda: noisy_points(probability=0.4),
)


def _gain(case: HeadCase, total: float) -> float:
    """``lambda^2``: the square of half the distance of the means, over a variance."""
    means = clusters(case).means
    return float(np.sum((means[0] - means[1]) ** 2) / 4 / total)


def _settles(case: HeadCase) -> Check:
    spread, noise = variances(case)
    gain = _gain(case, spread + noise)
    away = abs(gain - 1) >= 0.1 and noise >= _LEAST_SHARE * (spread + noise)
    share = noise / (spread + noise)
    return Check(away, f"lambda^2 is {gain:.4g}, the share of the noise {share:.4g}")


_SETTLES = Assumption[HeadCase](
    "away from the transition",
    "lambda^2 is not within 0.1 of one, and the noise is a tenth of the variance seen, so that "
    "2,000 steps settle.",
    _settles,
    lambda: noisy_points((3.2, 0.0), (0.0, 3.2)),
)
_ASSUMPTIONS = (*DENOISING, _EVEN, _SETTLES)


@once
def _ends(case: HeadCase, seed: int) -> np.ndarray:
    """Starts and ends of points, from the middle of the means in half differences of them."""
    first, second = clusters(case).means
    middle, half = (first + second) / 2, (first - second) / 2
    points = case.queries.sample(_STARTS, seed=seed)
    starts = (points - middle) @ half / (half @ half)
    for _ in range(_STEPS):
        points = posterior_mean(case, points)
    return np.stack([starts, (points - middle) @ half / (half @ half)])


def _off_fixed_points(case: HeadCase, seed: int, gain: float) -> Measurement:
    """The largest distance of an end from the fixed point of ``u = tanh(lambda^2 u)``."""
    starts, ends = _ends(case, seed)
    attractor = 0.0
    if gain > 1:
        bracket = (np.sqrt(1 - 1 / gain) / 2, 1.0)
        found = scipy.optimize.root_scalar(lambda u: np.tanh(gain * u) - u, bracket=bracket)
        attractor = float(found.root)
    error = np.abs(ends - np.sign(starts) * attractor).max()
    details = {"lambda": float(np.sqrt(gain)), "attractors": 2 if attractor else 1, "u": attractor}
    return Measurement(float(error), len(ends), details)


ITERATED_DENOISER = CLAIMS.claim(
    "iterated-denoiser",
    "denoised again and again points end where u = tanh(lambda^2 u): one point or two",
    statement="fixed points of the iterated denoiser",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "largest distance of where points end from the solution of u = tanh(lambda^2 u)",
        _off_fixed_points,
        lambda case, seed: _gain(case, sum(variances(case))),
        "the same with the variance of the noise alone in lambda",
        lambda case, seed: _gain(case, variances(case).noise),
        bound=1e-6,
        reason="distances shrink by 1 percent a step or more, 2,000 times",
    ),
    data=lambda seed: [
        noisy_points((4.0, 0.0), (0.0, 4.0)),
        noisy_points((2.0, 0.0), (-2.0, 0.0), spread=2.0, noise=1.5),
        noisy_points((3.0, 0.0), (-3.0, 0.0), spread=2.0, noise=1.5),
    ],
    note="lambda is half the distance of the means over the deviation of what is seen, "
    "sqrt(gamma^2 + xi^2), which for clusters of points, gamma = 0, is xi",
)

"""Moments beside the scores at complex tilts."""

import mpmath
import numpy as np
import pytest

from attractor.prompts.measures.arithmetic import ScoreLine
from attractor.prompts.measures.elliptical import continued

DIRECTION = np.array([0.9, -0.4, 0.7])
PROJECTION = np.array([[1.0, 0.5, -2.0], [0.3, 0.0, 1.0]])
CENTER = np.array([0.2, -1.0, 0.4])
LINE = ScoreLine(DIRECTION, PROJECTION, CENTER)


def moments(measure, q):
    found = measure._generated(LINE, q)
    scale = np.exp(found.log_scale)[:, None]
    return found.value * scale, found.vector * scale, found.square * scale


@pytest.mark.long
def test_real_tilts_are_those_of_the_measure(measures):
    slopes = np.array([-1.3, -0.2, 0.0, 0.7, 1.0])
    for name, measure in measures.items():
        tilt = measure.tilt(slopes[:, None] * DIRECTION)
        value = np.exp(tilt.log_normalizer - slopes * (DIRECTION @ CENTER))
        mean = PROJECTION @ (tilt.mean - CENTER).T
        square = np.trace(PROJECTION @ tilt.covariance @ PROJECTION.T, axis1=1, axis2=2)
        square = square + (mean**2).sum(0)
        found = moments(measure, slopes[:, None] + 0j)
        for one, expected in zip(found, (value, value * mean, value * square), strict=True):
            np.testing.assert_allclose(one[..., 0], expected, 1e-11, 1e-13, err_msg=name)


def test_moments_are_analytic(measures):
    # Derivatives along the slope and along the frequency differ by a factor i.
    place, step = 0.6 + 1.7j, 1e-5
    for name, measure in measures.items():
        around = place + step * np.array([[1], [-1], [1j], [-1j]])
        for part in range(3):
            found = np.concatenate(
                [np.atleast_1d(moments(measure, q[None])[part].ravel())[None] for q in around]
            )
            along, across = found[0] - found[1], (found[2] - found[3]) / 1j
            np.testing.assert_allclose(along, across, 1e-6, 1e-14, err_msg=name)


def test_mean_of_a_prompt_is_that_of_its_tokens(measures):
    measure = measures["prompt"]
    offsets = measure.points[:5] - CENTER
    weights = measure.weights[:5] / measure.weights.sum()
    q = np.array([[0.5], [-1.0]]) + 1j * np.array([0.0, 2.0, 30.0])
    waves = weights[:, None, None] * np.exp((offsets @ DIRECTION)[:, None, None] * q)
    rows = offsets @ PROJECTION.T
    for found, features in zip(
        moments(measure, q), (np.ones(5), rows.T, (rows**2).sum(-1)), strict=True
    ):
        np.testing.assert_allclose(found, np.tensordot(features, waves, 1), 1e-12, 1e-14)


@pytest.mark.parametrize("nu", [0.0, 0.5, 3.0, 31.5, 255.0])
@pytest.mark.parametrize("z", [0.3 + 0.1j, -2 + 7j, 4 + 60j, 25 + 1j, 0.01 + 30j, 0j])
def test_bessel_functions_at_complex_arguments(nu, z):
    log, ratio = (complex(part[0]) for part in continued(nu, np.array([z])))
    with mpmath.workdps(60):
        value = mpmath.hyp0f1(nu + 1, mpmath.mpc(z) ** 2 / 4)
        above = mpmath.hyp0f1(nu + 2, mpmath.mpc(z) ** 2 / 4) / (2 * (nu + 1))
        expected = complex(above / value)
        size = complex(mpmath.exp(mpmath.mpc(log)) / value)
    assert size == pytest.approx(1, rel=1e-10)
    assert ratio == pytest.approx(expected, rel=1e-10)

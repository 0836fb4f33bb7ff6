import mpmath
import numpy as np
import pytest

from attractor.prompts.measures import Uniform


# Both sides of the place where a formula changes, and both ends of floating point.
@pytest.mark.parametrize("slope", [1e-9, 1e-4, 0.3, 0.999999, 1.0, 1.7, 6.0, 25.0])
def test_tilt_agrees_with_quadrature(oracle, slope):
    tilt = Uniform(1.3, 1).tilt([[slope / 1.3]])
    with mpmath.workdps(40):
        width = mpmath.mpf(1.3)
        expected = oracle.integral(lambda x: 1 / (2 * width), [-width, 0, width], slope / 1.3)
        for found, exact in zip(tilt, expected, strict=True):
            assert abs(mpmath.mpf(float(found.squeeze())) / exact - 1) < 2e-14


def test_tilt_is_odd_starts_at_the_moments_and_ends_at_the_edge():
    law = Uniform(2.0, 3)
    up, down = (law.tilt(sign * np.array([0.1, 1.5, 1e4])) for sign in (1, -1))
    np.testing.assert_array_equal(up.mean, -down.mean)
    np.testing.assert_array_equal(up.covariance, down.covariance)
    assert up.mean[2] == 2 - 1e-4
    still = law.tilt(np.zeros(3))
    assert still.log_normalizer == 0 and (still.mean == 0).all()
    np.testing.assert_allclose(still.covariance, 4 / 3 * np.eye(3), rtol=1e-15)

import mpmath
import numpy as np
import pytest

from attractor.prompts.measures import Rademacher


# Both sides of the place where a formula changes, and both ends of floating point.
@pytest.mark.parametrize("slope", [1e-9, 1e-4, 0.3, 0.999999, 1.0, 1.7, 25.0, 320.0])
def test_tilt_agrees_with_the_two_masses(oracle, slope):
    tilt = Rademacher(1, 0.75).tilt([[slope]])
    with mpmath.workdps(300):
        expected = oracle.sums(np.array([[0.75], [-0.75]]), np.ones(2), np.array([slope]))
        for found, exact in zip(tilt, expected, strict=True):
            exact = np.squeeze(exact).item()
            assert abs(mpmath.mpf(float(found.squeeze())) / exact - 1) < 2e-14


def test_gain_falls_with_the_scores():
    means = Rademacher(1).tilted_mean([[1.0], [2.0]])[:, 0]
    np.testing.assert_allclose(means / [1, 2], (0.762, 0.482), atol=5e-4)


def test_tilt_is_odd_and_starts_at_the_moments():
    law = Rademacher(3, 2.0)
    up, down = (law.tilt(sign * np.array([0.1, 1.5, 1e4])) for sign in (1, -1))
    np.testing.assert_array_equal(up.mean, -down.mean)
    np.testing.assert_array_equal(up.covariance, down.covariance)
    still = law.tilt(np.zeros(3))
    assert still.log_normalizer == 0 and (still.mean == 0).all()
    np.testing.assert_array_equal(still.covariance, 4 * np.eye(3))

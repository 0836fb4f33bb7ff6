import mpmath
import numpy as np
import pytest

from attractor.prompts.measures import Laplace
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("slope", [1e-9, 0.3, 0.9, 0.999])
def test_tilt_agrees_with_quadrature(oracle, slope):
    tilt = Laplace(0.5, 1).tilt([[2 * slope]])
    with mpmath.workdps(36):
        cuts = [-mpmath.inf, 0, mpmath.inf]
        expected = oracle.integral(lambda x: mpmath.exp(-2 * abs(x)), cuts, 2 * slope)
        for found, exact in zip(tilt, expected, strict=True):
            assert abs(mpmath.mpf(float(found.squeeze())) / exact - 1) < 2e-14


def test_moments():
    still = Laplace(2.0, 3).tilt(np.zeros(3))
    assert still.log_normalizer == 0 and (still.mean == 0).all()
    np.testing.assert_allclose(still.covariance, 8 * np.eye(3), rtol=1e-15)


def test_the_edge_itself_is_outside():
    law = Laplace(0.25, 2)
    assert np.isfinite(law.tilted_mean([3.999999, 0.0])).all()
    with pytest.raises(InvalidInputError, match="between -4 and 4") as caught:
        law.tilted_mean([0.0, -4.0])
    assert caught.value.argument == "direction"

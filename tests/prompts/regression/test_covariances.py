import numpy as np
import pytest

from attractor.prompts.regression import kac_murdock_szego
from attractor.support.errors import InvalidInputError


def test_correlations_decay_with_distance():
    np.testing.assert_array_equal(
        kac_murdock_szego(3, 0.5), [[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]]
    )
    np.testing.assert_array_equal(kac_murdock_szego(2, 0), np.eye(2))
    # its inverse is tridiagonal, and known
    assert np.trace(np.linalg.matrix_power(kac_murdock_szego(5, 0.5), -2)) == pytest.approx(
        15.4444, abs=5e-5
    )


@pytest.mark.parametrize(("dimension", "correlation"), [(0, 0.5), (2.5, 0.5), (3, 1), (3, np.nan)])
def test_bad_arguments(dimension, correlation):
    with pytest.raises(InvalidInputError):
        kac_murdock_szego(dimension, correlation)

import numpy as np
import pytest

from attractor.prompts.measures import Empirical, StudentT
from attractor.support.errors import InvalidInputError


def test_moments_where_there_are_any():
    law = StudentT(9.0, 2, scale=2.0)
    assert (law.mean == 0).all()
    np.testing.assert_allclose(law.covariance, 4 * 9 / 7 * np.eye(2))
    tokens = law.sample(40_000, seed=1)
    np.testing.assert_allclose(np.cov(tokens.T), law.covariance, atol=0.15)
    # Coordinates share a denominator: uncorrelated, and yet large together.
    assert np.corrcoef(np.abs(tokens).T)[0, 1] > 0.05


@pytest.mark.parametrize(("degrees", "diagonal"), [(1.5, np.inf), (2.0, np.inf), (0.5, np.nan)])
def test_moments_that_are_infinite_or_undefined(degrees, diagonal):
    law = StudentT(degrees, 2)
    np.testing.assert_array_equal(np.diag(law.covariance), [diagonal] * 2)
    np.testing.assert_array_equal(law.mean, [np.nan] * 2 if degrees <= 1 else [0, 0])


def test_only_finite_prompts_have_attention():
    law, direction = StudentT(3.0, 2), np.array([0.1, 0.0])
    with pytest.raises(InvalidInputError, match=r"Empirical\(measure\.sample") as caught:
        law.tilt(direction)
    assert caught.value.argument == "measure"
    assert np.isfinite(Empirical(law.sample(100, seed=0)).tilted_mean(direction)).all()


def test_shape_parameters_are_positive():
    for arguments in ((0.0, 2), (3.0, 0), (3.0, 2, -1.0)):
        with pytest.raises(InvalidInputError):
            StudentT(*arguments)

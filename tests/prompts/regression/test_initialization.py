import numpy as np
import pytest

from attractor.prompts.regression import balanced_initialization
from attractor.support.errors import InvalidInputError


def test_start_is_balanced_whatever_the_size_of_theta(rng):
    for theta in (None, 1e-200 * rng.standard_normal((3, 2)), 1e200 * rng.standard_normal((3, 5))):
        start = balanced_initialization(np.eye(3), 0.3, theta)
        assert np.linalg.norm(start.key_query) == pytest.approx(0.3, rel=1e-14)
        assert start.value_label == 0.3
        assert np.linalg.eigvalsh(start.key_query).min() > -1e-16
        assert not start.label_row.any()
        assert not start.value_inputs.any()


def test_bad_input():
    with pytest.raises(InvalidInputError, match="scale"):
        balanced_initialization(np.eye(2), 0.0)
    with pytest.raises(InvalidInputError, match="theta"):
        balanced_initialization(np.eye(2), 1.0, np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match="theta"):
        balanced_initialization(np.eye(2), 1.0, np.eye(3))

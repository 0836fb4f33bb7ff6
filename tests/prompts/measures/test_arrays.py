"""NumPy in and NumPy float64 out, whatever JAX is set to and has seen before."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attractor.prompts.measures import Gaussian


def test_arrays_that_single_precision_has_closed_over_stay_in_double():
    law = Gaussian(np.arange(3.0), np.eye(3))
    direction = np.ones((2, 3))
    before = law.tilted_mean(direction)
    mean = law.mean
    eqx.filter_jit(lambda matrix: matrix @ law._mean)(jnp.ones((4, 3)))  # in single precision
    again = law.tilted_mean(np.ones((5, 3)))
    assert before.dtype == again.dtype == np.float64
    np.testing.assert_array_equal(again[0], mean + direction[0])

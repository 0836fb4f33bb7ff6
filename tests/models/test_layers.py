import jax
import jax.numpy as jnp
import numpy as np

from attractor.models.layers import LayerNorm


def test_a_layer_norm_of_equal_numbers_is_zero_with_finite_gradients():
    norm = LayerNorm(4, bias=False)
    x = jnp.full(4, 3.0)
    np.testing.assert_array_equal(norm(x), 0)
    assert np.isfinite(jax.jit(jax.jacobian(norm))(x)).all()

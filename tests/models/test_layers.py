import jax
import jax.numpy as jnp
import numpy as np

from attractor.models.layers import LayerNorm, Linear


def test_a_layer_norm_of_equal_numbers_is_zero_with_finite_gradients():
    norm = LayerNorm(4, bias=False)
    x = jnp.full(4, 3.0)
    np.testing.assert_array_equal(norm(x), 0)
    assert np.isfinite(jax.jit(jax.jacobian(norm))(x)).all()


def test_a_linear_layer_adds_its_bias():
    layer = Linear(3, 2, bias=True, key=jax.random.key(0))
    np.testing.assert_array_equal(layer(jnp.zeros(3)), layer.bias)
    np.testing.assert_allclose(
        layer(jnp.ones((4, 3))), np.tile(layer.weight.sum(-1) + layer.bias, (4, 1)), rtol=1e-6
    )

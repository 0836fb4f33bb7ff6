import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.attention.scaled import Scaled
from attractor.support.precision import double_precision
from attractor.training.optimizers import mirror_descent, schatten_mirror_descent


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def run(optimizer, W, gradients):
    """Takes plain steps with given gradients; returns all iterates."""
    step = jax.jit(
        lambda W, memory, G: optimizer.step(
            jax.tree.map(lambda g: Scaled(g, jnp.zeros(())), G), memory, W
        )
    )
    memory, path = optimizer.init(W), [W]
    for G in gradients:
        W, memory = step(W, memory, G)
        path.append(W)
    return path


@pytest.mark.parametrize("p", [1.05, 1.5, 3, 8])
def test_mirror_descent_on_singular_values(p):
    # Gradients with the same singular vectors: the singular values go by themselves.
    rng = np.random.default_rng(7)
    U, V = (np.linalg.qr(rng.normal(size=(n, 3)))[0] for n in (5, 4))
    values, slopes = np.array([2.0, 1.0, 1.0]), rng.uniform(-1, 1, (4, 3))

    def build(s):
        return jnp.asarray(U * s @ V.T)

    rate = 0.05 * min(p - 1, 1)
    found = run(schatten_mirror_descent(rate, p), build(values), [build(s) for s in slopes])[-1]
    wanted = run(mirror_descent(rate, p), jnp.asarray(values), list(jnp.asarray(slopes)))[-1]
    np.testing.assert_allclose(found, build(np.asarray(wanted)), atol=3e-14 / min(p - 1, 1))


@pytest.mark.parametrize("p", [1.05, 1.5, 3, 8])
def test_singular_values_start_from_zero_and_stay_at_zero(p):
    rng = np.random.default_rng(8)
    u, v = rng.normal(size=(5, 1)), rng.normal(size=(4, 1))
    G = jnp.asarray(u @ v.T)
    W = run(schatten_mirror_descent(0.5, p), jnp.zeros((5, 4)), [G] * 3)[-1]
    size = 1.5 ** (1 / (p - 1))
    wanted = -size * u @ v.T / (np.linalg.norm(u) * np.linalg.norm(v))
    np.testing.assert_allclose(W, wanted, atol=1e-12 * size)

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest

from attractor.attention.scaled import Scaled
from attractor.errors import InvalidInputError
from attractor.geometry import Spectral
from attractor.precision import double_precision
from attractor.training.optimizers._muon import muon


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def run(transformation, gradients, parameters):
    state, found = transformation.init(parameters), []
    step = jax.jit(
        lambda mantissa, log, state: transformation.update(
            jax.tree.map(Scaled, mantissa, log) if log is not None else mantissa, state, parameters
        )
    )
    for mantissa, log in gradients:
        update, state = step(mantissa, log, state)
        found.append(jax.tree.map(np.asarray, update))
    return found


def test_matrices_move_as_with_optax_and_at_every_magnitude():
    random = np.random.default_rng(0)
    parameters = jnp.zeros((2, 3))
    mantissas = [jnp.asarray(random.normal(size=(2, 3))) for _ in range(3)]
    plain = [(mantissa, None) for mantissa in mantissas]
    expected = run(optax.contrib.muon(0.1, eps=0.0), plain, parameters)
    found = run(muon(0.1), plain, parameters)
    tiny = run(muon(0.1), [(mantissa, jnp.asarray(-5000.0)) for mantissa in mantissas], parameters)
    for ours, far, theirs in zip(found, tiny, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-15)
        np.testing.assert_allclose(far, theirs, atol=1e-11)


def test_arrays_apart_by_thousands_a_vector_and_a_zero():
    parameters = {"v": jnp.zeros(3), "W": jnp.zeros((2, 3)), "idle": jnp.zeros((2, 2))}
    mantissa = {"v": jnp.array([3.0, 0, 4]), "W": jnp.ones((2, 3)), "idle": jnp.zeros((2, 2))}
    log = {"v": jnp.asarray(0.0), "W": jnp.asarray(-4000.0), "idle": jnp.asarray(-jnp.inf)}
    (update,) = run(muon(0.1, newton_schulz_iterations=3), [(mantissa, log)], parameters)
    assert (update["idle"] == 0).all()
    np.testing.assert_allclose(update["v"] / update["v"][0], [1, 0, 4 / 3], atol=1e-12)
    assert 0.03 < np.linalg.norm(update["v"]) < 0.15
    assert np.linalg.matrix_rank(update["W"], tol=1e-9) == 1
    assert 0.03 < np.linalg.norm(update["W"]) < 0.2


def test_declaration():
    optimizer = muon(0.1, weight_decay=0.2)
    assert optimizer.name == "Muon" and optimizer.geometry == Spectral()
    assert optimizer is muon(0.1, weight_decay=0.2)
    assert optimizer.settings["newton_schulz_iterations"] == 5


@pytest.mark.parametrize(
    "bad", [{"momentum": 1.0}, {"newton_schulz_iterations": 0}, {"nesterov": "yes"}]
)
def test_arguments_are_checked(bad):
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        muon(0.1, **bad)

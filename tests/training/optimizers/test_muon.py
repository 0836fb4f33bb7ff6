import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import optax.contrib
import pytest

from attractor.attention.scaled import Scaled
from attractor.geometry import Spectral
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers.algorithms.muon import muon
from attractor.training.optimizers.newton_schulz import COEFFICIENTS
from attractor.training.optimizers.table import named_optimizer


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


def polar_by_mpmath(M, triples):
    """The polar factor of a matrix of mpmath, or what Newton-Schulz iterations make of it."""
    if triples is None:
        U, _, V = mpmath.svd_r(M)
        return U * V
    X = M / mpmath.norm(M, 2)
    for a, b, c in triples:
        gram = X * X.T
        X = a * X + (b * gram + c * gram * gram) * X
    return X


def by_mpmath(mantissas, logs, *, triples=None, nesterov, corrected, shaped, beta=0.9, rate=0.1):
    """Muon as it is written, in 60 digits."""
    with mpmath.workdps(60):
        beta, memory, found = mpmath.mpf(beta), mpmath.zeros(*mantissas[0].shape), []
        d, e = mantissas[0].shape
        factor = mpmath.sqrt(max(1, mpmath.mpf(e) / d)) if shaped else 1
        for t, (mantissa, log) in enumerate(zip(mantissas, logs, strict=True), 1):
            G = mpmath.matrix(mantissa.tolist()) * mpmath.exp(log)
            memory = beta * memory + (1 - beta) * G
            late, now = (1 - beta ** (t + 1), 1 - beta**t) if corrected else (1, 1)
            ahead = beta * memory / late + (1 - beta) * G / now if nesterov else memory
            step = -rate * factor * polar_by_mpmath(ahead, triples)
            found.append(np.array(step.tolist(), dtype=float))
    return found


@pytest.mark.parametrize(
    ("settings", "triples"),
    [
        ({"method": "exact", "nesterov": False}, None),
        ({"method": "exact", "bias_correction": False}, None),
        ({"coefficients": "polar-express", "shape_factor": False}, COEFFICIENTS["polar-express"]),
    ],
    ids=str,
)
def test_it_is_the_formula_in_60_digits_beyond_floating_point(settings, triples):
    """Gradients fall by e^-5000, come back, and fall slowly, while the memory follows."""
    random = np.random.default_rng(0)
    mantissas = [random.normal(size=(2, 3)) for _ in range(7)]
    logs = [0.0, -5000.0, -5001.0, 3.0, -1.0, -700.0, -702.0]
    expected = by_mpmath(
        mantissas,
        logs,
        triples=triples,
        nesterov=settings.get("nesterov", True),
        corrected=settings.get("bias_correction", True),
        shaped=settings.get("shape_factor", True),
    )
    gradients = [(jnp.asarray(G), jnp.asarray(log)) for G, log in zip(mantissas, logs, strict=True)]
    found = run(muon(0.1, 0.9, **settings), gradients, jnp.zeros((2, 3)))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_exact_step_without_memory_is_that_of_spectral_descent():
    """Also at e^-5000, and where gradients have a direction less than rows."""
    random = np.random.default_rng(1)
    gradients = [
        (jnp.asarray(np.outer(random.normal(size=3), random.normal(size=3))), jnp.asarray(-5000.0)),
        (jnp.asarray(random.normal(size=(3, 3))), jnp.asarray(-4000.0)),
    ]
    found = run(muon(0.1, 0.0, method="exact"), gradients, jnp.zeros((3, 3)))
    for update, (mantissa, _) in zip(found, gradients, strict=True):
        expected = -0.1 * Spectral().steepest_descent_direction(mantissa)
        np.testing.assert_allclose(update, expected, atol=1e-13)


def test_the_coefficients_of_optax_give_its_steps():
    random = np.random.default_rng(2)
    gradients = [(jnp.asarray(random.normal(size=(3, 2))), None) for _ in range(2)]
    theirs = optax.contrib.muon(0.1, ns_coeffs="dion", beta=0.9, eps=0.0, nesterov=False)
    expected = run(theirs, gradients, jnp.zeros((3, 2)))
    found = run(muon(0.1, 0.9, coefficients="dion", nesterov=False), gradients, jnp.zeros((3, 2)))
    np.testing.assert_allclose(found, expected, atol=1e-14)


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
    exact = named_optimizer("muon:method=exact,nesterov=false,momentum=0.5")
    assert exact is muon(0.1, 0.5, method="exact", nesterov=False)
    assert exact.settings["method"] == "exact" and exact.log_time_step is None
    own = [(2.0, -1.5, 0.5), (1.5, -0.5, 0.0)]
    assert named_optimizer("muon:coefficients=2/-1.5/0.5:1.5/-0.5/0") is muon(0.1, coefficients=own)
    approximate = named_optimizer("spectral:method=newton-schulz,coefficients=you")
    assert approximate.settings["iterations"] == 6


@pytest.mark.parametrize(
    "bad",
    [
        {"momentum": 1.0},
        {"newton_schulz_iterations": 0},
        {"nesterov": "yes"},
        {"bias_correction": 1},
        {"shape_factor": None},
        {"method": "svd"},
        {"coefficients": "fast"},
        {"newton_schulz_iterations": 3, "method": "exact"},
    ],
    ids=str,
)
def test_arguments_are_checked(bad):
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        muon(0.1, **bad)

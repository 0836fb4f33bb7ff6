"""Settings of NumPy and JAX that users have, which must change nothing here."""

import contextlib
import pickle

import jax
import numpy as np
import pytest

import attractor as at
from attractor.prompts.finite_length import output_error
from attractor.prompts.measures import Gaussian

TOKENS = at.Tokens(
    np.random.default_rng(1).normal(size=(2, 3, 3)),
    queries=np.random.default_rng(2).normal(size=(2, 3)),
    labels=[1, -1],
)
HEAD = at.LinearHead([1, -1, 0.5])
SETTINGS = {
    "numpy": lambda: np.errstate(all="raise"),
    "ranks": lambda: jax.numpy_rank_promotion("raise"),
    "types": lambda: jax.numpy_dtype_promotion("strict"),
    "infinities": lambda: jax.debug_infs(True),
    "not a number": lambda: jax.debug_nans(True),
    "transfers": lambda: jax.transfer_guard("disallow"),
    "generator": lambda: jax.default_prng_impl("rbg"),
    "leaks": lambda: jax.checking_leaks(),
    "products": lambda: jax.default_matmul_precision("bfloat16"),
    "float64": lambda: jax.enable_x64(True),
    "eager": lambda: jax.disable_jit(),
}


def answers():
    """Numbers of solving, training, verifying, flows and prompts, in one list."""
    problem = at.MarginProblem.from_selection(TOKENS, at.optimal_tokens(TOKENS, HEAD))
    solution = at.solve(problem)
    optimizer = at.normalized_gradient_descent(0.1)
    run = at.train(TOKENS, HEAD, optimizer, steps=5, batch_size=1, seeds=2)
    verdict = at.verify(run, solution)
    flow = at.gradient_flow(TOKENS, HEAD, time=1.0)
    law = Gaussian(np.zeros(3), np.eye(3))
    numbers = [solution.W, run.W(), flow.W(), verdict.to_xarray()["correlation"].to_numpy()]
    return [*numbers, law.tilted_mean(np.full(3, 20.0)), output_error(np.array([1.0, 40.0]), 100)]


@pytest.fixture(scope="module")
def expected():
    return answers()


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_the_user_change_nothing_and_come_back(expected, name):
    jax_before = jax.config.values
    with SETTINGS[name]():
        before = np.geterr(), jax.config.values
        for found, wanted in zip(answers(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        assert (np.geterr(), jax.config.values) == before
    assert jax.config.values == jax_before


def test_methods_have_the_settings_too(tmp_path):
    problem = at.MarginProblem.from_selection(TOKENS, at.optimal_tokens(TOKENS, HEAD))
    with np.errstate(all="raise"):
        at.solve(problem).save_certificate(tmp_path / "certificate.npz")
        assert not np.any(TOKENS.scores(np.full((3, 3), 1e-320)) > 1e-300)


@pytest.mark.long
def test_optimizers_have_them_in_training_of_the_users():
    weights = {"W": jax.numpy.ones((3, 4))}
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        for optimizer in (at.spectral_descent(0.1), at.adam(0.1)):
            optimizer.update(weights, optimizer.init(weights), weights)


@pytest.mark.long
def test_what_is_known_is_computed_inside_jit():
    wanted = at.train(TOKENS, HEAD, at.adam(0.1), steps=2).W()

    @jax.jit
    def shifted(number):
        run = at.train(TOKENS, HEAD, at.adam(0.1), steps=2)
        return run.W() + number

    np.testing.assert_allclose(shifted(0.0), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("left", lambda x: at.MarginProblem(x, x)),
        ("keys", lambda x: at.Tokens.causal(x[None])),
        ("learning_rate", lambda x: at.train(TOKENS, HEAD, at.adam(x[0, 0]), steps=2)),
        ("W", lambda x: TOKENS.scores(x)),
    ],
)
def test_what_jit_does_not_know_yet_is_named(argument, call):
    def fails(x):
        with pytest.raises(at.InvalidInputError, match=r"outside of jax.jit") as caught:
            call(x)
        assert caught.value.argument == argument
        return x

    jax.jit(fails)(np.eye(3))


def test_functions_can_be_pickled_and_keep_what_they_say_of_themselves():
    assert pickle.loads(pickle.dumps(at.solve)) is at.solve
    assert at.solve.__module__ == "attractor.margin._solve"


@pytest.mark.long
def test_warnings_name_the_line_that_led_to_them():
    with pytest.warns(at.support.errors.PrecisionWarning) as found, contextlib.suppress(ValueError):
        at.train(TOKENS, HEAD, at.adam(0.1), steps=1, dtype="float32")
    assert found[0].filename == __file__

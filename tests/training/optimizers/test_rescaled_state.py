import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest

from attractor.attention.scaled import Scaled
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers.declared import with_rescaled_state

PARAMETERS = {"a": np.arange(6.0).reshape(2, 3) - 2.5, "b": np.array([1.0, -2.0])}
RATE = optax.scale_by_learning_rate(0.1)

RIGHT = {
    "adam": (optax.adam(0.1, eps=0.0), "entry"),
    "adamax": (optax.adamax(0.1, eps=0.0), "entry"),
    "adamw": (optax.adamw(0.1, eps=0.0), "entry"),
    "amsgrad": (optax.chain(optax.scale_by_amsgrad(eps=0.0), RATE), "entry"),
    "lion": (optax.lion(0.1), "entry"),
    "nadam": (optax.nadam(0.1, eps=0.0), "entry"),
    "rms": (optax.chain(optax.scale_by_rms(eps=0.0), RATE), "entry"),
    "adagrad": (optax.adagrad(0.1, initial_accumulator_value=0.0, eps=0.0), "entry"),
    "sgd of a schedule": (optax.sgd(optax.linear_schedule(0.1, 0.0, 10), momentum=0.9), "tree"),
    "sign of momentum": (optax.chain(optax.trace(0.9), optax.scale_by_sign(), RATE), "entry"),
    "trace": (optax.trace(0.9, nesterov=True), "leaf"),
    "trust ratio": (optax.chain(optax.trace(0.9), optax.scale_by_trust_ratio()), "leaf"),
}

LIKE_ADAM = ("adamax", "adamw", "amsgrad", "nadam")
"""Close relatives of one that is tested by default."""

REFUSED = {
    "adam with eps": (optax.adam(0.1), "entry"),
    "adadelta": (optax.adadelta(0.1), "entry"),
    "adagrad with eps": (optax.adagrad(0.1), "entry"),
    "clip": (optax.clip(1.0), "tree"),
    "clip_by_global_norm": (optax.clip_by_global_norm(1.0), "tree"),
    "decay before momentum": (
        optax.chain(optax.add_decayed_weights(0.1), optax.trace(0.9)),
        "tree",
    ),
    "muon with eps": (optax.contrib.muon(0.1), "leaf"),
    "muon by entry": (optax.contrib.scale_by_muon(eps=0.0), "entry"),
    "noise": (optax.chain(optax.add_noise(0.1, 0.5, 0), optax.trace(0.9)), "tree"),
    "nothing": (optax.set_to_zero(), "tree"),
    "norm by entry": (optax.chain(optax.trace(0.9), optax.scale_by_trust_ratio()), "entry"),
    "rms with eps": (optax.scale_by_rms(), "entry"),
}


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def gradients(steps=4):
    random = np.random.default_rng(3)
    return [
        {name: random.normal(size=leaf.shape) for name, leaf in PARAMETERS.items()}
        for _ in range(steps)
    ]


def scaled(gradient, log_scale, by):
    def lift(leaf):
        shape = leaf.shape if by == "entry" else ()
        return Scaled(jnp.asarray(leaf), jnp.full(shape, float(log_scale)))

    return jax.tree.map(lift, gradient)


def updates_of(transformation, sequence):
    parameters = jax.tree.map(jnp.asarray, PARAMETERS)
    state, found = transformation.init(parameters), []
    for gradient in sequence:
        update, state = transformation.update(gradient, state, parameters)
        found.append(jax.tree.map(np.asarray, update))
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LIKE_ADAM else ()) for name in RIGHT],
)
def test_it_is_the_transformation_itself_and_goes_on_where_that_ends(name):
    transformation, by = RIGHT[name]
    optimizer = with_rescaled_state(transformation, geometry=None, by=by)
    plain = [jax.tree.map(jnp.asarray, gradient) for gradient in gradients()]
    expected = updates_of(transformation, plain)
    for sequence in (plain, [scaled(gradient, 0, by) for gradient in gradients()]):
        for found, wanted in zip(updates_of(optimizer, sequence), expected, strict=True):
            jax.tree.map(np.testing.assert_array_equal, found, wanted)  # bit for bit

    tiny = updates_of(optimizer, [scaled(gradient, -5000, by) for gradient in gradients()])
    of_degree_zero = any(leaf.any() for leaf in jax.tree.leaves(tiny))
    for found, wanted in zip(tiny, expected, strict=True):
        for step, full in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(step, full if of_degree_zero else 0, rtol=1e-11)
    assert of_degree_zero == (name not in ("trace", "sgd of a schedule"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_scale_with_the_gradient_is_refused(name):
    transformation, by = REFUSED[name]
    parameters = PARAMETERS["a"] if name == "muon by entry" else PARAMETERS
    optimizer = with_rescaled_state(transformation, geometry=None, by=by)
    with pytest.raises(InvalidInputError, match="transformation"):
        optimizer.init(jax.tree.map(jnp.asarray, parameters))


def test_memory_of_true_magnitude_across_jumps_of_the_scale():
    """m <- m / 2 + g at magnitudes e^300, e^-1700, e^-100 and e^200, one after another."""
    logs = [300.0, -1700.0, -1700.0, -100.0, 200.0, -1700.0]
    optimizer = with_rescaled_state(optax.trace(0.5), geometry=None)
    parameters = jnp.zeros(2)
    state, memory = optimizer.init(parameters), np.zeros(2)
    for log in logs:
        mantissa = np.array([1.0, -2.0])
        memory = memory / 2 + mantissa * np.exp(log)
        update, state = optimizer.update(
            Scaled(jnp.asarray(mantissa), jnp.asarray(log)), state, parameters
        )
        np.testing.assert_allclose(update, memory, rtol=1e-12)


def test_a_memory_far_below_the_range_of_floating_point_is_kept():
    optimizer = with_rescaled_state(optax.trace(0.5), geometry=None)
    state = optimizer.init(jnp.zeros(1))
    for _ in range(3):
        one = Scaled(jnp.ones(1), jnp.asarray(-3000.0))
        update, state = optimizer.update(one, state, jnp.zeros(1))
        assert update[0] == 0  # the true magnitude underflows
    (trace,) = jax.tree.leaves(state.memory)
    log = np.log(trace[0]) + state.exponents[0] * np.log(2)
    np.testing.assert_allclose(log, np.log(1.75) - 3000, atol=1e-11)


def test_arrays_and_entries_have_units_of_their_own():
    gradient = {"a": Scaled(jnp.ones((2, 3)), jnp.asarray(-4000.0)), "b": Scaled(jnp.ones(2), 0.0)}
    by_leaf = with_rescaled_state(RIGHT["trust ratio"][0], geometry=None, by="leaf")
    update, _ = by_leaf.update(gradient, by_leaf.init(PARAMETERS), PARAMETERS)
    assert (update["a"] != 0).all() and (update["b"] != 0).all()
    logs = jnp.array([[0.0, -1000, -3000], [2000, 5000, -5000]])
    gradient = {"a": Scaled(jnp.ones((2, 3)), logs), "b": Scaled(jnp.ones(2), jnp.zeros(2))}
    by_entry = with_rescaled_state(RIGHT["adam"][0], geometry=None, by="entry")
    update, _ = by_entry.update(gradient, by_entry.init(PARAMETERS), PARAMETERS)
    np.testing.assert_allclose(update["a"], -0.1, rtol=1e-12)


def test_lower_precision_keeps_squares_in_range():
    optimizer = with_rescaled_state(RIGHT["adam"][0], geometry=None, by="entry")
    parameters = jnp.zeros(3, "float32")
    for log in (0.0, -60.0, -400.0, 300.0):
        state = optimizer.init(parameters)
        for _ in range(3):
            number = Scaled(jnp.array([1, -2, 3e-3], "float32"), jnp.full(3, log, "float32"))
            update, state = optimizer.update(number, state, parameters)
            assert update.dtype == jnp.float32
            np.testing.assert_allclose(update, [-0.1, 0.1, -0.1], rtol=1e-4)


def test_inside_compiled_loops_over_several_trials():
    optimizer = with_rescaled_state(RIGHT["adam"][0], geometry=None, by="entry")

    def trial(start, log):
        def step(carry, _):
            number = Scaled(carry[0], jnp.full(3, log))
            update, state = optimizer.update(number, carry[1], carry[0])
            return (carry[0] + update, state), None

        return jax.lax.scan(step, (start, optimizer.init(start)), None, length=5)[0][0]

    starts = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3)))
    logs = jnp.array([0.0, -3000.0])
    together = jax.jit(jax.vmap(trial))(starts, logs)
    alone = trial(starts[1], 0.0)
    np.testing.assert_allclose(together[1], alone, rtol=1e-10)


def test_arguments_are_checked():
    with pytest.raises(InvalidInputError, match="by"):
        with_rescaled_state(optax.trace(0.9), geometry=None, by="row")
    with pytest.raises(InvalidInputError, match="transformation"):
        with_rescaled_state(3, geometry=None)

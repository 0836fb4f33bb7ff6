"""What holds of every optimizer that is a formula."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention.scaled import Scaled
from attractor.geometry import Frobenius, Lp, Schatten, Spectral
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers import (
    Optimizer,
    declare,
    gradient_descent,
    greedy_coordinate_descent,
    mirror_descent,
    normalized_gradient_descent,
    polyak_step,
    schatten_mirror_descent,
    sign_descent,
    spectral_descent,
    steepest_descent,
)

MAKERS = {
    "gradient descent": (gradient_descent, {}, Frobenius()),
    "normalized gradient descent": (normalized_gradient_descent, {}, Frobenius()),
    "each factor normalized": (normalized_gradient_descent, {"per_factor": True}, Frobenius()),
    "Polyak": (polyak_step, {}, Frobenius()),
    "signs": (sign_descent, {}, Lp(np.inf)),
    "greedy": (greedy_coordinate_descent, {}, Lp(1)),
    "spectral": (spectral_descent, {}, Spectral()),
    "Newton-Schulz": (spectral_descent, {"method": "newton-schulz"}, Spectral()),
    "steepest l_1": (steepest_descent, {"geometry": "l_1"}, Lp(1)),
    "steepest l_1.5": (steepest_descent, {"geometry": Lp(1.5)}, Lp(1.5)),
    "steepest l_3": (steepest_descent, {"geometry": Lp(3)}, Lp(3)),
    "steepest nuclear": (steepest_descent, {"geometry": "nuclear"}, Schatten(1)),
    "steepest schatten": (steepest_descent, {"geometry": "schatten_3"}, Schatten(3)),
    "mirror": (mirror_descent, {}, Lp(1.5)),
    "mirror p = 8": (mirror_descent, {"p": 8}, Lp(8)),
    "mirror p = 1.01": (mirror_descent, {"p": 1.01}, Lp(1.01)),
    "mirror together": (mirror_descent, {"p": 3, "per_factor": False}, Lp(3)),
    "raw mirror": (mirror_descent, {"p": 1.75, "normalize": False}, Lp(1.75)),
    "Schatten mirror": (schatten_mirror_descent, {"p": 1.75}, Schatten(1.75)),
    "Schatten mirror together": (
        schatten_mirror_descent,
        {"p": 3, "per_factor": False},
        Schatten(3),
    ),
}
DIRECTIONS = {"global", "per_array", "per_entry", "log_per_entry"}
LEAVES = {"matrix": (3, 4), "vector": (3,)}


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


@pytest.fixture(params=MAKERS, ids=str)
def made(request):
    make, settings, _ = MAKERS[request.param]
    return make(0.1, **settings)


def tree(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return {name: jnp.asarray(scale * rng.normal(size=shape)) for name, shape in LEAVES.items()}


def further(optimizer, log_excess=-1.0):
    return {"log_excess": jnp.asarray(log_excess)} if optimizer.needs else {}


def scaled(optimizer, gradient, log_scale):
    def apply(leaf):
        shape = leaf.shape if optimizer.by_entry else ()
        return Scaled(leaf, jnp.full(shape, log_scale))

    return jax.tree.map(apply, gradient)


def assert_close(found, wanted, rtol=1e-12, atol=1e-13):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol), found, wanted)


@pytest.mark.parametrize("name", MAKERS)
def test_it_declares_its_geometry_and_is_made_once(name):
    make, settings, geometry = MAKERS[name]
    optimizer = make(0.1, **settings)
    assert isinstance(optimizer, Optimizer) and isinstance(
        optimizer, optax.GradientTransformationExtraArgs
    )
    assert optimizer.geometry == geometry
    assert make(0.1, **settings) is optimizer and make(0.2, **settings) is not optimizer
    assert make(0.1, **settings, weight_decay=0.5) is not optimizer
    assert repr(optimizer).startswith(optimizer.name) and "0.1" in repr(optimizer)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "fast", None])
def test_its_length_is_a_positive_number_and_its_decay_no_less_than_zero(name, bad):
    make, settings, _ = MAKERS[name]
    with pytest.raises(InvalidInputError, match=r"learning_rate|scale"):
        make(bad, **settings)
    if bad != 0:
        with pytest.raises(InvalidInputError, match="weight_decay"):
            make(0.1, **settings, weight_decay=bad)


def test_a_zero_gradient_takes_a_zero_step(made):
    parameters = tree(0)
    zero = jax.tree.map(jnp.zeros_like, parameters)
    memory = made.init(parameters)
    updates, _ = made.update(zero, memory, parameters, **further(made))
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(updates))
    for log_scale in (0.0, -jnp.inf):
        kept, _ = made.step(scaled(made, zero, log_scale), memory, parameters, **further(made))
        jax.tree.map(np.testing.assert_array_equal, kept, parameters)
    # The same of one leaf among others, where each is normalized by itself.
    part = tree(1) | {"matrix": jnp.zeros((3, 4))}
    updates, _ = made.update(part, memory, parameters, **further(made))
    assert (updates["matrix"] == 0).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(updates))


def test_the_size_of_a_gradient_matters_exactly_to_those_that_say_so(made):
    parameters, gradient = tree(0), tree(1)
    memory = made.init(parameters)

    def moved(log_scale):
        size = scaled(made, gradient, log_scale)
        return made.step(size, memory, parameters, **further(made))[0]

    here = moved(0.0)
    for log_scale in (-5000.0, 5000.0):
        there = moved(log_scale)
        if made.gradient_scale in DIRECTIONS:
            assert_close(there, here)
        elif log_scale < 0 and made.gradient_scale == "absolute":
            assert_close(there, parameters, rtol=1e-13)


def test_its_own_loop_and_anybody_elses_agree(made):
    target = tree(2)

    def loss(at):
        return sum(((leaf - target[name]) ** 2).sum() / 2 for name, leaf in at.items())

    def elsewhere(parameters, memory):
        value, slope = jax.value_and_grad(loss)(parameters)
        updates, memory = made.update(slope, memory, parameters, **further(made, jnp.log(value)))
        return optax.apply_updates(parameters, updates), memory

    def here(parameters, memory):
        value, slope = jax.value_and_grad(loss)(parameters)
        return made.step(
            scaled(made, slope, 0.0), memory, parameters, **further(made, jnp.log(value))
        )

    runs = []
    for step in (elsewhere, here):
        parameters = tree(0)
        memory = made.init(parameters)
        for _ in range(3):
            parameters, memory = step(parameters, memory)
        runs.append(parameters)
    if made is not mirror_descent(0.1, 1.01):  # for which this step is far too long
        assert loss(runs[0]) < loss(tree(0))
    assert_close(runs[0], runs[1], rtol=1e-8)


def test_a_batch_of_trials_is_each_alone(made):
    parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), tree(0), tree(1))
    gradients = jax.tree.map(lambda *leaves: jnp.stack(leaves), tree(2), tree(3))

    def one(parameters, gradient):
        memory = made.init(parameters)
        return made.update(gradient, memory, parameters, **further(made))[0]

    together = jax.jit(jax.vmap(one))(parameters, gradients)
    for trial, (start, slope) in enumerate([(tree(0), tree(2)), (tree(1), tree(3))]):
        of_trial = {name: leaf[trial] for name, leaf in together.items()}
        assert_close(of_trial, one(start, slope), rtol=1e-10)


@pytest.mark.parametrize("name", MAKERS)
def test_weight_decay_is_a_multiple_of_the_parameters_on_the_gradient(name):
    make, settings, _ = MAKERS[name]
    plain, decayed = make(0.1, **settings), make(0.1, **settings, weight_decay=0.3)
    parameters, gradient = tree(0), tree(1)
    memory = plain.init(parameters)
    total = jax.tree.map(lambda g, w: g + 0.3 * w, gradient, parameters)
    wanted, _ = plain.update(total, memory, parameters, **further(plain))
    found, _ = decayed.update(gradient, memory, parameters, **further(plain))
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    stepped, _ = decayed.step(scaled(plain, gradient, 0.0), memory, parameters, **further(plain))
    assert_close(stepped, optax.apply_updates(parameters, wanted), rtol=1e-9)
    assert decayed.settings["weight_decay"] == 0.3 and "weight_decay" not in plain.settings
    with pytest.raises(InvalidInputError, match="params"):
        decayed.update(gradient, memory)


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "Polyak"])
def test_chains_of_optax_transformations_can_be_declared(name):
    make, settings, _ = MAKERS[name]
    made = make(0.1, **settings)
    parameters, gradient = tree(0), tree(1)
    chain = optax.chain(optax.clip(0.2), optax.add_noise(0.01, 0.5, 0), made)
    optimizer = declare(chain, geometry=made.geometry, name="clipped, with noise")
    memory = optimizer.init(parameters)
    # What comes before it in the chain, by itself:
    before = optax.chain(optax.clip(0.2), optax.add_noise(0.01, 0.5, 0))
    seen, _ = before.update(gradient, before.init(parameters))
    wanted, _ = made.update(seen, made.init(parameters), parameters)
    found, _ = optimizer.step(scaled(gradient_descent(0.1), gradient, 0.0), memory, parameters)
    assert_close(found, optax.apply_updates(parameters, wanted))


def test_a_schedule_may_follow_those_that_remember_nothing():
    schedule = optax.piecewise_constant_schedule(1.0, {1: 0.5})
    for make in (gradient_descent, normalized_gradient_descent, sign_descent):
        chain = optax.chain(make(0.1), optax.scale_by_schedule(schedule))
        memory = chain.init(tree(0))
        first, memory = chain.update(tree(1), memory, tree(0))
        second, _ = chain.update(tree(1), memory, tree(0))
        assert_close(second, jax.tree.map(lambda leaf: leaf / 2, first))


def test_arrays_of_any_shape_are_matrices(made):
    # A number is a matrix of one entry, a vector one column; further axes count as columns.
    shapes = {"number": ((), (1, 1)), "block": ((3, 2, 2), (3, 4)), "vector": ((3,), (3, 1))}
    for shape, as_matrix in shapes.values():
        parameters, gradient = (
            {"matrix": jnp.asarray(np.random.default_rng(seed).normal(size=shape))}
            for seed in (4, 5)
        )
        flat = [{"matrix": t["matrix"].reshape(as_matrix)} for t in (parameters, gradient)]
        wanted, _ = made.update(flat[1], made.init(flat[0]), flat[0], **further(made))
        found, _ = made.update(gradient, made.init(parameters), parameters, **further(made))
        assert found["matrix"].shape == shape
        assert_close(found["matrix"].reshape(as_matrix), wanted["matrix"])


def test_what_is_not_a_number_shows(made):
    parameters, gradient = tree(0), tree(1)
    gradient["matrix"] = gradient["matrix"].at[1, 2].set(jnp.nan)
    updates, _ = made.update(gradient, made.init(parameters), parameters, **further(made))
    assert np.isnan(updates["matrix"]).any()

"""Different optimizers for different parameters, each as by itself on its own arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.attention.scaled import Scaled
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers import by_parameter, polyak_step

PARAMETERS = {
    "K": np.ones((3, 2)),
    "Q": np.ones((2, 2)),
    "bias": np.ones(2),
    "head": {"weight": np.ones(3)},
}


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


@pytest.fixture(scope="module")
def data():
    return drawn(USUAL)


def tree(seed, like=PARAMETERS):
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)), like)


def scaled(gradient, *logs):
    """A gradient whose entries have scales of their own, array by array."""
    leaves, structure = jax.tree.flatten(gradient)
    pairs = zip(leaves, logs, strict=True)
    return structure.unflatten([Scaled(leaf, jnp.full(leaf.shape, log)) for leaf, log in pairs])


def compiled_step(optimizer):
    """Its step as one program: called as it is, it compiles every operation."""

    @jax.jit
    def step(mantissas, log_scales, memory, parameters, further):
        gradient = jax.tree.map(Scaled, mantissas, log_scales)
        return optimizer.step(gradient, memory, parameters, **further)

    def take(gradient, memory, parameters, **further):
        mantissas = jax.tree.map(lambda leaf: leaf.mantissa, gradient)
        log_scales = jax.tree.map(lambda leaf: leaf.log_scale, gradient)
        return step(mantissas, log_scales, memory, parameters, further)

    return take


def test_each_part_takes_its_own_steps_at_every_magnitude():
    """Two steps, the second e^-2000 smaller; the parts read gradients in different ways."""
    own = {
        "K": at.muon(0.1, weight_decay=0.2),
        "Q": at.normalized_gradient_descent(0.1),
        "bias": at.adam(0.3),
        "head": at.mirror_descent(0.1, p=3),
    }
    hybrid = by_parameter({name: own[name] for name in ("K", "Q", "head")}, default=own["bias"])
    assert hybrid.by_entry and hybrid.geometry is None and hybrid.log_time_step is None
    found, alone = tree(0), tree(0)
    memory = hybrid.init(found)
    memories = {name: own[name].init({name: leaf}) for name, leaf in alone.items()}
    step, steps = compiled_step(hybrid), {name: compiled_step(each) for name, each in own.items()}
    for number, log in enumerate([(-5000.0, 3.0, 8.0, -4000.0), (-7000.0, 1.0, 7.0, -6000.0)]):
        gradient = scaled(tree(1 + number), *log)
        found, memory = step(gradient, memory, found)
        for name, optimizer in own.items():
            seen = {name: gradient[name]}
            if not optimizer.by_entry:
                seen = jax.tree.map(lambda leaf: Scaled(leaf.mantissa, leaf.log_scale.max()), seen)
            moved, memories[name] = steps[name](seen, memories[name], {name: alone[name]})
            alone[name] = moved[name]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13), found, alone)


def test_in_a_loop_of_optax_it_is_optax_partition():
    hybrid = by_parameter({"K": at.sign_descent(0.1), "Q": at.sign_descent(0.1)}, at.momentum(0.2))
    labels = {"K": "signs", "Q": "signs", "bias": "rest", "head": {"weight": "rest"}}
    theirs = optax.partition(
        {"signs": optax.sign_sgd(0.1), "rest": optax.sgd(0.2, momentum=0.9)}, labels
    )
    found, expected = tree(0), tree(0)
    mine, other = hybrid.init(found), theirs.init(expected)
    step, their_step = jax.jit(hybrid.update), jax.jit(theirs.update)
    for seed in (1, 2):
        update, mine = step(tree(seed), mine, found)
        found = optax.apply_updates(found, update)
        update, other = their_step(tree(seed), other, expected)
        expected = optax.apply_updates(expected, update)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.long
def test_numbers_of_the_parts_are_axes_and_data(data):
    hybrid = by_parameter({"W": at.muon([0.01, 0.1], 0.5)}, "adam:b1=0.5,learning_rate=0.2")
    assert hybrid.axes == {"W_learning_rate": (0.01, 0.1)}
    assert hybrid.hyperparameters["default_b1"] == 0.5
    one = by_parameter({"W": at.muon(0.1, 0.5)}, at.adam(0.2, 0.5))
    assert one.example is hybrid.example and one is by_parameter(
        {"W": at.muon(0.1, 0.5)}, at.adam(0.2, 0.5)
    )
    options = {"steps": 20, "parameterization": "(v, W)"}
    together, alone = at.train(*data, hybrid, **options), at.train(*data, one, **options)
    kept = together.sel(W_learning_rate=0.1)
    np.testing.assert_array_equal(kept.data["W"], alone.data["W"])
    assert kept.settings["optimizer"] == alone.settings["optimizer"] == one.settings
    assert one.settings["W_optimizer"] == "Muon" and one.settings["default_learning_rate"] == 0.2
    assert alone.optimizer_name == "Muon (W), Adam, eps = 0 (default)"
    assert np.isnan(alone.data["log_time"]).all() and alone.geometry == "not known"


@pytest.mark.long
def test_factors_are_called_as_their_arrays(data):
    """The same for both factors is the optimizer itself, as it treats arrays apart."""
    parts = {"K": at.spectral_descent(0.1), "Q": at.spectral_descent(0.1)}
    options = {"steps": 5, "parameterization": "KQ", "record": [5]}
    apart = at.train(*data, by_parameter(parts), **options)
    together = at.train(*data, at.spectral_descent(0.1), **options)
    np.testing.assert_allclose(apart.data["W"], together.data["W"], rtol=1e-12)


def test_what_a_part_needs_is_handed_over_to_it_alone():
    hybrid = by_parameter({"K": polyak_step()}, at.sign_descent(0.1))
    assert hybrid.needs == {"log_excess"} and by_parameter({"K": polyak_step()}).needs
    gradient, start = scaled(tree(1), 0.0, 0.0, 0.0, 0.0), tree(0)
    found, _ = compiled_step(hybrid)(
        gradient, hybrid.init(start), start, log_excess=jnp.asarray(1.0)
    )
    alone, _ = compiled_step(polyak_step())(
        {"K": gradient["K"]}, polyak_step().init({"K": start["K"]}), {"K": start["K"]},
        log_excess=jnp.asarray(1.0),
    )  # fmt: skip
    np.testing.assert_allclose(found["K"], alone["K"], rtol=1e-14)
    np.testing.assert_array_equal(found["Q"], start["Q"] - 0.1 * jnp.sign(gradient["Q"].mantissa))


@pytest.mark.parametrize(
    ("parts", "default", "words"),
    [
        ({}, None, "parts: it is empty"),
        ({"K": 3}, None, "K"),
        ({"K": "no such"}, None, "optimizer"),
        ({3: at.adam(0.1)}, None, "parts: 3"),
        ({"default": at.adam(0.1)}, at.adam(0.1), "default"),
        ({"a.b": at.adam(0.1), "a-b": at.adam(0.1)}, None, "marks"),
        ({"V": at.adam(0.1)}, at.adam(0.1), "no parameter is called 'V'"),
        ({"K": at.adam(0.1)}, None, "Q has no optimizer"),
        ({"head": at.adam(0.1), "weight": at.adam(0.2)}, at.adam(0.1), "two optimizers"),
    ],
)
def test_names_that_fit_nothing_are_refused(parts, default, words):
    with pytest.raises(InvalidInputError, match=words):
        by_parameter(parts, default).init(tree(0))

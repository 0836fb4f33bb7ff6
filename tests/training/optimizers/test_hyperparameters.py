"""Hyperparameters as data: one compilation for all values, and the numbers of single runs."""

import functools
import inspect

import jax
import numpy as np
import optax
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.support.errors import InvalidInputError
from attractor.training import optimizers

LISTED = {
    "gradient_descent": {"learning_rate": [0.1, 0.4], "weight_decay": [1e-3, 0.1]},
    "normalized_gradient_descent": {"learning_rate": [0.1, 0.4], "eps": [1e-3, 0.1]},
    "momentum": {"learning_rate": [0.1, 0.4], "decay": [0.5, 0.9]},
    "normalized_momentum": {"learning_rate": [0.1, 0.4], "decay": [0.5, 0.9]},
    "sign_momentum": {"learning_rate": [0.1, 0.4], "decay": [0.5, 0.9]},
    "lion": {"learning_rate": [0.1, 0.4], "b1": [0.5, 0.9], "b2": [0.9, 0.99]},
    "adam": {"learning_rate": [0.1, 0.4], "b1": [0.5, 0.9], "eps": [1e-8, 1e-2]},
    "muon": {"learning_rate": [0.1, 0.4], "momentum": [0.5, 0.9]},
    "sign_descent": {"learning_rate": [0.1, 0.4]},
    "greedy_coordinate_descent": {"learning_rate": [0.1, 0.4]},
    "steepest_descent": {"learning_rate": [0.1, 0.4]},
    "spectral_descent": {"learning_rate": [0.1, 0.4]},
    "mirror_descent": {
        "learning_rate": [0.1, 0.4], "eps": [1e-3, 0.1], "momentum": [0.5, 0.9],
        "dual_weight_decay": [1e-3, 0.1],
    },
    "schatten_mirror_descent": {"learning_rate": [0.1, 0.4], "momentum": [0.5, 0.9]},
    "composed_spectral_descent": {"learning_rate": [0.1, 0.4]},
    "polyak_step": {"scale": [0.5, 1.0]},
}  # fmt: skip
FIXED = {"steepest_descent": {"geometry": "l_3"}}
TRAINED = {"composed_spectral_descent": "KQ"}
RATE = {"learning_rate": 0.1}
STRUCTURE = {
    "p": "the exponent is the norm that is descended: there is one a run, which verify solves in",
    "geometry": "as the exponent",
    "normalize": "it says whether a division is compiled",
    "per_factor": "it says which sums are compiled",
    "nesterov": "it says whether a term is compiled",
    "method": "it names an algorithm",
    "newton_schulz_iterations": "so many products are compiled one after another",
    "iterations": "as these",
    "coefficients": "as these",
    "bias_correction": "it says whether divisions are compiled",
    "shape_factor": "it says whether a factor is compiled",
}
"""The settings that are no data of a trial, and why."""


@pytest.fixture(scope="module")
def data():
    return drawn(USUAL)


def made(name, **settings):
    return getattr(optimizers, name)(**FIXED.get(name, {}), **settings)


def test_every_optimizer_is_tried_here():
    assert {entry.maker.__name__ for entry in optimizers.registered_optimizers()} == {*LISTED}


@pytest.mark.parametrize("entry", optimizers.registered_optimizers(), ids=lambda e: e.name)
def test_every_setting_is_data_of_a_trial_or_structure(entry):
    name = entry.maker.__name__
    for setting in inspect.signature(entry.maker).parameters:
        if setting not in STRUCTURE:
            values = (0.5, 0.75)
            plain = {} if setting == "learning_rate" or not entry.takes_learning_rate else RATE
            assert made(name, **plain, **{setting: values}).axes == {setting: values}


@pytest.mark.parametrize("name", LISTED)
def test_several_values_give_the_bits_of_single_runs(name, data, compiled):
    tokens, head = data
    settings = {"steps": 20, "seeds": 2, "parameterization": TRAINED.get(name, "W")}
    together = at.train(tokens, head, made(name, **LISTED[name]), **settings)
    assert together.data["loss"].dims[: len(LISTED[name])] == tuple(LISTED[name])
    count = len(compiled())
    for variant in (together.variants[0], together.variants[-1]):
        alone = at.train(tokens, head, made(name, **variant), **settings)
        chosen = together.sel(**variant)
        assert chosen.data.identical(alone.data)
        assert chosen.settings == alone.settings
    assert len(compiled()) == count


@pytest.mark.long
def test_thirty_learning_rates_from_ten_starts_compile_once(data, compiled):
    tokens, head = data
    rates = np.geomspace(1e-3, 1, 30)
    settings = {"steps": 7, "seeds": 10}
    together = at.train(tokens, head, at.momentum(rates, nesterov=True), **settings)
    assert sum("_advance" in name for name in compiled()) == 1
    count = len(compiled())
    runs = [at.train(tokens, head, at.momentum(rate, nesterov=True), **settings) for rate in rates]
    assert len(compiled()) == count
    for rate, run in zip(rates, runs, strict=True):
        assert together.sel(learning_rate=rate).data.identical(run.data)


@pytest.mark.long
def test_no_value_of_a_hyperparameter_but_zero_compiles_anew(data, compiled):
    tokens, head = data
    at.train(tokens, head, at.adam(0.1, 0.8, 0.95, weight_decay=0.1), steps=6)
    count = len(compiled())
    at.train(tokens, head, at.adam(0.3, 0.7, 0.9, weight_decay=0.2), steps=6)
    assert len(compiled()) == count
    at.train(tokens, head, at.adam(0.3, 0.7, 0.9), steps=6)
    assert len(compiled()) > count


def sgd(**numbers):
    return at.declare(optax.sgd, hyperparameters=numbers, geometry="frobenius", name="my own")


def test_the_numbers_of_a_declared_transformation_are_data(data, compiled):
    tokens, head = data
    values = {"learning_rate": [0.1, 0.2, 0.4], "momentum": [0.5, 0.9]}
    together = at.train(tokens, head, sgd(**values), steps=20, seeds=2)
    assert together.hyperparameters == ("learning_rate", "momentum")
    count = len(compiled())
    for variant in together.variants:
        alone = at.train(tokens, head, sgd(**variant), steps=20, seeds=2)
        chosen = together.sel(**variant)
        assert chosen.data.identical(alone.data) and chosen.settings == alone.settings
    assert len(compiled()) == count
    constant = at.declare(optax.sgd(0.2, 0.9), geometry="frobenius")
    plain = at.train(tokens, head, constant, steps=20, seeds=2)
    np.testing.assert_allclose(
        together.sel(learning_rate=0.2, momentum=0.9).W(), plain.W(), rtol=1e-12, atol=1e-15
    )


def test_a_declared_weight_decay_may_have_several_values():
    several = at.declare(
        optax.sgd, hyperparameters={"learning_rate": 0.1}, geometry=None, weight_decay=[0.1, 0.2]
    )
    assert several.axes == {"weight_decay": (0.1, 0.2)}
    assert several.settings == {"learning_rate": 0.1, "weight_decay": [0.1, 0.2]}
    assert sgd(learning_rate=0.1) is sgd(learning_rate=0.1)
    assert sgd(learning_rate=0.1).example is sgd(learning_rate=0.2).example


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"transformation": optax.sgd(0.1)}, "transformation: .*give the function that makes it"),
        ({"hyperparameters": {}}, "hyperparameters: .*names no numbers"),
        ({"hyperparameters": {"momentum": 2.0}}, "momentum: 2.0 is not"),
        ({"hyperparameters": {"my temperature": 2.0}}, "hyperparameters: .*names no numbers"),
        ({"hyperparameters": {"temperature": 2.0}}, "hyperparameters: .*called with temperature"),
        ({"hyperparameters": {"loss": 2.0}}, "hyperparameters: 'loss' is the name"),
        ({"hyperparameters": {"weight_decay": 0.1}}, "hyperparameters: 'weight_decay' is"),
        ({"settings": {"a": 1}}, "settings: hyperparameters are given"),
        ({"transformation": lambda learning_rate: 3}, "transformation: int is not an optax"),
        ({"transformation": optax.sgd, "weight_decay": -1.0}, "weight_decay: -1.0 is not"),
    ],
)
def test_what_a_transformation_cannot_be_made_of_is_refused(given, words):
    settings = {"transformation": optax.sgd, "hyperparameters": {"learning_rate": 0.1}} | given
    with pytest.raises(InvalidInputError, match=f"^{words}"):
        at.declare(**settings, geometry=None)


def test_several_exponents_are_several_runs():
    with pytest.raises(InvalidInputError, match=r"^p: .*Train once for each"):
        at.mirror_descent(0.1, p=[1.5, 3.0])


def test_settings_of_an_optimizer_with_several_values_say_so():
    several = at.momentum([0.1, 0.2], decay=0.5)
    assert several.axes == {"learning_rate": (0.1, 0.2)}
    assert several.variants == [
        {"learning_rate": 0.1, "decay": 0.5},
        {"learning_rate": 0.2, "decay": 0.5},
    ]
    assert repr(several) == "momentum(learning_rate=[0.1, 0.2], decay=0.5)"
    assert several.geometry == at.Frobenius()


def test_the_same_settings_give_the_same_object():
    assert at.adam(0.1) is at.adam(0.1)
    assert at.adam(0.1) is not at.adam(0.2)
    assert at.adam(0.1).example is at.adam(0.2).example
    assert at.adam(0.1).example is not at.adam(0.1, weight_decay=0.1).example


def test_traced_numbers_are_taken_in_loops_of_ones_own():
    start = jax.numpy.zeros((2, 2), "float32")
    gradient = jax.numpy.array([[1.0, -2.0], [0.5, 0.0]], "float32")

    def moved(rate):
        optimizer = at.momentum(rate)
        updates, _ = optimizer.update(gradient, optimizer.init(start), start)
        return optax.apply_updates(start, updates)

    found = jax.jit(jax.vmap(moved))(jax.numpy.array([0.1, 0.2], "float32"))
    for each, rate in zip(found, (0.1, 0.2), strict=True):
        alone = jax.jit(functools.partial(moved, rate))()  # a plain number there
        np.testing.assert_allclose(each, alone, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rate": []}, "learning_rate: .* names no value"),
        ({"learning_rate": [0.1, 0.1]}, "learning_rate: .* names a value twice"),
        ({"learning_rate": [0.1, -1.0]}, "learning_rate: -1.0 is not a positive number"),
        ({"learning_rate": [0.1, "a"]}, "learning_rate: 'a' is not"),
        ({"learning_rate": 0.1, "decay": [0.0, 0.9]}, "decay: zero .* another algorithm"),
        ({"learning_rate": 0.1, "decay": [0.5, 1.0]}, "decay: 1.0 is not"),
    ],
)
def test_values_that_cannot_be_used_are_refused(settings, words):
    with pytest.raises(InvalidInputError, match=words):
        at.momentum(**settings)


def test_what_takes_one_value_says_so(data):
    tokens, head = data
    several = at.gradient_descent([0.1, 0.2])
    words = "learning_rate: there are 2 values of it.* train"
    for refused in (
        lambda: several.init(np.zeros(3)),
        lambda: several.update(np.zeros(3), None),
        lambda: at.maps.basin_map(tokens[0], at.LinearHead(head.weight[0]), several),
    ):
        with pytest.raises(InvalidInputError, match=words):
            refused()


def test_a_metric_cannot_have_the_name_of_an_axis(data):
    tokens, head = data
    metrics = {"learning_rate": lambda seen: seen.loss}
    at.train(tokens, head, at.gradient_descent(0.1), steps=3, metrics=metrics)
    with pytest.raises(InvalidInputError, match="metrics: the name 'learning_rate'"):
        at.train(tokens, head, at.gradient_descent([0.1, 0.2]), steps=3, metrics=metrics)


def test_a_run_at_another_rate_does_not_go_on_from_a_checkpoint(data, tmp_path):
    tokens, head = data
    at.train(tokens, head, at.adam(0.1), steps=5, checkpoint=tmp_path / "run")
    with pytest.raises(InvalidInputError, match=r"learning_rate was 0.1 and is 0.2"):
        at.train(tokens, head, at.adam(0.2), steps=5, checkpoint=tmp_path / "run")
    at.train(tokens, head, at.adam([0.1, 0.2]), steps=5, checkpoint=tmp_path / "both")
    with pytest.raises(InvalidInputError, match=r"learning_rate was \[0.1, 0.2\]"):
        at.train(tokens, head, at.adam([0.1, 0.3]), steps=5, checkpoint=tmp_path / "both")

"""Keys and queries turned by an orthogonal matrix: what does not see it, and what does."""

import inspect

import numpy as np
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.attention.parameterization import KeyQueryFactors
from attractor.support.errors import InvalidInputError

GAUGE = 3
EXACT_MUON = "method" in inspect.signature(at.muon).parameters
INDEPENDENT = [
    at.gradient_descent(0.1),
    at.normalized_gradient_descent(0.01),
    at.spectral_descent(0.001),
    at.composed_spectral_descent(0.01),
    pytest.param(at.momentum(0.1), marks=pytest.mark.slow),
    pytest.param(at.normalized_momentum(0.01), marks=pytest.mark.slow),
    pytest.param(at.muon(0.01), marks=pytest.mark.slow),
    pytest.param(at.composed_spectral_descent(0.01, method="scaled"), marks=pytest.mark.slow),
    *([at.muon(0.001, method="exact")] if EXACT_MUON else []),
]
DEPENDENT = [at.sign_descent(0.01), at.sign_momentum(0.01), at.lion(0.01), at.adam(0.01)]


@pytest.fixture(scope="module")
def data():
    return drawn(USUAL)


def matrices(data, optimizer, steps, gauge):
    tokens, head = data
    run = at.train(
        tokens, head, optimizer, steps=steps, parameterization=at.KeyQuery(gauge=gauge),
        record=[0, steps], weights="all",
    )  # fmt: skip
    assert (run.data["steps_taken"] == steps).all()
    return run.data["W"].transpose("step", "instance", "seed", "row", "column").to_numpy()


def apart(one, other):
    """How far matrices are apart, as shares of their norms."""
    return np.linalg.norm(one - other, axis=(-2, -1)) / np.linalg.norm(one, axis=(-2, -1))


@pytest.mark.long
@pytest.mark.parametrize("optimizer", INDEPENDENT, ids=repr)
def test_a_thousand_steps_do_not_depend_on_it(data, optimizer):
    plain, turned = (matrices(data, optimizer, 1000, gauge) for gauge in (0, GAUGE))
    assert apart(plain[0], plain[1]).min() > 0.5  # they went somewhere
    assert apart(plain, turned).max() < 1e-10


@pytest.mark.long
@pytest.mark.parametrize("optimizer", DEPENDENT, ids=repr)
def test_the_first_step_depends_on_it(data, optimizer):
    plain, turned = (matrices(data, optimizer, 1, gauge) for gauge in (0, GAUGE))
    found = apart(plain, turned)
    assert found[0].max() < 1e-14 and found[1].min() > 0.01


def test_it_is_orthogonal_and_its_own_for_each_number():
    for width in (1, 2, 7):
        plain = KeyQueryFactors(np.eye(width), np.ones((3, width)))
        turned, other = (at.KeyQuery(gauge=number).in_gauge(plain) for number in (1, 2))
        np.testing.assert_allclose(turned.K.T @ turned.K, np.eye(width), atol=1e-14)
        np.testing.assert_array_equal(turned.Q, plain.Q @ turned.K)
        np.testing.assert_array_equal(turned.K, at.KeyQuery(gauge=1).in_gauge(plain).K)
        assert width == 1 or np.abs(turned.K - other.K).max() > 0.1
        assert at.KeyQuery().in_gauge(plain) is plain


def test_given_and_random_starts_are_turned_alike(data, compiled):
    tokens, head = data
    random = at.normalized_gradient_descent(0.1)
    settings = {"steps": 3, "weights": "all", "record": [0, 3]}
    plain = at.train(tokens, head, random, parameterization="KQ", **settings)
    count = len(compiled())
    layer = at.KeyQuery(gauge=GAUGE)
    turned = at.train(tokens, head, random, parameterization=layer, **settings)
    begun = {name: plain.data[name].sel(step=0).to_numpy() for name in "KQ"}
    factors = layer.in_gauge(KeyQueryFactors(**begun))
    initial = factors._asdict()
    given = at.train(tokens, head, random, parameterization="KQ", initial=initial, **settings)
    assert given.data.identical(turned.data)
    with pytest.raises(InvalidInputError, match="in_gauge") as refused:
        at.train(tokens, head, random, parameterization=layer, initial=begun, **settings)
    assert refused.value.argument == "initial"
    for name, start in factors._asdict().items():
        np.testing.assert_array_equal(turned.data[name].sel(step=0), start)
    assert turned.settings["gauge"] == GAUGE and "gauge" not in plain.settings
    assert len(compiled()) == count  # every gauge is the same program


def test_a_trained_head_starts_beside_turned_factors(data):
    tokens, head = data
    layers = [at.Joint(at.KeyQuery(gauge=gauge)) for gauge in (0, GAUGE)]
    plain, turned = (
        at.train(tokens, head, at.gradient_descent(0.1), steps=2, parameterization=layer)
        for layer in layers
    )
    assert turned.settings["gauge"] == GAUGE
    np.testing.assert_allclose(plain.W(), turned.W(), rtol=1e-12)


def test_a_checkpoint_is_of_one_gauge(data, tmp_path):
    tokens, head = data
    step = at.normalized_gradient_descent(0.1)
    settings = {"steps": 3, "checkpoint": tmp_path / "run", "checkpoint_every": 0}
    at.train(tokens, head, step, parameterization=at.KeyQuery(gauge=1), **settings)
    with pytest.raises(InvalidInputError, match="gauge was 1 and is 2"):
        at.train(tokens, head, step, parameterization=at.KeyQuery(gauge=2), **settings)


@pytest.mark.parametrize("gauge", [-1, 0.5, True, None])
def test_a_gauge_is_a_number(gauge):
    with pytest.raises(InvalidInputError, match="gauge"):
        at.KeyQuery(gauge=gauge)

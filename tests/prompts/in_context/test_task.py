"""Tasks of one's own: ten lines are enough, and wrong functions are named."""

import numpy as np
import pytest

from attractor.prompts import Gaussian
from attractor.prompts.in_context import InContextTask, built_in, risk_transfer
from attractor.support.errors import InvalidInputError


class SparseRegression(InContextTask):
    dimension = 6

    def draw(self, random, count):
        return random.standard_normal((count, 5)) * (random.random((count, 5)) < 0.3)

    def tokens(self, parameters, random, length):
        x = random.standard_normal((len(parameters), length, 5))
        return np.concatenate([x, x @ parameters[:, :, None]], axis=-1)

    def queries(self, parameters, random):
        x = random.standard_normal((len(parameters), 5))
        return np.pad(x, ((0, 0), (0, 1))), (x * parameters).sum(-1)


def changed(**methods):
    return type("Changed", (SparseRegression,), methods)()


def test_ten_lines_are_a_task_that_can_be_trained():
    found = risk_transfer(
        SparseRegression(), (4, 16), (0, 1), tasks=32, held_out=64, limit_tokens=64
    )
    assert found.about == "SparseRegression" and "many tokens, off by about" in str(found)
    risk = found.data["training_risk"]
    assert (risk.isel(time=1) < risk.isel(time=0)).all()


def test_the_same_seed_draws_the_same_and_lengths_share_tokens():
    task = SparseRegression()
    first, again = (task.sample(8, 16, seed=4, limit_tokens=8) for _ in range(2))
    np.testing.assert_array_equal(first.prompts, again.prompts)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.labels, task.sample(8, 16, seed=5, limit_tokens=8).labels)
    np.testing.assert_array_equal(first.law(4).points, first.prompts[:, :4])


@pytest.mark.parametrize(
    ("methods", "blamed"),
    [
        ({"draw": lambda self, random, count: np.zeros((count + 1, 5))}, "draw"),
        ({"draw": lambda self, random, count: np.full((count, 5), np.nan)}, "draw"),
        ({"draw": lambda self, random, count: np.random.default_rng().random((count, 5))}, "draw"),
        ({"tokens": lambda self, xi, random, length: np.zeros((len(xi), length, 5))}, "tokens"),
        ({"tokens": lambda self, xi, random, length: "tokens"}, "tokens"),
        (
            {"tokens": lambda self, xi, r, n: np.random.default_rng().random((len(xi), n, 6))},
            "tokens",
        ),
        ({"queries": lambda self, xi, random: np.zeros((len(xi), 6))}, "queries"),
        ({"queries": lambda self, xi, random: (np.zeros((len(xi), 6)), np.zeros(3))}, "labels"),
        (
            {"queries": lambda self, xi, r: (np.zeros((len(xi), 6)), np.full(len(xi), np.inf))},
            "labels",
        ),
        ({"measure": lambda self, xi: Gaussian(np.zeros(5), np.eye(5))}, "measure"),
        ({"measure": lambda self, xi: "normal"}, "measure"),
        ({"loss": "squared"}, "loss"),
        ({"dimension": 0}, "dimension"),
    ],
)
def test_a_function_that_gives_what_cannot_be_used_is_named(methods, blamed):
    with pytest.raises(InvalidInputError) as caught:
        changed(**methods).sample(4, 8, limit_tokens=8)
    assert caught.value.argument == blamed


def test_sub_gaussian_parameters_are_positive():
    with pytest.raises(InvalidInputError, match="sub_gaussian"):
        changed(sub_gaussian=lambda self, xi: -np.ones(len(xi))).sub_gaussian_parameters(4, seed=0)
    assert SparseRegression().sub_gaussian_parameters(4, seed=0) is None


@pytest.mark.parametrize("name", built_in(2))
def test_sub_gaussian_parameters_of_families_bound_their_exponential_moments(name):
    task = built_in(2)[name]
    parameters = task.parameters(20, seed=1)
    sigma = task.sub_gaussian(parameters)
    directions = np.random.default_rng(0).normal(scale=2, size=(50, 3))
    for one, bound in zip(parameters, sigma, strict=True):
        logs = task.measure(one).log_normalizer(directions)
        assert (logs <= bound**2 * (directions**2).sum(1) / 2 * (1 + 1e-6)).all()

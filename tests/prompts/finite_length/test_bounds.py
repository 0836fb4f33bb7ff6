"""Bounds on errors for every sub-Gaussian law."""

import dataclasses
import math

import numpy as np
import pytest

from attractor.prompts.finite_length import (
    BoundShape,
    ConcentrationBounds,
    finite_length_error,
    measure_error,
    measure_output_error,
)
from attractor.prompts.finite_length.bounds import _largest_norm
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures import Mixture, Rademacher, Uniform
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.errors import InvalidInputError

LENGTHS = np.array([1, 2, 3, 6, 30, 1e3, 1e6, 1e12])
SIGNS = Rademacher(1, 2.5)


def of_signs(law, score):
    """The bounds for tokens of a symmetric law on a line, and queries of random signs."""
    mean = abs(float(law.tilted_mean([score])[0]))
    sigma = law.sub_gaussian_parameter().upper
    moment = law.tilted_norm_moments([score])[4] / sigma**16
    limit = mean / sigma**2
    return ConcentrationBounds(1, 1, score, 1.0, limit, limit, (moment, 1.0))


@pytest.mark.parametrize(
    "law",
    [
        Rademacher(1),
        SIGNS,
        Uniform(math.sqrt(3), 1),
        Gaussian([0.0], [[4.0]]),
        Mixture([1, 1], [Gaussian([mean], [[0.05]]) for mean in (-1.0, 1.0)]),
    ],
)
@pytest.mark.parametrize("score", [0.0, 0.3, 1.0, 2.0])
def test_no_law_has_larger_errors(law, score):
    bounds, sigma = of_signs(law, score), max(1.0, law.sub_gaussian_parameter().upper)
    head = AttentionHead([[score]], [[1.0]])
    if law is SIGNS and score == 2.0:
        # Its score gradient is what is left of numbers that nearly cancel: 6e-4 would be wrong.
        with pytest.raises(InvalidInputError, match="rounding errors"):
            measure_error(law, head, [1.0], LENGTHS)
        output = measure_output_error(law, head, [1.0], LENGTHS)
        assert (output <= bounds.output(sigma, LENGTHS)).all()
        return
    exact = measure_error(law, head, [1.0], LENGTHS)
    assert (exact.output <= bounds.output(sigma, LENGTHS)).all()
    assert (exact.value_gradient <= bounds.value_gradient(sigma, LENGTHS)).all()
    assert (exact.score_gradient <= bounds.score_gradient(sigma, LENGTHS)).all()


def test_several_dimensions_and_gaussian_queries():
    # Averages over Gaussian queries of exact errors, by sampling queries.
    d, U, V = 3, np.diag([0.5, 0.3, 0.0]), np.array([[1.0, 0.0, 2.0]])
    z = np.random.default_rng(0).normal(size=(400, d))
    exact = finite_length_error(np.eye(d), U, V, z[:, None], LENGTHS)
    lengths, means = np.linalg.norm(z, axis=-1), z @ U
    squares = (means**2).sum(-1)
    eighth = np.array([Gaussian.isotropic(d).tilted_norm_moments(a)[4] for a in means])
    bounds = ConcentrationBounds(
        d, d, 0.5, math.sqrt(5), ((means @ V.T) ** 4).mean() ** 0.25, (squares**2).mean() ** 0.25,
        ((lengths**4 * eighth).mean(), (lengths**4).mean()),
    )  # fmt: skip
    assert (exact.output.mean(0) <= bounds.output(1.0, LENGTHS)).all()
    assert (exact.value_gradient.mean(0) <= bounds.value_gradient(1.0, LENGTHS)).all()
    assert (exact.score_gradient.mean(0) <= bounds.score_gradient(1.0, LENGTHS)).all()


def test_bounds_of_one_token_and_of_long_prompts():
    bounds = of_signs(Rademacher(1), 0.3)
    found = bounds.output(1.0, [1, 1e12, 1e13])
    assert found[0] == pytest.approx(1 + math.tanh(0.3) ** 2, rel=1e-4)
    # Like one over the length, but for a power of it that the proof gives away.
    assert found[2] / found[1] < 0.3


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("length", [1, 2, 20, 500])
def test_largest_norms_of_gaussian_tokens_are_below(dimension, length):
    tokens = np.random.default_rng(1).normal(size=(2000, length, dimension))
    largest = (tokens**2).sum(-1).max(-1)
    for power in (1, 2, 4):
        bound = float(_largest_norm(power, np.array([length]), dimension, 1.0)[0])
        assert (largest**power).mean() < bound * 1.05
        if power < 4:
            assert bound < 12 * (largest**power).mean()


def test_constants_give_a_bound_of_the_shape():
    bounds = of_signs(Uniform(math.sqrt(3), 1), 0.4)
    for method, power, logarithms in (("output", 6, 1), ("score_gradient", 12, 2)):
        proven = getattr(bounds, method)
        for start in (0.0, 1.0):
            shape = BoundShape(power, logarithms, start)
            c1, c2 = bounds.constants(method, shape)
            assert c2 == 1 / 16
            lengths = np.array([2, 5, 17, 300, 4e4, 1e9, 1e25])
            for sigma in (1.0, 1.4, 4.0):
                given = c1 * shape(sigma, lengths, c2)
                assert (proven(sigma, lengths) <= given * 1.02).all()


def test_what_is_no_bound_is_refused():
    bounds = of_signs(Rademacher(1), 0.3)
    for call, argument in (
        (lambda: bounds.output(0.5, 10), "sigma"),
        (lambda: bounds.score_gradient(1.0, 0), "length"),
        (lambda: dataclasses.replace(bounds, score_norm=-1.0), "score_norm"),
        (lambda: bounds.constants("outputs", BoundShape(6, 1, 1.0)), "error"),
        (lambda: dataclasses.replace(bounds, token_dimension=0), "token_dimension"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            call()
        assert refused.value.argument == argument

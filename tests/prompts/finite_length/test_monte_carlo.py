"""Errors of sampled prompts."""

import numpy as np
import pytest

from attractor.prompts import effective_sample_size
from attractor.prompts.finite_length import finite_length_error, monte_carlo_error
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.gaussian import Gaussian
from attractor.prompts.measures.products import Laplace
from attractor.support.errors import InvalidInputError

COVARIANCE = np.array([[1.0, 0.4], [0.4, 0.8]])
HEAD = AttentionHead([[0.6, 0.0], [0.1, 0.5]], [[1.0, 0.5], [0.0, 2.0], [1.0, 1.0]])
QUERIES = np.array([[1.0, 0.0], [0.5, -1.0], [0.0, 0.0]])


@pytest.fixture(scope="module")
def measured():
    tokens = Gaussian([1.0, -2.0], COVARIANCE)
    return monte_carlo_error(tokens, HEAD, QUERIES, 60, prompts=500, seed=1)


def test_gaussian_tokens_have_the_exact_errors(measured):
    exact = finite_length_error(COVARIANCE, HEAD.score_matrix, HEAD.value_matrix, QUERIES, 60)
    found = zip(measured.by_query, measured.standard_error_by_query, exact, strict=True)
    for average, error, value in found:
        assert (np.abs(average - value) <= 4 * error).all()
        assert (error[:2] < 0.2 * value[:2]).all()
    for average, error, value in zip(measured.average, measured.standard_error, exact, strict=True):
        assert abs(average - value.mean()) < 4 * error


def test_standard_errors_are_between_prompts(measured):
    # Queries share tokens, so that three of them are not three times the data.
    alone = monte_carlo_error(
        Gaussian([1.0, -2.0], COVARIANCE), HEAD, np.zeros((3, 2)), 60, prompts=500, seed=1
    )
    np.testing.assert_allclose(
        alone.standard_error.output, alone.standard_error_by_query.output[0], rtol=1e-9
    )
    assert measured.standard_error.output > 0


def test_effective_sample_size_is_near_that_of_long_prompts(measured):
    directions = QUERIES @ np.asarray(HEAD.score_matrix).T
    s = np.sqrt(((directions @ COVARIANCE) * directions).sum(-1))
    np.testing.assert_allclose(
        measured.effective_sample_size, effective_sample_size(s, 60), rtol=0.1
    )


def test_same_seed_same_numbers_and_more_prompts_begin_the_same():
    tokens = Gaussian([0.0, 0.0], COVARIANCE)
    one, again, other = (
        monte_carlo_error(tokens, HEAD, QUERIES, 60, prompts=3, seed=seed) for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(one.by_query, again.by_query)
    assert one.average.output != other.average.output


def test_hopeless_samples_are_refused_with_the_length_that_would_do():
    tokens, queries = Gaussian([0.0, 0.0], np.eye(2)), [[3.0, 0.0]]
    head = AttentionHead(np.eye(2), np.eye(2))
    enough = int(np.ceil(10 * np.exp(9)))
    with pytest.raises(InvalidInputError, match=f"at least {enough}") as raised:
        monte_carlo_error(tokens, head, queries, 1000, seed=0)
    assert raised.value.argument == "length"


def test_weights_of_infinite_variance_are_refused():
    # The infinite prompt exists, as exp(0.7 |x|) has a mean; its square has none.
    with pytest.raises(InvalidInputError, match="infinite variance") as raised:
        monte_carlo_error(
            Laplace(1.0, 2), AttentionHead(np.eye(2), np.eye(2)), [[0.7, 0.0]], 300, seed=0
        )
    assert raised.value.argument == "queries"


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"queries": [1.0, 0.0]}, "queries"),
        ({"queries": np.ones((2, 3))}, "queries"),
        ({"length": 10.0}, "length"),
        ({"length": 0}, "length"),
        ({"prompts": 1}, "prompts"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_input_is_refused(changed, argument):
    right = {"queries": QUERIES, "length": 60, "prompts": 3, "seed": 0}
    with pytest.raises(InvalidInputError) as raised:
        monte_carlo_error(Gaussian([0.0, 0.0], COVARIANCE), HEAD, **(right | changed))
    assert raised.value.argument == argument

import math

import numpy as np
import pytest

from attractor.prompts.regression import RegressionTask, kac_murdock_szego
from attractor.support.errors import InvalidInputError


def test_official_task_as_meant():
    task = RegressionTask.official()
    assert task.dimension == 5
    np.testing.assert_array_equal(task.covariance, task.query_covariance)
    assert task.covariance[0, 3] == pytest.approx(0.125)
    assert (task.weight_variance, task.label_noise, task.query_noise) == (0.2, 0.1, 0.1)


def test_official_task_as_run_has_the_factor_of_its_covariance_twice():
    task = RegressionTask.official(as_run=True)
    eigenvalues = np.linalg.eigvalsh(task.covariance)
    np.testing.assert_allclose(eigenvalues, [0.1304, 0.212, 0.4831, 1.4985, 5.0041], atol=5e-5)
    factor = np.linalg.cholesky(kac_murdock_szego(5, 0.5))
    inputs = np.random.default_rng(0).standard_normal((400_000, 5)) @ factor.T @ factor.T
    np.testing.assert_allclose(np.cov(inputs.T), task.covariance, atol=0.03)
    np.testing.assert_array_equal(task.query_covariance, np.eye(5))


def test_token_covariance_is_that_of_sampled_tokens(rng):
    task = RegressionTask([[2.0, 0.3], [0.3, 0.5]], label_noise=0.4)
    weights = np.array([[1.0, -2.0], [0.0, 0.0]])
    inputs = rng.standard_normal((400_000, 2)) @ np.linalg.cholesky(task.covariance).T
    for w, covariance in zip(weights, task.token_covariance(weights), strict=True):
        labels = inputs @ w + math.sqrt(0.4) * rng.standard_normal(len(inputs))
        tokens = np.column_stack([inputs, labels])
        np.testing.assert_allclose(np.cov(tokens.T), covariance, atol=0.03)


def test_errors_of_queries_follow_the_risk():
    task = RegressionTask(np.eye(3), weight_variance=0.5, query_noise=0.1)
    assert task.risk_of_zero == 0.75
    assert task.mean_squared_error(task.risk_of_zero) == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"covariance": np.diag([1.0, 0.0])}, "covariance"),
        ({"covariance": np.ones((2, 2))}, "covariance"),
        ({"covariance": [[1.0, 0.5], [0.0, 1.0]]}, "covariance"),
        ({"covariance": np.ones(3)}, "covariance"),
        ({"covariance": np.eye(2), "query_covariance": np.eye(3)}, "query_covariance"),
        ({"covariance": np.eye(2), "query_covariance": np.zeros((2, 2))}, "query_covariance"),
        ({"covariance": np.eye(2), "query_covariance": np.diag([1, -1])}, "query_covariance"),
        ({"covariance": np.eye(2), "weight_variance": 0.0}, "weight_variance"),
        ({"covariance": np.eye(2), "label_noise": -0.1}, "label_noise"),
        ({"covariance": np.eye(2), "query_noise": math.inf}, "query_noise"),
    ],
)
def test_bad_tasks_name_the_argument(arguments, argument):
    with pytest.raises(InvalidInputError) as error:
        RegressionTask(**arguments)
    assert error.value.argument == argument


def test_queries_may_have_singular_covariance():
    task = RegressionTask(np.eye(2), np.ones((2, 2)))
    np.testing.assert_allclose(task.query_factor @ task.query_factor.T, np.ones((2, 2)), atol=1e-15)


def test_token_covariance_wants_a_weight_for_each_input():
    with pytest.raises(InvalidInputError, match="weights"):
        RegressionTask(np.eye(2)).token_covariance(np.ones(3))


@pytest.mark.parametrize("size", [1e190, 1e-190])
def test_a_covariance_whose_powers_leave_floating_point(size):
    with pytest.raises(InvalidInputError, match=r"^covariance: .*other units"):
        RegressionTask(size * np.array([[1.0, 0.5], [0.5, 1.0]]))


def test_tasks_are_equal_number_by_number():
    task = RegressionTask.official(as_run=True)
    assert task.equals(RegressionTask.official(as_run=True))
    assert not task.equals(RegressionTask.official())
    assert not task.equals(RegressionTask(task.covariance, task.query_covariance, 0.2, 0.1))
    assert not task.equals(RegressionTask(np.eye(2)))

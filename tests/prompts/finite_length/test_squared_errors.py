"""Expected squared errors of heads on finite prompts of Gaussian tokens."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from attractor.prompts.finite_length import (
    error_of_output,
    finite_length_error,
    output_error,
    sum_of_squared_weights,
)
from attractor.support.errors import InvalidInputError


def instance(rng, d=3, e=2, v=2, rank=None):
    factor = rng.standard_normal((d, rank or d))
    covariance = factor @ factor.T / d
    U, V = rng.standard_normal((d, e)), rng.standard_normal((v, d))
    return covariance, U, V, 0.7 * rng.standard_normal((4, e))


def sampled(covariance, U, V, z, length, prompts, rng):
    """The three errors of each of some prompts, for one query, with a mean that is not zero."""
    a = U @ z
    values, vectors = np.linalg.eigh(covariance)
    x = rng.standard_normal((prompts, length, len(a))) * np.sqrt(np.maximum(values, 0))
    x = x @ vectors.T + 3
    p = np.exp(x @ a - (x @ a).max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    mean = (p[..., None] * x).sum(1)
    centered = x - mean[:, None]
    weighted = np.swapaxes(p[..., None] * centered, 1, 2) @ centered
    shift = mean - 3 - covariance @ a
    return np.stack(
        [
            ((shift @ V.T) ** 2).sum(-1),
            len(V) * (shift**2).sum(-1),
            ((V @ (weighted - covariance)) ** 2).sum((1, 2)) * (z @ z),
        ]
    )


@pytest.mark.parametrize(
    ("d", "e", "v", "rank", "length"),
    [(3, 2, 2, 3, 100), (4, 4, 3, 2, 20), (1, 1, 1, 1, 5), (3, 3, 1, 1, 2)],
)
def test_sampled_prompts(d, e, v, rank, length, rng):
    covariance, U, V, z = instance(rng, d, e, v, rank)
    exact = np.array(finite_length_error(covariance, U, V, z, length))
    for query in range(2):
        errors = sampled(covariance, U, V, z[query], length, 4000, rng)
        standard = errors.std(1) / np.sqrt(4000)
        assert (np.abs(errors.mean(1) - exact[:, query]) < 4 * standard).all()


def test_long_prompts_follow_the_delta_rule(rng):
    G, U, V, z = instance(rng, 3, 3)
    V, a = np.eye(3), z @ U.T
    u, s2 = a @ G, ((a @ G) * a).sum(-1)
    length, trace = 1e15, np.trace(G)
    size = (u**2).sum(-1)
    second = trace**2 + np.trace(G @ G) + 2 * size * trace + 2 * ((u @ G) * u).sum(-1) + size**2
    found = finite_length_error(G, U, V, z, length)
    np.testing.assert_allclose(length * found.output, np.exp(s2) * (trace + size), rtol=1e-3)
    np.testing.assert_allclose(
        length * found.score_gradient, np.exp(s2) * second * (z**2).sum(-1), rtol=1e-3
    )
    np.testing.assert_allclose(found.value_gradient, 3 * found.output, rtol=1e-12)


def test_one_dimension_is_the_function_of_the_scores():
    found = error_of_output([[4.0]], [[0.5]], [[3.0]], [[1.2], [0.0]], 50)
    expected = 9 * 4 * np.array([output_error(1.2, 50), 1 / 50])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_one_token_misses_everything(rng):
    G, U, V, z = instance(rng)
    found = finite_length_error(G, U, V, z, 1)
    shift = z @ U.T @ G @ V.T
    expected = np.trace(V @ G @ V.T) + (shift**2).sum(-1)
    np.testing.assert_allclose(found.output, expected, rtol=1e-12)
    expected = ((V @ G) ** 2).sum() * (z**2).sum(-1)
    np.testing.assert_allclose(found.score_gradient, expected, rtol=1e-12)


def test_equal_scores_give_the_error_of_a_plain_mean(rng):
    G, U, V, z = instance(rng)
    found = finite_length_error(G, 0 * U, V, z, [[1], [8]])
    expected = np.trace(V @ G @ V.T) / np.array([[1], [8]]) * np.ones(4)
    np.testing.assert_allclose(found.output, expected, rtol=1e-12)
    np.testing.assert_array_equal(finite_length_error(0 * G, U, V, z, 8), np.zeros((3, 4)))


def test_scores_in_the_kernel_of_the_covariance_are_equal_scores():
    G = np.diag([1.0, 0.0])
    found = finite_length_error(G, np.eye(2), np.eye(2), [0.0, 5.0], 10)
    np.testing.assert_allclose(found.output, 0.1, rtol=1e-12)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), scale=st.floats(-6, 6))
def test_units_and_rotations_do_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    G, U, V, z = instance(rng)
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0] * 10.0**scale
    inverse = rotation.T / 10.0 ** (2 * scale)
    before = finite_length_error(G, U, V, z, 30)
    after = finite_length_error(rotation @ G @ rotation.T, inverse.T @ U, V @ inverse, z, 30)
    np.testing.assert_allclose(after.output, before.output, rtol=1e-9)
    # Tokens in other units change the derivatives by the unit.
    size = 10.0 ** (2 * scale)
    np.testing.assert_allclose(after.value_gradient / size, before.value_gradient, rtol=1e-9)
    np.testing.assert_allclose(after.score_gradient / size, before.score_gradient, rtol=1e-9)


def test_a_query_alone_and_among_others_are_the_same(rng):
    G, U, V, z = instance(rng)
    together = finite_length_error(G, U, V, z.reshape(2, 2, 2), 40)
    alone = finite_length_error(G, U, V, z[2], 40)
    for many, one in zip(together, alone, strict=True):
        np.testing.assert_allclose(many[1, 0], one, rtol=1e-13)
    np.testing.assert_allclose(
        together.output, error_of_output(G, U, V, z.reshape(2, 2, 2), 40), rtol=1e-13
    )


def test_the_error_is_between_those_of_its_directions():
    G, z = np.eye(2), [2.0, 0.0]
    along = error_of_output(G, np.eye(2), [[1.0, 0.0]], z, 25)
    across = error_of_output(G, np.eye(2), [[0.0, 1.0]], z, 25)
    np.testing.assert_allclose(along, output_error(2, 25), rtol=1e-12)
    np.testing.assert_allclose(across, sum_of_squared_weights(2, 25), rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"covariance": [[1.0, 0.5], [0.0, 1.0]]}, "covariance"),
        ({"covariance": -np.eye(2)}, "covariance"),
        ({"covariance": np.eye(3)}, "covariance"),
        ({"value_matrix": np.eye(3)}, "value_matrix"),
        ({"query": [1.0, 2.0, 3.0]}, "query"),
        ({"query": [100.0, 0.0]}, "query"),
        ({"query": np.ones((4, 2)), "length": [1, 2]}, "length"),
        ({"length": 0}, "length"),
    ],
)
def test_wrong_input_is_refused(changed, argument):
    right = {
        "covariance": np.eye(2),
        "score_matrix": np.eye(2),
        "value_matrix": np.eye(2),
        "query": [1.0, 0.0],
        "length": 10,
    }
    with pytest.raises(InvalidInputError) as raised:
        finite_length_error(**(right | changed))
    assert raised.value.argument == argument

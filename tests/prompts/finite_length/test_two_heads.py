"""Two heads at once against tensor quadrature, one head and sampling."""

import itertools

import numpy as np
import pytest

from attractor.prompts.finite_length import prompt_moments, two_head_moments
from attractor.support.errors import InvalidInputError


def covariance(first: float, second: float, correlation: float) -> np.ndarray:
    across = first * second * correlation
    return np.array([[first**2, across], [across, second**2]])


def as_matrix(found, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """``E (m - alpha) (m' - beta)^T`` from its coefficients."""
    a, b = alpha[:, None], beta[:, None]
    return (
        found.shared * np.eye(len(alpha))
        + found.first * a @ a.T
        + found.second * b @ b.T
        + found.outer * a @ b.T
        + found.swapped * b @ a.T
    )


def directions(first: float, second: float, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    beta = second * np.array([correlation, np.sqrt(1 - correlation**2)])
    return np.array([first, 0.0]), beta


def by_quadrature(alpha: np.ndarray, beta: np.ndarray, length: int) -> tuple[float, np.ndarray]:
    """The averages by a Gauss-Hermite product rule over differences of tokens.

    Both weights depend on differences alone, and the mean of the prompt is independent of them.
    """
    nodes = {2: 60, 3: 22}[length]
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    # Orthonormal rows that are orthogonal to (1, ..., 1): the tokens less their mean.
    basis = np.linalg.qr(np.vstack([np.ones(length), np.eye(length)[:-1]]).T)[0].T[1:]
    grid = np.array(list(itertools.product(x, repeat=2 * (length - 1))))
    mass = np.array(list(itertools.product(w, repeat=2 * (length - 1)))).prod(axis=1)
    tokens = np.einsum("cl,ncd->nld", basis, grid.reshape(-1, length - 1, 2))
    p, q = (np.exp(tokens @ each) for each in (alpha, beta))
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    off = np.einsum("nl,nld->nd", p, tokens) - alpha
    other = np.einsum("nl,nld->nd", q, tokens) - beta
    matrix = np.einsum("n,ni,nj->ij", mass, off, other) + np.eye(2) / length
    return float(mass @ (p * q).sum(1)), matrix


@pytest.mark.parametrize(
    "pair", [(1.0, 0.7, 0.3), (0.4, 1.2, -0.8), (0.9, 0.9, -1.0), (0.6, 0.0, 0.0), (0.0, 0.0, 0.0)]
)
@pytest.mark.parametrize(("length", "within"), [(2, 1e-8), (3, 1e-4)])
def test_two_and_three_tokens_agree_with_quadrature(pair, length, within):
    alpha, beta = directions(*pair)
    shared, matrix = by_quadrature(alpha, beta, length)
    found = two_head_moments(covariance(*pair), length)
    assert found.shared == pytest.approx(shared, abs=within)
    np.testing.assert_allclose(as_matrix(found, alpha, beta), matrix, atol=within)


@pytest.mark.parametrize("deviation", [0.01, 1.0, 6.0])
def test_one_head_twice_is_that_head(deviation):
    lengths = np.array([1.0, 2.0, 17.5, 1e3, 1e12])
    found = two_head_moments(covariance(deviation, deviation, 1.0), lengths)
    alone = prompt_moments(deviation, lengths)
    np.testing.assert_allclose(found.shared, alone.sum_of_squared_weights, rtol=1e-9)
    along = found.first + found.second + found.outer + found.swapped
    np.testing.assert_allclose(along, alone.error_per_variance, atol=1e-12)


def test_sampled_prompts_agree():
    alpha, beta = directions(1.5, 1.0, -0.4)
    g = np.random.default_rng(3).standard_normal((40_000, 12, 2))
    p, q = (np.exp(g @ each) for each in (alpha, beta))
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    off, other = np.einsum("nl,nld->nd", p, g) - alpha, np.einsum("nl,nld->nd", q, g) - beta
    products = off[:, :, None] * other[:, None, :]
    found = two_head_moments(covariance(1.5, 1.0, -0.4), 12)
    error = products.std(0) / np.sqrt(len(g))
    assert (np.abs(products.mean(0) - as_matrix(found, alpha, beta)) < 4 * error).all()
    weights = (p * q).sum(1)
    assert abs(weights.mean() - found.shared) < 4 * weights.std() / np.sqrt(len(g))


def test_heads_trade_places():
    one, other = covariance(2.0, 0.7, 0.5), covariance(0.7, 2.0, 0.5)
    found, swapped = two_head_moments(one, 9), two_head_moments(other, 9)
    assert found.shared == pytest.approx(swapped.shared, rel=1e-13)
    assert found.first == pytest.approx(swapped.second, abs=1e-14)
    assert found.outer == pytest.approx(swapped.outer, abs=1e-14)
    assert found.swapped == pytest.approx(swapped.swapped, abs=1e-14)


def test_long_prompts_follow_the_leading_order():
    # Weights of long prompts are nearly independent: L E sum p q tends to exp(alpha^T beta).
    found = two_head_moments(covariance(1.0, 0.8, 0.5), 1e9)
    assert found.shared * 1e9 == pytest.approx(np.exp(0.4), rel=1e-6)
    assert found.swapped * 1e9 == pytest.approx(np.exp(0.4), rel=1e-6)


def test_one_token_takes_all():
    found = two_head_moments(covariance(3.0, 1.0, 0.2), [1, 1])
    assert np.all(np.array(found) == np.array([1, 0, 0, 1, 0])[:, None])


def test_a_batch_is_its_members():
    pairs = np.array([covariance(1.0, 0.5, 0.1), covariance(0.2, 0.5, -0.9)])
    together = np.array(two_head_moments(pairs[:, None], [3, 50]))
    for place in np.ndindex(2, 2):
        alone = two_head_moments(pairs[place[0]], [3, 50][place[1]])
        np.testing.assert_allclose(together[:, *place], np.array(alone), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.eye(3), "the shape is"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive semidefinite"),
        ([[1.0, 0.5], [0.2, 1.0]], "symmetric"),
        ([[400.0, 0.0], [0.0, 1.0]], "standard deviation of 20"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
    ],
)
def test_what_is_no_covariance_of_two_scores_is_refused(given, message):
    with pytest.raises(InvalidInputError, match=message):
        two_head_moments(given, 10)

"""Exact errors of finite prompts of tokens of any law."""

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest

from attractor.prompts.finite_length import (
    finite_length_error,
    measure_error,
    measure_output_error,
    monte_carlo_error,
    sum_of_squared_weights,
)
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures import (
    Empirical,
    Gaussian,
    Laplace,
    Measure,
    Mixture,
    Product,
    Pushforward,
    Rademacher,
    Sphere,
    StudentT,
    Uniform,
)
from attractor.support.errors import InvalidInputError

SCORES = np.array([[0.8, -0.3, 1.1], [0.2, 0.9, -0.4], [0.0, 0.5, 0.7]])
VALUES = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0]])
HEAD = AttentionHead(SCORES, VALUES)
QUERY = np.array([1.0, -0.5, 0.8])
POINTS = np.random.default_rng(0).normal(size=(6, 3))
MASSES = np.array([1.0, 2.0, 0.5, 1.5, 1.0, 0.7])
ON_LINE = AttentionHead([[1.3]], [[2.0]])


def enumerated(points, masses, head, query, length):
    """The errors by a sum over all prompts of tokens that take finitely many values."""
    masses = masses / masses.sum()
    scores = points @ np.asarray(head.score_matrix) @ query
    V = np.asarray(head.value_matrix)

    def attended(weights, tokens):
        weights = weights / weights.sum()
        mean = weights @ tokens
        centered = tokens - mean
        return mean, (centered.T * weights) @ centered, (weights**2).sum()

    mean, covariance, _ = attended(masses * np.exp(scores), points)
    total = np.zeros(4)
    for prompt in itertools.product(range(len(points)), repeat=length):
        chosen = list(prompt)
        own, spread, weights = attended(np.exp(scores[chosen]), points[chosen])
        off = own - mean
        errors = [
            ((V @ off) ** 2).sum(),
            len(V) * (off**2).sum(),
            (query**2).sum() * ((V @ (spread - covariance)) ** 2).sum(),
            weights,
        ]
        total += masses[chosen].prod() * np.array(errors)
    return total


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_tokens_of_few_values_are_averaged_as_by_enumeration(length):
    found = measure_error(Empirical(POINTS, MASSES), HEAD, QUERY, length)
    output, value, _, weights = enumerated(POINTS, MASSES, HEAD, QUERY, length)
    assert [found.output, found.value_gradient] == pytest.approx([output, value], rel=1e-12)
    assert found.sum_of_squared_weights == pytest.approx(weights, rel=1e-12)
    assert math.isnan(found.score_gradient)


@pytest.mark.parametrize("query", [0.0, 0.4, -2.0, 4.0])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_all_three_errors_on_a_line(query, length):
    points = np.array([[-1.0], [0.5], [2.0], [0.5]])
    found = measure_error(Empirical(points, MASSES[:4]), ON_LINE, [query], length)
    expected = enumerated(points, MASSES[:4], ON_LINE, np.array([query]), length)
    np.testing.assert_allclose(found, expected, 1e-9)


@pytest.mark.parametrize("deviation", [0.0, 0.01, 0.7, 2.0, 5.0])
def test_gaussian_tokens_have_the_errors_of_their_own_formula(deviation):
    head, lengths = AttentionHead([[deviation / 2]], [[3.0]]), np.array([1, 2, 7, 1e3, 1e6, 1e12])
    found = measure_error(Gaussian([0.3], [[4.0]]), head, [1.0], lengths)
    exact = finite_length_error([[4.0]], [[deviation / 2]], [[3.0]], [1.0], lengths)
    np.testing.assert_allclose(found[:3], exact, 1e-9)
    weights = sum_of_squared_weights(deviation, lengths)
    np.testing.assert_allclose(found.sum_of_squared_weights, weights, 1e-9)


def hermite(count):
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def legendre(count, half):
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return half * nodes, weights / 2


def joined(*factors):
    """Nodes and weights of independent coordinates."""
    nodes = np.stack(np.meshgrid(*(x for x, _ in factors), indexing="ij"), -1)
    weights = functools.reduce(np.multiply.outer, [w for _, w in factors])
    return nodes.reshape(-1, len(factors)), weights.ravel()


def on_sphere(radius, count):
    """Nodes on a sphere: the height is uniform, and so is the angle around it."""
    height, weights = legendre(count, 1.0)
    angle = 2 * np.pi * np.arange(count) / count
    across = np.sqrt(1 - height**2)[:, None]
    around = [across * np.cos(angle), across * np.sin(angle)]
    nodes = np.stack([*around, np.broadcast_to(height[:, None], (count, count))], -1)
    return radius * nodes.reshape(-1, 3), np.repeat(weights / count, count)


def mixed_nodes(*parts):
    """Nodes of a mixture from weight, mean and deviation of Gaussian laws on a line."""
    x, w = hermite(28)
    nodes = np.concatenate([mean + deviation * x for _, mean, deviation in parts])
    return nodes[:, None], np.concatenate([share * w for share, _, _ in parts])


BY_QUADRATURE = {
    "uniform": (Uniform(1.7, 1), legendre(24, 1.7), (2, 3)),
    "mixture": (
        Mixture([1, 3], [Gaussian([1.0], [[0.25]]), Gaussian([-0.5], [[1.0]])]),
        mixed_nodes((0.25, 1.0, 0.5), (0.75, -0.5, 1.0)),
        (2, 3),
    ),
    "noisy tokens": (
        Empirical([[0.0], [2.0]], [0.3, 0.7]).with_noise(0.49),
        mixed_nodes((0.3, 0.0, 0.7), (0.7, 2.0, 0.7)),
        (2, 3),
    ),
    "product": (
        Product([Rademacher(1), Uniform(1.2, 1), Gaussian([0.5], [[0.8]])]),
        joined(
            (np.array([-1.0, 1.0]), np.array([0.5, 0.5])),
            legendre(12, 1.2),
            (0.5 + math.sqrt(0.8) * hermite(20)[0], hermite(20)[1]),
        ),
        (2,),
    ),
    "sphere": (Sphere(3, 1.5), on_sphere(1.5, 20), (2,)),
}


@pytest.mark.parametrize("name", BY_QUADRATURE)
def test_two_and_three_tokens_by_tensor_quadrature(name):
    law, (nodes, weights), lengths = BY_QUADRATURE[name]
    nodes = nodes if nodes.ndim > 1 else nodes[:, None]
    d = law.dimension
    head = HEAD if d == 3 else ON_LINE
    query = QUERY if d == 3 else np.array([0.7])
    U, V = np.asarray(head.score_matrix), np.asarray(head.value_matrix)
    w = np.exp(nodes @ U @ query)
    mean = (weights * w) @ nodes / (weights @ w)
    for length in lengths:
        axes = [
            np.expand_dims(np.arange(len(w)), [i for i in range(length) if i != j])
            for j in range(length)
        ]
        total = sum(w[axis] for axis in axes)
        off = sum(w[axis][..., None] * nodes[axis] for axis in axes) / total[..., None] - mean
        probability = functools.reduce(np.multiply, [weights[axis] for axis in axes])
        expected = (probability * ((off @ V.T) ** 2).sum(-1)).sum()
        found = measure_output_error(law, head, query, length)
        assert found == pytest.approx(float(expected), rel=1e-6)


def test_two_tokens_of_a_density_by_quadrature():
    # Two uniform tokens: the error is a double integral.
    half, slope = 1.7, 1.1
    head = AttentionHead([[slope]], [[1.0]])
    with mpmath.workdps(20):
        mean = half * mpmath.coth(half * slope) - 1 / mpmath.mpf(slope)

        def squared(x, y):
            p = 1 / (1 + mpmath.exp(slope * (y - x)))
            return (p * x + (1 - p) * y - mean) ** 2 / (2 * half) ** 2

        expected = mpmath.quad(squared, [-half, half], [-half, half])
    found = measure_output_error(Uniform(half, 1), head, [1.0], 2)
    assert found == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("law", [Rademacher(1), Empirical([[1.0], [-1.0]])])
@pytest.mark.parametrize("score", [0.5, 2.0, 8.0, 12.0, 15.0, 20.0, 32.0, 45.0, 48.0, 50.0])
def test_two_values_by_binomial_sums_however_far_apart_their_scores(law, score):
    # From scores of 20 on the limit rounds to the larger value, and one contour to zero.
    lengths = [2, 5, 10]
    expected = []
    with mpmath.workdps(80):
        limit, odds = mpmath.tanh(score), mpmath.exp(2 * mpmath.mpf(score))
        for length in lengths:
            counts = range(length + 1)
            outputs = [(k * odds - (length - k)) / (k * odds + length - k) for k in counts]
            shares = [mpmath.binomial(length, k) / mpmath.mpf(2) ** length for k in counts]
            pairs = zip(shares, outputs, strict=True)
            expected.append(float(sum(p * (y - limit) ** 2 for p, y in pairs)))
    found = measure_output_error(law, AttentionHead([[score]], [[1.0]]), [1.0], lengths)
    np.testing.assert_allclose(found, expected, 1e-9)


LAWS = {
    "signs": Rademacher(3, 0.9),
    "uniform": Uniform(1.4, 3),
    "sphere": Sphere(3, 1.5),
    "product": Product([Rademacher(1), Gaussian([0.5, 0.0], [[1.0, 0.5], [0.5, 1.0]])]),
    "mixture": Mixture([1, 2], [Gaussian([1.0, 0.0, 1.0], np.diag([1, 2, 0.3])), Uniform(1.0, 3)]),
    "noisy tokens": Empirical(POINTS, MASSES).with_noise(0.2),
    "image": Pushforward(Uniform(1.0, 2), [[1, 0.5], [0, 1], [1, 1]], [1, 2, 3]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LAWS)
def test_sampled_prompts_agree(name):
    law, queries = LAWS[name], np.stack([0.6 * QUERY, 0.2 * QUERY])
    exact = measure_error(law, HEAD, queries, 150)
    sampled = monte_carlo_error(law, HEAD, queries, 150, prompts=1500, seed=2)
    for field in ("output", "value_gradient"):
        off = getattr(exact, field) - getattr(sampled.by_query, field)
        assert (np.abs(off) < 4 * getattr(sampled.standard_error_by_query, field)).all()


def test_long_prompts_reach_the_limit_of_the_delta_method():
    law, lengths = LAWS["mixture"], np.array([1e9, 1e12, 1e40])
    direction = SCORES @ QUERY
    tilt, twice = law.tilt(direction), law.tilt(2 * direction)
    # L times the error tends to E w^2 ||V (x - m)||^2 over (E w)^2.
    growth = np.exp(twice.log_normalizer - 2 * tilt.log_normalizer)
    off = VALUES @ (twice.mean - tilt.mean)
    limit = growth * (np.trace(VALUES @ twice.covariance @ VALUES.T) + off @ off)
    found = lengths * measure_output_error(law, HEAD, QUERY, lengths)
    np.testing.assert_allclose(found, limit, 1e-4)
    np.testing.assert_allclose(found[2], limit, 1e-9)


def test_tokens_far_from_the_origin_lose_no_digits():
    near, far = (
        measure_output_error(Gaussian([mean, 0, 0], np.eye(3)), HEAD, QUERY, 50)
        for mean in (0.0, 1e6)
    )
    assert far == pytest.approx(float(near), rel=1e-8)


def test_shapes_broadcast_and_empty_batches_stay_empty():
    queries = np.stack([QUERY, QUERY, 2 * QUERY])
    found = measure_error(LAWS["signs"], HEAD, queries[:, None], [2, 30])
    assert found.output.shape == (3, 2)
    np.testing.assert_array_equal(found.output[0], found.output[1])
    alone = measure_output_error(LAWS["signs"], HEAD, 2 * QUERY, 30)
    assert found.output[2, 1] == pytest.approx(float(alone), rel=1e-12)
    assert measure_error(LAWS["signs"], HEAD, np.empty((0, 3)), 5).output.shape == (0,)


class Unknown(Measure):
    """A law of one's own without a formula at complex tilts."""

    dimension = 1

    def _log_normalizer(self, direction):
        return (direction**2).sum(-1) / 2

    def _tilted_mean(self, direction):
        return direction

    def _tilted_covariance(self, direction):
        return np.ones((*direction.shape, 1))

    def _draw(self, count, random):
        return random.normal(size=(count, 1))


@pytest.mark.parametrize(
    ("law", "head", "query", "length", "argument"),
    [
        (Unknown(), ON_LINE, [1.0], 5, "measure"),
        (StudentT(3.0, 1), ON_LINE, [1.0], 5, "measure"),
        (Rademacher(2), ON_LINE, [1.0], 5, "head"),
        (Rademacher(1), ON_LINE, [1.0, 2.0], 5, "query"),
        (Rademacher(1), ON_LINE, [[1.0], [2.0]], [1, 2, 3], "length"),
        (Rademacher(1), ON_LINE, [1.0], 0, "length"),
        (Laplace(1.0, 1), ON_LINE, [1.0], 5, "direction"),
        (Gaussian([0.0], [[1.0]]), ON_LINE, [40.0], 100, "query"),
    ],
)
def test_what_cannot_be_answered_is_refused(law, head, query, length, argument):
    with pytest.raises(InvalidInputError) as refused:
        measure_error(law, head, query, length)
    assert refused.value.argument == argument

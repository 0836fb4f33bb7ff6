import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import softmax_attention
from attractor.prompts.measures import Empirical
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

POINTS = np.random.default_rng(7).normal(size=(6, 3))


def relative(found, expected):
    """Distance from an exact array, relative to its norm."""
    distance = mpmath.norm(list((expected - found).ravel()))
    return float(distance / mpmath.norm(list(expected.ravel())))


def test_mean_is_softmax_attention_over_the_tokens(rng):
    direction = rng.normal(size=(4, 3))
    with double_precision():
        expected = jax.jit(softmax_attention)(direction @ POINTS.T, POINTS)
    np.testing.assert_allclose(Empirical(POINTS).tilted_mean(direction), expected, atol=1e-15)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gap", [0.0, 2.0, 37.0, 300.0, 600.0])
def test_tilt_is_exact_at_every_gap(oracle, seed, gap):
    random = np.random.default_rng(seed)
    points, weights = random.normal(size=(6, 3)), random.uniform(0.1, 1, size=6)
    points[1] = points[0]
    weights[2] = 0.0
    # Scores that are entries of the tokens have no rounding of their own.
    points[:, 0] = np.where(np.arange(6) == 3, gap, 0.0)
    direction, vector = np.array([1.0, 0.0, 0.0]), random.normal(size=3)
    measure = Empirical(points, weights)
    tolerance = 1e-15 * (10 + gap)  # score plus logarithm of the weight is rounded
    tilt = measure.tilt(direction)
    product = measure.covariance_product(direction, vector)
    with mpmath.workdps(60 + int(gap)):
        log, mean, covariance = oracle.sums(points, weights, direction)
        assert relative(tilt.mean, mean) <= 1e-15
        assert relative(tilt.covariance, covariance) <= tolerance
        assert relative(product, covariance @ vector) <= tolerance
    assert abs(tilt.log_normalizer - float(log)) <= 1e-14 * max(1, gap)


def test_derivative_of_the_covariance_is_exact_too(oracle):
    points = np.array([[0.0, 1.0], [300.0, 2.0], [0.0, -1.0], [1.0, 0.5]])
    direction = np.array([1.0, 0.0])
    with double_precision():
        slope = jax.jit(jax.jacfwd(lambda a: Empirical(points).tilt(a).covariance))
        found = slope(jnp.asarray(direction))
    with mpmath.workdps(400):
        _, mean, _ = oracle.sums(points, np.ones(4), direction)
        centered = points - mean
        weights = np.array([mpmath.exp(mpmath.mpf(score) - 300) for score in points[:, 0]])
        third = sum(
            w * x[:, None, None] * x[:, None] * x for w, x in zip(weights, centered, strict=True)
        )
        assert relative(np.asarray(found), third / weights.sum()) <= 1e-13


def test_weights_are_repetitions_and_the_mask_leaves_out(rng):
    direction = rng.normal(size=(4, 3))
    repeated = Empirical(POINTS[[0, 1, 1, 2, 2, 2]]).tilt(direction)
    padded = np.where(np.arange(6)[:, None] < 3, POINTS, np.nan)
    masked = Empirical(padded, weights=[1, 2, 3, 9, 9, 9], mask=np.arange(6) < 3)
    for found, expected in zip(masked.tilt(direction), repeated, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
    assert set(map(tuple, masked.sample(50, seed=0))) == set(map(tuple, POINTS[:3]))


def test_prompts_of_a_batch_are_what_they_are_alone(rng):
    points = rng.normal(size=(4, 6, 3))
    mask = rng.permuted(np.tile(np.arange(6) < 4, (4, 1)), axis=1)
    directions = rng.normal(size=(4, 3))
    whole = Empirical(points, mask=mask)
    tilt = whole.tilt(directions)
    for number in range(4):
        alone = Empirical(points[number][mask[number]])
        for found, expected in zip(tilt, alone.tilt(directions[number]), strict=True):
            np.testing.assert_allclose(found[number], expected, atol=1e-14)
        np.testing.assert_allclose(whole.mean[number], points[number][mask[number]].mean(0))
    assert whole.sample(5, seed=1).shape == (4, 5, 3)


def test_many_queries_are_answered_in_blocks(rng, monkeypatch):
    directions, vectors = rng.normal(size=(2, 2, 2, 3))
    measure = Empirical(POINTS)
    expected = measure.tilt(directions.reshape(4, 3))
    product = measure.covariance_product(directions.reshape(4, 3), vectors.reshape(4, 3))
    monkeypatch.setattr("attractor.prompts.measures.empirical._ENTRIES_AT_ONCE", 3 * POINTS.size)
    tilt = measure.tilt(directions)  # a block of three, and one
    np.testing.assert_allclose(tilt.mean.reshape(4, 3), expected.mean, atol=1e-15)
    np.testing.assert_allclose(tilt.covariance.reshape(4, 3, 3), expected.covariance, atol=1e-15)
    found = measure.covariance_product(directions, vectors)
    np.testing.assert_allclose(found.reshape(4, 3), product, atol=1e-15)


def test_one_token_and_equal_tokens_are_points():
    for points in (POINTS[:1], np.repeat(POINTS[:1], 6, axis=0)):
        tilt = Empirical(points).tilt([1e4, -1.0, 0.0])
        np.testing.assert_array_equal(tilt.mean, POINTS[0])
        assert (tilt.covariance == 0).all()


def test_padding_takes_no_part_in_gradients(rng):
    mask, direction = np.arange(6) < 4, rng.normal(size=3)

    def total(points, weights):
        return Empirical(points, weights, mask).tilted_mean(direction).sum()

    with double_precision():
        gradient = jax.jit(jax.grad(total, (0, 1)))
        points, weights = gradient(np.where(mask[:, None], POINTS, np.nan), jnp.ones(6))
        kept, _ = gradient(POINTS, jnp.ones(6))
    np.testing.assert_array_equal(points, kept)
    assert (np.asarray(points)[4:] == 0).all() and (np.asarray(weights)[4:] == 0).all()


def test_an_image_is_a_prompt(rng):
    matrix, mask = rng.normal(size=(2, 3)), np.arange(6) < 4
    image = Empirical(POINTS, mask=mask).pushforward(matrix, [1.0, 2.0])
    assert isinstance(image, Empirical)
    np.testing.assert_allclose(image.mean, (POINTS[:4] @ matrix.T + [1, 2]).mean(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((POINTS[0],), "points: the shape"),
        ((np.zeros((0, 3)),), "points: the shape"),
        ((np.full((2, 3), np.nan),), "points: the entry at"),
        ((POINTS, [1.0, 2.0]), "weights: the shape"),
        ((POINTS, [-1.0, 1, 1, 1, 1, 1]), "weights: the entry at"),
        ((POINTS, np.zeros(6)), "weights: they are all zero"),
        ((POINTS, None, np.zeros(6, bool)), "weights: they are all zero"),
        ((POINTS, None, np.ones(5, bool)), "mask: the shape"),
        ((POINTS, None, np.ones(6)), "mask: the data type is float64"),
    ],
)
def test_what_is_no_prompt_is_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Empirical(*arguments)

"""What every measure promises, kind by kind."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from attractor.prompts.measures import (
    Convolution,
    Empirical,
    Gaussian,
    Laplace,
    Mixture,
    Pushforward,
    Rademacher,
    StudentT,
    Uniform,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

NAMES = (
    "gaussian",
    "gaussian mixture",
    "mixture",
    "prompt",
    "rademacher",
    "uniform",
    "laplace",
    "sphere",
    "product",
    "convolution",
    "pushforward",
)


def test_every_kind_is_listed(measures):
    assert tuple(measures) == NAMES


COMPOSED = {
    "mixture",
    "product",
    "convolution",
    "pushforward",
}  # of parts that are tested beside them


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in COMPOSED else n for n in NAMES],
)
def test_derivatives_of_the_normalizer_are_mean_and_covariance(measures, rng, name):
    measure, directions = measures[name], rng.normal(size=(4, 3)) * 0.6
    vectors = rng.normal(size=(4, 3))

    @jax.jit
    def derivatives(directions):
        slope = jax.grad(lambda a: measure.log_normalizer(a).sum())(directions)
        return slope, jax.jvp(lambda a: measure.tilted_mean(a), (directions,), (vectors,))[1]

    with double_precision():
        slope, product = derivatives(directions)
    tilt = measure.tilt(directions)
    assert all(type(part) is np.ndarray and part.dtype == np.float64 for part in tilt)
    np.testing.assert_allclose(slope, tilt.mean, atol=1e-14)
    expected = np.einsum("bij,bj->bi", tilt.covariance, vectors)
    np.testing.assert_allclose(product, expected, atol=1e-13)
    np.testing.assert_allclose(tilt.covariance, tilt.covariance.swapaxes(1, 2), atol=1e-15)


@pytest.mark.parametrize("name", ["prompt", "rademacher"])
def test_parts_of_a_tilt_are_those_of_the_whole(measures, rng, name):
    measure, directions = measures[name], rng.normal(size=(4, 3))
    tilt, vector = measure.tilt(directions), rng.normal(size=3)
    np.testing.assert_allclose(measure.log_normalizer(directions), tilt.log_normalizer, atol=1e-15)
    np.testing.assert_allclose(measure.tilted_mean(directions), tilt.mean, atol=1e-15)
    product = measure.covariance_product(directions, vector)
    np.testing.assert_allclose(product, tilt.covariance @ vector, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_moments_are_those_of_samples(measures, name):
    measure, count = measures[name], 20_000
    tokens = measure.sample(count, seed=3)
    np.testing.assert_array_equal(tokens[:7], measure.sample(count, seed=3)[:7])
    assert (tokens != measure.sample(count, seed=4)).any()
    _, mean, covariance = (part[0] for part in measure.tilt(np.zeros((4, 3))))
    spread = np.sqrt(np.diag(covariance) / count)
    assert (np.abs(tokens.mean(0) - mean) <= 5 * spread + 1e-12).all()
    products = (tokens - mean)[:, :, None] * (tokens - mean)[:, None, :]
    spread = products.std(0) / np.sqrt(count)
    assert (np.abs(products.mean(0) - covariance) <= 5 * spread + 1e-12).all()


@pytest.mark.parametrize(
    "name",
    [
        "gaussian",
        "prompt",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("gaussian mixture", "product")),
    ],
)
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_image_and_noise_tilt_as_they_must(measures_of_seed, name, seed):
    measure, random = measures_of_seed(seed)[name], np.random.default_rng(seed)
    directions, variance = random.normal(size=(4, 3)), random.exponential()
    matrix, shift = random.normal(size=(3, 3)), random.normal(size=3)
    image = measure.pushforward(matrix, shift).with_noise(variance).tilt(directions)
    inner = measure.tilt(directions @ matrix)
    expected = (
        inner.log_normalizer + directions @ shift + variance / 2 * (directions**2).sum(-1),
        inner.mean @ matrix.T + shift + variance * directions,
        matrix @ inner.covariance @ matrix.T + variance * np.eye(3),
    )
    for found, part in zip(image, expected, strict=True):
        np.testing.assert_allclose(found, part, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_ten_thousand_and_more_do_not_overflow(measures, name):
    if name == "laplace":
        pytest.skip("its exponential moments end at 1 / scale")
    directions = np.array([[1e4, -2e4, 5e3], [-1e6, 1e6, 1e6], [1e-9, 0, 0], [0, 0, 0]])
    tilt = measures[name].tilt(directions)
    assert all(np.isfinite(part).all() for part in tilt)
    scale = np.abs(tilt.covariance).max()
    assert np.linalg.eigvalsh(tilt.covariance).min() >= -1e-12 * scale


def test_single_precision_is_followed(measures):
    measure = measures["uniform"]
    direction = np.array([0.3, -0.2, 0.5])
    found = jax.jit(lambda a: measure.tilt(a))(jnp.asarray(direction, jnp.float32))
    expected = measure.tilt(np.tile(direction, (4, 1)))
    for part, exact in zip(found, expected, strict=True):
        assert part.dtype == jnp.float32
        np.testing.assert_allclose(part, exact[0], atol=2e-6)


def test_moments_are_the_tilt_at_zero(measures):
    for name in ("gaussian", "prompt"):
        _, mean, covariance = (part[0] for part in measures[name].tilt(np.zeros((4, 3))))
        np.testing.assert_allclose(measures[name].mean, mean, atol=1e-15)
        np.testing.assert_allclose(measures[name].covariance, covariance, atol=1e-15)


def test_measures_are_trees_that_are_differentiated():
    direction = np.array([0.4, -0.1])

    def normalizer(mean, scale):
        gaussian = Gaussian(mean, scale * jnp.eye(2))
        return gaussian.log_normalizer(direction) + Uniform(scale, 2).log_normalizer(direction)

    with double_precision():
        mean, scale = jax.jit(jax.grad(normalizer, (0, 1)))(jnp.array([1.0, 2.0]), 0.7)
        tree = jax.jit(jax.grad(lambda law: law.log_normalizer(direction)))(Rademacher(2, 0.7))
    np.testing.assert_allclose(mean, direction)
    uniform = direction @ Uniform(0.7, 2).tilted_mean(direction) / 0.7
    np.testing.assert_allclose(scale, direction @ direction / 2 + uniform)
    expected = direction @ Rademacher(2, 0.7).tilted_mean(direction) / 0.7
    np.testing.assert_allclose(tree.scale, expected)


def test_what_does_not_exist_is_refused_and_is_nan_under_jit():
    laplace, heavy = Laplace(0.5, 3), StudentT(5.0, 3)
    beyond = np.array([[0.0, 1.9, 0.0], [0.0, 2.0, 0.0]])
    assert laplace.exists(beyond).tolist() == [True, False]
    assert heavy.exists(np.array([[0.0, 0, 0], [0, 0, 1e-9]])).tolist() == [True, False]
    for law in (laplace.with_noise(1.0), laplace.pushforward(np.eye(3))):
        with pytest.raises(InvalidInputError, match="direction: an entry is 2"):
            law.tilted_mean(beyond)
        with double_precision():
            compiled = jax.jit(lambda a, law=law: law.tilted_mean(a))(jnp.asarray(beyond))
        assert np.isnan(compiled).any(-1).tolist() == [False, True]
    with pytest.raises(InvalidInputError, match="measure: Student's t has no exponential moment"):
        heavy.log_normalizer(beyond)
    assert np.isnan(jax.jit(lambda a: heavy.log_normalizer(a))(beyond)).all()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda law: law.tilt(np.zeros(2)), "direction"),
        (lambda law: law.tilt([0.0, np.nan, 0.0]), "direction"),
        (lambda law: law.covariance_product(np.zeros(3), np.zeros(4)), "vector"),
        (lambda law: law.sample(-1, seed=0), "count"),
        (lambda law: law.sample(2.5, seed=0), "count"),
        (lambda law: law.sample(2, seed=-1), "seed"),
        (lambda law: law.with_noise(-1.0), "variance"),
        (lambda law: law.with_noise([1.0, 2.0]), "variance"),
        (lambda law: law.pushforward(np.eye(4)), "matrix"),
        (lambda law: law.pushforward(np.eye(3), [1.0]), "shift"),
    ],
)
def test_bad_arguments_are_named(call, argument):
    for law in (Rademacher(3), Gaussian.isotropic(3)):
        with pytest.raises(InvalidInputError) as caught:
            call(law)
        assert caught.value.argument == argument


@pytest.mark.parametrize("dimension", [0, -1, 2.0, True])
def test_dimensions_are_whole_numbers(dimension):
    with pytest.raises(InvalidInputError, match="dimension"):
        Rademacher(dimension)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, [1.0, 2.0]])
def test_scales_are_positive_numbers(scale):
    for make in (Laplace, Uniform):
        with pytest.raises(InvalidInputError):
            make(scale, 3)


def test_sum_of_two_prompts_is_the_prompt_of_all_sums(rng):
    first, second, directions = (rng.normal(size=(n, 3)) for n in (3, 2, 4))
    found = Convolution(Empirical(first), Empirical(second)).tilt(directions)
    sums = (first[:, None] + second).reshape(-1, 3)
    for part, expected in zip(found, Empirical(sums).tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-13)


def test_tokens_with_noise_are_a_mixture_of_gaussians_around_them(rng):
    points, directions = rng.normal(size=(2, 3)), 3 * rng.normal(size=(4, 3))
    noisy = Empirical(points).with_noise(0.7).tilt(directions)
    mixture = Mixture(np.ones(2), [Gaussian(point, 0.7 * np.eye(3)) for point in points])
    for part, expected in zip(noisy, mixture.tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)


def test_a_sum_exists_where_both_terms_do():
    law = Convolution(Rademacher(1), Laplace(1.0, 1))
    assert law.exists([[0.9], [1.0]]).tolist() == [True, False]
    with pytest.raises(InvalidInputError, match="direction"):
        law.log_normalizer([1.0])


def test_dimensions_have_to_agree():
    with pytest.raises(InvalidInputError, match="second: the dimension is 3"):
        Convolution(Rademacher(2), Rademacher(3))


def test_image_of_signs_is_the_prompt_of_the_corners(rng):
    matrix, shift = rng.normal(size=(3, 2)), rng.normal(size=3)
    directions = 2 * rng.normal(size=(4, 3))
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=2))) @ matrix.T + shift
    found = Pushforward(Rademacher(2), matrix, shift).tilt(directions)
    for part, expected in zip(found, Empirical(corners).tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-13)


def test_image_of_an_image_is_that_of_the_product(rng):
    first, second, directions = (rng.normal(size=(n, 3)) for n in (3, 3, 4))
    twice = Rademacher(3).pushforward(first, [1.0, 2.0, 3.0]).pushforward(second)
    once = Rademacher(3).pushforward(second @ first, second @ [1.0, 2.0, 3.0])
    for part, expected in zip(twice.tilt(directions), once.tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-12)


def test_image_of_a_mixture_keeps_its_gates(rng):
    mixture = Mixture([1, 2], [Gaussian.isotropic(3), Gaussian([1.0, 2.0, 3.0], np.eye(3))])
    matrix, directions = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    image = mixture.pushforward(matrix)
    assert isinstance(image, Mixture)
    np.testing.assert_allclose(
        image.responsibilities(directions), mixture.responsibilities(directions @ matrix)
    )


def test_an_image_exists_where_its_source_does():
    law = Laplace(1.0, 1).pushforward([[2.0]])
    assert law.exists([[0.49], [0.5]]).tolist() == [True, False]
    with pytest.raises(InvalidInputError, match="direction"):
        law.tilted_mean([0.5])

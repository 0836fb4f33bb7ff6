"""What draws of a null keep of a head, and that the verdict's is exact for random weights."""

import numpy as np
import pytest
from made_heads import gaussian_arrays, gaussian_heads, rows_of
from scipy.stats import binomtest

from attractor.heads.statistics.learnability import learn
from attractor.heads.statistics.multiple import randomization_p
from attractor.heads.statistics.nulls import Null, balanced_coordinates, draw_maps

KEY = (0, 0, 0)


def mean_square(rows, maps):
    turned = maps @ rows.query_covariance @ np.swapaxes(maps, -1, -2)
    return np.sum(rows.key_covariance * turned, axis=(-1, -2))


def test_rotations_keep_the_spread_of_scores():
    rows = rows_of(gaussian_heads(1))
    maps = draw_maps(Null.ROTATION, rows, 5, KEY)
    np.testing.assert_allclose(mean_square(rows, maps), rows.horizon**2)
    scale = np.linalg.det(maps) ** 2
    products = maps @ np.swapaxes(maps, -1, -2)
    for product, factor in zip(products, scale, strict=True):
        np.testing.assert_allclose(product, factor ** (1 / 4) * np.eye(4), atol=1e-12)


def test_signs_keep_the_whole_spectrum_of_scores():
    rows = rows_of(gaussian_heads(1))

    def spectrum(one):
        left = np.linalg.cholesky(rows.key_covariance).T
        return np.linalg.svd(left @ one @ np.linalg.cholesky(rows.query_covariance))[1]

    for one in draw_maps(Null.SIGNS, rows, 5, KEY):
        np.testing.assert_allclose(spectrum(one), spectrum(np.eye(4)))


def test_balanced_coordinates_have_one_diagonal_covariance_and_the_same_scores():
    rows = rows_of(gaussian_heads(2))
    of_keys, of_queries = balanced_coordinates(rows)
    np.testing.assert_allclose(of_keys.T @ of_queries, np.eye(4), atol=1e-12)
    left = of_keys @ rows.key_covariance @ of_keys.T
    np.testing.assert_allclose(left, of_queries @ rows.query_covariance @ of_queries.T, atol=1e-10)
    np.testing.assert_allclose(left, np.diag(np.diag(left)), atol=1e-10)


def test_no_null_has_larger_spread_than_the_head_in_balanced_coordinates():
    """Why ``pairing`` cannot be the verdict's: the head is extreme whatever its weights."""
    rows = rows_of(gaussian_heads(3))
    squares = mean_square(rows, draw_maps(Null.PAIRING, rows, 50, KEY))
    assert squares.max() < rows.horizon**2


@pytest.mark.parametrize("null", Null)
def test_draws_do_not_depend_on_how_many_there_are(null):
    rows = rows_of(gaussian_heads(1))
    few, many = draw_maps(null, rows, 2, KEY), draw_maps(null, rows, 7, KEY)
    np.testing.assert_array_equal(few, many[:2])
    assert not np.allclose(few, draw_maps(null, rows, 2, (0, 0, 1)))
    assert not np.allclose(few[0], few[1])


def test_signs_do_not_depend_on_the_factors_of_the_head():
    arrays = gaussian_arrays(4)
    change = np.random.default_rng(0).standard_normal((4, 4)) + 2 * np.eye(4)
    inverse = np.linalg.inv(change)
    changed = {"keys": arrays["keys"] @ inverse, "queries": arrays["queries"] @ change.T}
    mine = draw_maps(Null.SIGNS, rows_of(gaussian_heads(4)), 3, KEY)
    theirs = draw_maps(Null.SIGNS, rows_of(gaussian_heads(4, **changed)), 3, KEY)
    np.testing.assert_allclose(inverse @ theirs @ change, mine, atol=1e-9)


def test_heads_without_variance_have_draws_without_a_pairing():
    arrays = gaussian_arrays(1)
    alike = np.broadcast_to(arrays["queries"][:1], arrays["queries"].shape)
    rows = rows_of(gaussian_heads(1, queries=alike))
    for null in Null:
        maps = draw_maps(null, rows, 2, KEY)
        np.testing.assert_allclose(maps @ rows.queries.T, 0, atol=1e-12)


@pytest.mark.long
def test_rotations_reject_heads_of_random_weights_as_often_as_they_may():
    """P-values of 60 heads are uniform enough; a null that turns the mean query as well is not."""
    p = []
    for seed in range(60):
        rows = rows_of(gaussian_heads(100 + seed, documents=115))  # of 64 learned, as padded
        p.append(randomization_p(learn(rows, draw_maps(Null.ROTATION, rows, 19, KEY)).accuracy))
    rejected = int(np.sum(np.array(p) <= 0.05))
    assert binomtest(rejected, 60, 0.05, alternative="greater").pvalue > 0.01
    assert 0.4 < np.mean(p) < 0.65

import numpy as np
import pytest

from attractor.prompts import AttentionHead, Empirical, Gaussian, Laplace, Rademacher, Sphere
from attractor.prompts.length import AffineLimit, non_gaussian_defect
from attractor.support.errors import InvalidInputError

HEAD = AttentionHead(np.eye(8), np.eye(8)[:3])


def queries(*deviations):
    return np.array(deviations)[:, None] * np.eye(8)[0]


def test_a_gaussian_law_has_none():
    root = np.random.default_rng(0).normal(size=(8, 5))
    found = non_gaussian_defect(HEAD, Gaussian(np.ones(8), root @ root.T), queries(0.1, 2, 7))
    for zero in (found.along, found.output, found.along_standard_error):
        assert (zero == 0).all()
    assert found.resolved.all() and found.held_out == 0


@pytest.mark.parametrize(
    ("law", "gains"),
    [(Sphere(8, 8**0.5), (0.914, 0.754, 0.514)), (Rademacher(8), (0.762, 0.482, 0.2498))],
)
def test_a_law_has_the_gain_of_its_closed_form(law, gains):
    found = non_gaussian_defect(HEAD, law, queries(1, 2, 4))
    np.testing.assert_allclose(1 + found.along, gains, atol=5e-4)
    np.testing.assert_allclose(found.output, -found.along, atol=1e-12)


def test_samples_show_the_defect_of_their_law_within_their_errors():
    law, z = Rademacher(8), queries(0.7, 1.2)
    exact = non_gaussian_defect(HEAD, law, z)
    scores = []
    for seed in range(30):
        samples = Empirical(law.sample(3000, seed=seed))
        found = non_gaussian_defect(HEAD, samples, z, seed=seed)
        assert found.resolved.all() and found.held_out == 1500
        scores.append((found.along - exact.along) / found.along_standard_error)
        np.testing.assert_allclose(found.output, exact.output, atol=0.2)
    assert np.abs(np.mean(scores, axis=0)).max() < 0.75
    assert 0.6 < np.std(scores) < 1.5


def test_gaussian_samples_have_no_defect_beyond_noise():
    points = Gaussian(np.ones(8), np.diag(np.linspace(0.3, 2, 8))).sample(4000, seed=1)
    found = non_gaussian_defect(HEAD, Empirical(points), queries(0.3, 1, 1.5))
    assert (np.abs(found.along) < 4 * found.along_standard_error).all()
    assert (found.output < 3 * found.output_standard_error).all()
    assert (found.along_standard_error < 0.3).all()


def test_halves_are_separate_and_named_by_the_seed():
    points = np.random.default_rng(2).normal(size=(60, 8))
    one, same, other = (
        non_gaussian_defect(HEAD, Empirical(points), queries(0.5), seed=seed) for seed in (1, 1, 2)
    )
    assert one.along == same.along != other.along
    whole = Empirical(points)  # compared with its own moments a sample would look better
    within = (whole.tilted_mean(queries(0.5)) - AffineLimit(HEAD, whole)(queries(0.5)).max())[0, 0]
    assert abs(within) < 1 and one.along_standard_error > 0.1


def test_what_samples_cannot_tell_is_marked():
    points = np.random.default_rng(3).normal(size=(400, 8))
    found = non_gaussian_defect(HEAD, Empirical(points), queries(0, 0.5, 1, 2.5, 30))
    assert found.resolved.tolist() == [False, True, True, False, False]
    assert np.isnan(found.along[0])
    assert found.effective_sample_size[0] == pytest.approx(200)
    assert 1 <= found.effective_sample_size[4] < 2


def test_bad_input_is_named():
    points = np.random.default_rng(4).normal(size=(17, 8))
    with pytest.raises(InvalidInputError, match=r"^tokens: .*at least 18"):
        non_gaussian_defect(HEAD, Empirical(points), queries(1))
    with pytest.raises(InvalidInputError, match=r"^tokens: .*side by side"):
        non_gaussian_defect(HEAD, Empirical(points[None]), queries(1))
    with pytest.raises(InvalidInputError):  # no attention over infinitely many such tokens
        non_gaussian_defect(HEAD, Laplace(1.0, 8), queries(50))


def test_points_with_weights_are_all_of_the_law():
    points = np.random.default_rng(4).normal(size=(5, 8))
    found = non_gaussian_defect(HEAD, Empirical(points, [1, 2, 3, 4, 5.0]), queries(3))
    repeated = Empirical(np.repeat(points, [1, 2, 3, 4, 5], axis=0))
    directions = queries(3) @ np.asarray(HEAD.score_matrix).T
    excess = repeated.tilted_mean(directions) - repeated.mean
    along = (excess * directions).sum(-1)
    variance = np.einsum("ni,ij,nj->n", directions, repeated.covariance, directions)
    np.testing.assert_allclose(found.along, along / variance - 1, rtol=1e-9)
    assert found.held_out == 0 and not found.along_standard_error.any()

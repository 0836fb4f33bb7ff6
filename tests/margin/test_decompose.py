import numpy as np
import pytest
from margin_examples import random_tokens, unit
from scipy.special import log_softmax, softmax

from attractor.geometry import Frobenius, Lp, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.margin.variants.decomposition import decompose
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens

GEOMETRIES = [Frobenius(), Lp(1.5), Lp(3), Nuclear()]


def top_two(scores):
    """The two tokens of highest score in each row."""
    mask = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(mask, np.argsort(-scores, axis=-1)[..., :2], True, axis=-1)
    return Selection(mask, np.zeros(mask.shape[:-1], dtype=bool))


def trained_like(geometry, count=4, norm=300.0, seed=0):
    """Matrices far out along a prediction, with the parts they were made of."""
    tokens, _ = random_tokens(count, 3, 5, 8, seed)
    W = np.random.default_rng(seed).normal(size=(count, 8, 8))
    scores = tokens.scores(W)
    made = decompose(tokens, scores, geometry, logarithmic=True, selection=top_two(scores))
    return tokens, made, made.predict(norm)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_parts_are_found_again_in_a_matrix_made_of_them(geometry):
    tokens, made, W = trained_like(geometry)
    found = decompose(tokens, softmax(tokens.scores(W), axis=-1), geometry)
    assert found.selection == made.selection
    assert not found.ambiguous.any()
    accuracy = 1e-9 if geometry == Frobenius() else 1e-3
    np.testing.assert_allclose(found.finite.W, made.finite.W, atol=accuracy)
    np.testing.assert_allclose(found.directional.W, made.directional.W, atol=accuracy)
    np.testing.assert_allclose(found.correlation(W), 1, atol=accuracy)
    size = geometry.norm(found.predict(300.0) - found.finite.W)
    np.testing.assert_allclose(size, 300, rtol=1e-9)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_parts_meet_their_equations(geometry):
    tokens, made, _ = trained_like(geometry)
    assert set(made.directional.status) == {Status.OPTIMAL} == set(made.finite.status)
    logs = log_softmax(tokens.scores(made.finite.W), axis=-1)
    W = np.random.default_rng(0).normal(size=(4, 8, 8))
    given = log_softmax(tokens.scores(W), axis=-1)
    for i, n in np.ndindex(4, 3):
        a, b = np.flatnonzero(made.selection.mask[i, n, 0])
        found, asked = (array[i, n, 0, a] - array[i, n, 0, b] for array in (logs, given))
        assert found == pytest.approx(asked, abs=1e-9)
        scores = tokens.scores(made.directional.W)[i, n, 0]
        assert scores[a] == pytest.approx(scores[b], abs=1e-9)
        rest = np.delete(scores, [a, b])
        assert (scores[a] - rest).min() >= 1 - 1e-8


def test_finite_part_is_the_least_squares_solution_of_smallest_norm():
    _, made, _ = trained_like(Frobenius(), count=1)
    problem = made.finite.problem[0]
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(-1, 64)
    expected = np.linalg.lstsq(rows, problem.bounds, rcond=None)[0]
    np.testing.assert_allclose(made.finite.W[0].ravel(), expected, atol=1e-12)


def test_parts_are_orthogonal_in_the_frobenius_norm():
    _, made, _ = trained_like(Frobenius(), count=40)
    finite, direction = made.finite.W, made.directional.W
    cosine = (finite * direction).sum((-1, -2))
    cosine /= np.linalg.norm(finite, axis=(-1, -2)) * np.linalg.norm(direction, axis=(-1, -2))
    assert np.abs(cosine).max() < 1e-12


def test_closed_form_of_the_correlation_is_that_of_the_assembled_matrix():
    tokens, _ = random_tokens(40, 3, 5, 8)
    W = 3 * np.random.default_rng(1).normal(size=(40, 8, 8))
    scores = tokens.scores(W)
    found = decompose(tokens, scores, logarithmic=True, selection=top_two(scores))
    assembled = found.finite.W + found.multiplier(W)[:, None, None] * found.directional.W
    expected = [
        np.corrcoef(np.r_[a.ravel(), -a.ravel()], np.r_[b.ravel(), -b.ravel()])[0, 1]
        for a, b in zip(W, assembled, strict=True)
    ]
    np.testing.assert_allclose(found.correlation(W), expected, atol=1e-12)
    np.testing.assert_allclose(found.closed_form_correlation(W), expected, atol=1e-12)
    # No other multiple of the direction does better.
    for factor in (0.9, 1.1):
        other = found.finite.W + factor * found.multiplier(W)[:, None, None] * found.directional.W
        cosine = (W * other).sum((-1, -2)) / np.linalg.norm(other, axis=(-1, -2))
        assert (cosine <= found.correlation(W) * np.linalg.norm(W, axis=(-1, -2)) + 1e-12).all()


def test_closed_form_needs_its_own_weights_and_the_frobenius_norm():
    _, made, W = trained_like(Frobenius())
    with pytest.raises(InvalidInputError, match="other ratios"):
        made.closed_form_correlation(W + np.random.default_rng(0).normal(size=W.shape))
    _, other, W = trained_like(Lp(3))
    with pytest.raises(InvalidInputError, match="Frobenius"):
        other.closed_form_correlation(W)


def test_one_kept_token_a_row_is_the_margin_problem_alone():
    tokens, selection = random_tokens(3, 4, 4, 5)
    W = solve(MarginProblem.from_selection(tokens, selection)).W
    found = decompose(tokens, softmax(100 * tokens.scores(W), axis=-1))
    assert found.selection == selection
    assert (found.finite.W == 0).all()
    np.testing.assert_allclose(found.directional.W, W, atol=1e-10)
    np.testing.assert_allclose(found.closed_form_correlation(100 * W), 1, atol=1e-12)
    np.testing.assert_allclose(found.multiplier(100 * W), 100, rtol=1e-9)


def test_all_tokens_kept_leave_no_direction():
    tokens, _ = random_tokens(1, 2, 3, 6)
    W = np.random.default_rng(0).normal(size=(6, 6))
    found = decompose(tokens[0], tokens[0].scores(W), logarithmic=True)
    assert found.all_kept
    assert (found.directional.W == 0).all()
    assert found.multiplier(W) == 0
    np.testing.assert_array_equal(found.predict(50.0), found.finite.W)
    assert found.closed_form_correlation(W) == pytest.approx(found.correlation(W), abs=1e-12)
    assert "all tokens kept" in repr(found)


def test_ambiguous_rows_are_marked():
    tokens, _ = random_tokens(1, 3, 3, 6)
    weights = np.array([[0.5, 0.5, 1e-9], [0.9, 0.1, 1e-4], [1.0, 0.0, 0.0]])
    found = decompose(tokens[0], weights)
    assert found.ambiguous.ravel().tolist() == [False, True, False]
    assert found.selection.mask.sum(-1).ravel().tolist() == [2, 2, 1]
    assert decompose(tokens[0], weights, threshold=5e-5).ambiguous.sum() == 0
    one = Selection.from_index(tokens[0], [0, 0, 0])
    assert decompose(tokens[0], weights, selection=one).ambiguous.ravel().tolist() == [1, 1, 0]
    assert "1 of 3" in repr(found)


def test_ratios_that_no_matrix_gives_are_infeasible():
    # The same pair of tokens under the same query, with two ratios of weights.
    keys = np.array([[[1.0, 0], [-1, 0], [0, 1]]] * 2)
    tokens = Tokens(keys, np.ones((2, 1)))
    found = decompose(tokens, [[0.5, 0.5, 0], [0.25, 0.75, 0]])
    assert found.finite.status is Status.INFEASIBLE
    assert np.isnan(found.correlation(np.ones((2, 1))))
    assert "infeasible" in repr(found)
    same = decompose(tokens, [[0.25, 0.75, 0], [0.25, 0.75, 0]])
    np.testing.assert_allclose(same.finite.W.ravel(), [-np.log(3) / 2, 0], atol=1e-12)


def test_logarithms_reach_below_the_smallest_float():
    tokens, made, _ = trained_like(Frobenius())
    W = made.predict(1e5)
    scores = tokens.scores(W)
    assert (softmax(scores, axis=-1)[~made.selection.mask] == 0).all()
    found = decompose(tokens, scores, logarithmic=True)
    assert found.selection == made.selection
    np.testing.assert_allclose(found.finite.W, made.finite.W, atol=1e-7)
    np.testing.assert_allclose(found.closed_form_correlation(W), 1, atol=1e-12)


def test_masked_entries_play_no_part(rng):
    tokens = Tokens.causal(unit(rng.normal(size=(2, 4, 6))))
    W = rng.normal(size=(6, 6))
    found = decompose(tokens, tokens.scores(W), logarithmic=True, selection=top_two_of(tokens, W))
    plain = softmax(tokens.scores(W), axis=-1)
    plain[~tokens.mask] = np.nan
    same = decompose(tokens, plain, selection=top_two_of(tokens, W))
    np.testing.assert_allclose(same.finite.W, found.finite.W, atol=1e-12)
    assert found.closed_form_correlation(W) == pytest.approx(found.correlation(W), abs=1e-12)


def top_two_of(tokens, W):
    chosen = top_two(tokens.scores(W)).mask & tokens.mask
    return Selection(chosen, np.zeros(chosen.shape[:-1], dtype=bool))


def test_labeled_arrays():
    _, made, _ = trained_like(Frobenius())
    data = made.to_xarray()
    assert data["finite"].dims == ("instance", "row", "column")
    assert data["ambiguous"].dims == ("instance", "sequence", "query")
    assert data["finite_status"].values.tolist() == ["optimal"] * 4
    assert "<table" in made._repr_html_()


@pytest.mark.parametrize(
    ("weights", "options", "words"),
    [
        (np.ones((2, 3)), {}, "weights: the shape"),
        (np.full((3, 3), -1.0), {}, "negative"),
        (np.zeros((3, 3)), {}, "all weights of a row are zero"),
        (np.full((3, 3), np.nan), {}, "NaN"),
        (np.eye(3), {"threshold": 0.5}, "threshold"),
        (np.eye(3), {"negligible": 0.1}, "threshold"),
        (np.eye(3), {"selection": "all"}, "weight zero in sequence 0, query 0"),
    ],
)
def test_bad_input_is_refused(weights, options, words):
    tokens, _ = random_tokens(1, 3, 3, 6)
    tokens = tokens[0]
    if "selection" in options:
        mask = np.ones(tokens.mask.shape, dtype=bool)
        options = {"selection": Selection(mask, np.zeros(mask.shape[:-1], dtype=bool))}
    with pytest.raises(InvalidInputError, match=words):
        decompose(tokens, weights, **options)


@pytest.mark.parametrize("measure", ["multiplier", "nearest", "correlation"])
def test_matrices_of_another_shape_are_refused(measure):
    _, made, W = trained_like(Frobenius(), count=1)
    for wrong in (W[0, :, :5], W[0, 0], "W", None):  # NumPy would stretch a row to a matrix
        with pytest.raises(InvalidInputError, match="W"):
            getattr(made, measure)(wrong)
    with pytest.raises(InvalidInputError, match="norm"):
        made.predict("far")


def test_correlations_with_matrices_of_any_size_and_of_none(rng):
    tokens = Tokens(rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4)))
    weights = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    parts = decompose(tokens, weights)
    W = parts.directional.W
    np.testing.assert_allclose(parts.correlation(1e300 * W), parts.correlation(1e10 * W))
    assert np.isnan(parts.correlation(np.full(W.shape, np.inf)))
    with pytest.raises(InvalidInputError, match="norm: the entry"):
        parts.predict(np.inf)

import sys

import numpy as np
import pytest

from attractor.prompts import (
    AttentionHead,
    Empirical,
    Gaussian,
    Mixture,
    Product,
    Rademacher,
    StudentT,
    Uniform,
    monte_carlo_error,
    output,
    prompt_length,
)
from attractor.prompts.finite_length import error_of_output, measure_output_error
from attractor.prompts.length.curves import _GRID, LawErrors, law_errors, spread_over
from attractor.support.errors import InvalidInputError

RNG = np.random.default_rng(6)
HEAD = AttentionHead(RNG.normal(size=(2, 2)) / 2, RNG.normal(size=(3, 2)))
QUERIES = RNG.normal(size=(4, 2))
MIXTURE = Mixture([0.3, 0.7], [Gaussian([1.0, 0], np.eye(2)), Gaussian([-1, 2], np.eye(2) / 4)])
PRODUCT = Product([Uniform(1.5, 1), Rademacher(1)]).pushforward(np.eye(2), [0.5, -1])
POINTS = Empirical(RNG.normal(size=(6, 2)), [1, 1, 2, 3, 1, 0.01]).with_noise(0.2)
LAWS = {"mixture": MIXTURE, "product": PRODUCT, "points": POINTS}


@pytest.fixture(scope="module", params=LAWS)
def law(request):
    return LAWS[request.param]


@pytest.fixture(scope="module")
def found(law):
    return prompt_length(HEAD, law, QUERIES, errors=(0.5, 0.1, 0.02), lengths=(1, 7, 500))


def relative(law, place, length):
    """The error at a length, from the exact average."""
    norm = np.linalg.norm(output(law, HEAD, QUERIES[place]))
    return np.sqrt(measure_output_error(law, HEAD, QUERIES[place], length)) / norm


def test_errors_and_required_lengths_are_those_of_the_law(law, found):
    errors = found.law_errors
    assert sorted(errors.query) == [0, 1, 2, 3] and errors.refused == 0
    required = errors.length_for(found.errors)
    lengths = np.array([1, 2, 3, 5, 11, 77, 12_345, 987_654_321])
    for row, place in enumerate(errors.query):
        at = errors.errors_at(lengths)[row]
        np.testing.assert_allclose(at, relative(law, place, lengths), rtol=1e-5)
        whole = np.ceil(required[row])
        reached = relative(law, place, np.concatenate([whole, np.maximum(whole - 1, 1)]))
        assert (reached[:3] <= found.errors * (1 + 1e-6)).all()
        assert ((reached[3:] >= found.errors * (1 - 1e-6)) | (whole == 1)).all()


def test_sampled_prompts_agree(law, found):
    place = int(found.law_errors.query[1])
    sampled = monte_carlo_error(law, HEAD, QUERIES[[place]], 500, prompts=300, seed=3)
    error, noise = sampled.average.output, sampled.standard_error.output
    exact = (found.law_errors.errors_at([500])[1, 0] * found.law_errors.output[1]) ** 2
    assert abs(error - exact) < 3 * noise < exact


def test_a_law_that_is_gaussian_in_disguise_needs_what_gaussian_tokens_need():
    plain = Gaussian([1.0, -0.5], [[1.0, 0.3], [0.3, 0.5]])
    found = prompt_length(HEAD, Mixture([1, 2], [plain, plain]), QUERIES)
    errors, at = found.law_errors, np.array([1.0, 9, 2000])
    given = (plain.covariance, HEAD.score_matrix, HEAD.value_matrix)
    exact = error_of_output(*given, QUERIES[errors.query][:, None], at)
    np.testing.assert_allclose(errors.errors_at(at), np.sqrt(exact) / errors.output[:, None], 1e-6)
    np.testing.assert_allclose(
        errors.length_for(found.errors), found.required_for_output[errors.query], rtol=1e-5
    )


def test_samples_from_an_unknown_law_and_gaussian_tokens_have_none():
    assert prompt_length(HEAD, RNG.normal(size=(40, 2)), QUERIES).law_errors is None
    found = prompt_length(HEAD, Gaussian.isotropic(2), QUERIES)
    assert found.law_errors is None and found.summary()["law_itself"] is None
    assert "law itself" not in repr(found)


def test_a_length_is_the_last_at_which_the_error_is_crossed():
    fall = 1 / _GRID
    bump = fall * (1 + 50 * np.exp(-((np.log(_GRID) - np.log(1e5)) ** 2)))
    errors = LawErrors(np.arange(4), 0, np.array([1.0, 1, 0, 1]),
                       np.stack([fall, bump, fall, 0 * fall]))  # fmt: skip
    length = errors.length_for([0.01, 2.0, 1e-9])
    assert length[0, 0] == pytest.approx(1e4, rel=1e-6)
    assert 1e5 < length[1, 0] < 1e6
    assert errors.errors_at(length[1, :1])[1, 0] == pytest.approx(0.01, rel=1e-9)
    np.testing.assert_array_equal(length[[0, 1, 3], 1], 1)
    assert np.isinf(length[2]).all() and np.isinf(length[:3, 2]).all()
    np.testing.assert_array_equal(length[3], 1)


def test_scores_and_values_of_zero():
    still = law_errors(AttentionHead(np.zeros((2, 2)), np.eye(2)), MIXTURE, QUERIES, np.zeros(4))
    total = np.trace(MIXTURE.covariance) / np.array([1.0, 100])
    expected = np.sqrt(total) / np.linalg.norm(MIXTURE.mean)
    np.testing.assert_allclose(still.errors_at([1, 100]), [expected] * 4, rtol=1e-8)
    across = AttentionHead(HEAD.score_matrix, [[0.0, 0.0]])
    with np.errstate(invalid="ignore"):
        assert not law_errors(across, PRODUCT, QUERIES, np.zeros(4)).square.any()


def test_queries_without_a_formula_are_left_out():
    deviations = np.linalg.norm(QUERIES, axis=-1)
    wide = np.concatenate([QUERIES, 1e6 * QUERIES[:1]])
    found = law_errors(HEAD, PRODUCT, wide, np.append(deviations, 1e9))
    assert found.refused == 1 and 4 not in found.query
    assert law_errors(HEAD, StudentT(3.0, 2), QUERIES, deviations) is None


def test_laws_of_many_parts_have_fewer_queries(monkeypatch):
    module = sys.modules["attractor.prompts.length.curves"]
    monkeypatch.setattr(module, "measure_output_error", lambda *given: given[-1])
    many = RNG.normal(size=(100, 2))
    few = Empirical(RNG.normal(size=(1000, 2)), RNG.random(1000))
    assert len(law_errors(HEAD, few, many, many[:, 0]).query) == 300 // 21
    assert len(law_errors(HEAD, Rademacher(2), many, many[:, 0]).query) == 32


def test_a_result_says_what_prompts_of_the_law_need(law, found):
    numbers = found.summary()["law_itself"]
    assert numbers["queries"] == found.law_errors.query.tolist()
    assert [one["error"] for one in numbers["required"]] == [0.5, 0.1, 0.02]
    assert numbers["at"][1]["error"]["0.5"] > numbers["at"][2]["error"]["0.5"] > 0
    assert "limit, for 4 queries" in repr(found) and type(law).__name__ in repr(found)
    data = found.to_xarray()
    assert data["law_required_length"].dims == ("chosen", "wanted")
    assert data["law_output_error"].dims == ("quantile", "length")


def test_lengths_are_checked(found):
    for lengths in ([0.5], [1e13], [[1.0]]):
        with pytest.raises(InvalidInputError, match=r"^lengths: "):
            found.law_errors.errors_at(lengths)


def test_queries_are_spread_over_all_score_deviations():
    values = RNG.permutation(100)
    np.testing.assert_array_equal(values[spread_over(values, 4)], [12, 37, 62, 87])
    np.testing.assert_array_equal(np.sort(spread_over(values, 500)), np.arange(100))

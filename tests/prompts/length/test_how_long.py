import numpy as np
import pytest

from attractor.prompts import AttentionHead, Empirical, Gaussian, Rademacher, output_error
from attractor.prompts.finite_length import error_of_output
from attractor.prompts.length import prompt_length, required_length
from attractor.prompts.length.result import facts, table, token_count
from attractor.support.errors import InvalidInputError

RNG = np.random.default_rng(5)
HEAD = AttentionHead(RNG.normal(size=(3, 2)) / 2, RNG.normal(size=(4, 3)))
ROOT = RNG.normal(size=(3, 3))
TOKENS = Gaussian(np.ones(3), ROOT @ ROOT.T)
QUERIES = RNG.normal(size=(7, 2))
ONE = AttentionHead(np.eye(1), np.eye(1))


def in_one_dimension(deviations, **options):
    """A head whose score deviations are the queries."""
    return prompt_length(ONE, Gaussian.isotropic(1), np.reshape(deviations, (-1, 1)), **options)


@pytest.fixture(scope="module")
def found():
    return prompt_length(HEAD, TOKENS, QUERIES, errors=(0.05, 0.2), lengths=(30, 3000))


def test_scores_and_horizon_are_those_of_the_paper(found):
    directions = QUERIES @ HEAD.score_matrix.T
    squares = np.einsum("md,de,me->m", directions, TOKENS.covariance, directions)
    np.testing.assert_allclose(found.score_deviation**2, squares, rtol=1e-10)
    queries = np.cov(QUERIES.T, bias=True)
    product = HEAD.score_matrix.T @ TOKENS.covariance @ HEAD.score_matrix @ queries
    assert found.horizon**2 == pytest.approx(np.linalg.eigvals(product).real.max(), rel=1e-10)


def test_lengths_and_errors_of_every_query_are_exact(found):
    s = found.score_deviation
    np.testing.assert_array_equal(found.errors, [0.2, 0.05])
    np.testing.assert_allclose(found.required, required_length(s[:, None], [0.2, 0.05]), rtol=1e-9)
    along = np.sqrt(output_error(s[:, None], [30, 3000])) / s[:, None]
    np.testing.assert_allclose(found.errors_at(found.lengths)[0], along, rtol=1e-5)


def test_errors_of_the_whole_output_are_exact(found):
    limit = (TOKENS.mean + QUERIES @ HEAD.score_matrix.T @ TOKENS.covariance) @ HEAD.value_matrix.T
    norm = np.linalg.norm(limit, axis=-1)
    given = (TOKENS.covariance, HEAD.score_matrix, HEAD.value_matrix, QUERIES)
    error = np.sqrt(error_of_output(*given, 3000)) / norm
    np.testing.assert_allclose(found.errors_at(3000)[1][:, 0], error, rtol=1e-5)
    reached = found.required_for_output[:, 0]
    inside = (reached > 1) & np.isfinite(reached)
    assert inside.sum() > 3
    again = np.sqrt(error_of_output(*given, np.where(inside, reached, 1))) / norm
    np.testing.assert_allclose(again[inside], 0.2, rtol=1e-5)


def test_samples_are_taken_for_their_moments_and_told_from_gaussian_ones():
    points = Rademacher(3).sample(3000, seed=0)
    sampled = prompt_length(HEAD, points, QUERIES)
    moments = Gaussian(points.mean(0), np.cov(points.T, bias=True))
    gaussian = prompt_length(HEAD, moments, QUERIES)
    np.testing.assert_allclose(sampled.required, gaussian.required, rtol=1e-6)
    assert gaussian.defect.held_out == 0 and sampled.defect.held_out == 1500
    exact = prompt_length(HEAD, Rademacher(3), QUERIES).defect
    distance = (sampled.defect.along - exact.along) / sampled.defect.along_standard_error
    assert np.abs(distance[sampled.defect.resolved]).max() < 4
    assert "none" in repr(gaussian) and "queries resolved" in repr(sampled)


def test_queries_are_those_of_the_tokens_where_none_are_given():
    law = Gaussian(np.ones(3), np.eye(3))
    head = AttentionHead(np.eye(3) / 2, np.eye(3))
    first, same, other = (prompt_length(head, law, drawn_queries=20, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.required, same.required)
    assert (first.queries != other.queries).any() and first.queries.shape == (20, 3)
    assert first.horizon == pytest.approx(0.5)
    assert prompt_length(head, Empirical(np.eye(8)[:, :3])).queries.shape == (8, 3)


def test_lengths_are_rounded_up():
    length = token_count(float(required_length(2, 0.1)))
    assert f"{length} / {length}" in repr(in_one_dimension([2, -2], errors=[0.1]))
    assert [token_count(length) for length in (1, 523.53, 3103.4, 447933, 4.53e8, np.inf)] == [
        "1", "530", "3,200", "450,000", "4.6e8", "over 1e12",
    ]  # fmt: skip


def test_scores_of_extreme_queries():
    found = in_one_dimension([0, 0.02, 1, 1, 1, 40], errors=[0.1], lengths=[1000])
    assert found.required[[0, 5]].tolist() == [[np.inf], [np.inf]]
    along, _ = found.errors_at(1000)
    assert np.isinf(along[0, 0]) and np.isnan(along[5, 0])
    tokens = found.summary()["required"][0]["tokens"]
    assert tokens["0.95"] is None and tokens["0.5"] is not None


def test_a_head_whose_scores_do_not_vary():
    found = prompt_length(AttentionHead(np.zeros((3, 3)), np.eye(3)), TOKENS, drawn_queries=4)
    assert found.horizon == 0 and np.isinf(found.required).all()
    assert np.isfinite(found.required_for_output).all()
    assert "do not vary" in repr(found) and "over 1e12 / over 1e12" in repr(found)


def test_no_length_reaches_an_error_below_the_defect():
    found = prompt_length(ONE, Rademacher(1), np.array([[0.1], [1.0], [2.0]]), errors=(0.3, 0.1))
    np.testing.assert_allclose(found.out_of_reach, [1 / 3, 2 / 3])
    said = "33.3 %, 66.7 % of queries for 30 %, 10 %"
    assert dict(facts(found))["out of reach"] == said


def test_everything_is_there_as_labeled_arrays_and_tables(found):
    data = found.to_xarray()
    np.testing.assert_array_equal(data["required_length"].sel(wanted=0.05), found.required[:, 1])
    middle = np.median(found.errors_at(data["length"])[0], axis=0)
    np.testing.assert_array_equal(data["error"].sel(quantile=0.5), middle)
    assert float(data["horizon"]) == found.horizon
    assert "<table" in found._repr_html_()
    assert str(found).splitlines()[0] == "How long a prompt must be"
    told = found.summary()
    assert told["required"][1]["error"] == 0.05 and told["at"][1]["length"] == 3000
    header, *rows = table(found)
    assert len(header) == 3 and [row[0] for row in rows] == [
        "tokens for 20 %", "tokens for 5 %", "error at 30 tokens", "error at 3,000 tokens",
    ]  # fmt: skip
    half, most = (token_count(told["required"][0]["tokens"][share]) for share in ("0.5", "0.95"))
    assert rows[0][1] == f"{half} / {most}"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"head": "head"}, "head: str is not AttentionHead"),
        ({"tokens": np.ones(3)}, "tokens: the shape"),
        ({"tokens": Gaussian.isotropic(2)}, "direction|tokens"),
        ({"queries": np.ones((3, 3))}, "queries: the shape"),
        ({"queries": Empirical(QUERIES[None])}, "queries: .*side by side"),
        ({"errors": [0.1, 0]}, "errors: .*not above 0"),
        ({"lengths": [0.5]}, "lengths: .*below 1"),
        ({"lengths": [1e13]}, "lengths: .*beyond"),
        ({"queries": Gaussian.isotropic(2), "drawn_queries": 0}, "drawn_queries: 0 is not a count"),
    ],
)
def test_bad_input_is_named(change, named):
    given = {"head": HEAD, "tokens": TOKENS, "queries": QUERIES} | change
    with pytest.raises(InvalidInputError, match=f"^({named})"):
        prompt_length(**given)

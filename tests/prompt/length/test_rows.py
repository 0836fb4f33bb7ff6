import numpy as np
import pytest
from scipy.special import softmax

from attractor.prompt import AttentionHead, Empirical, Gaussian, Rademacher, prompt_length
from attractor.prompt.length.result import quantiles, sentences
from attractor.prompt.length.rows import score_rows, spread_over
from attractor.prompt.length.summary import summary

RNG = np.random.default_rng(4)
HEAD = AttentionHead(RNG.normal(size=(3, 2)), RNG.normal(size=(2, 3)))
SAMPLES = RNG.normal(size=(60, 3))
QUERIES = RNG.normal(size=(9, 2))


def words_of(found):
    return next(line for line in sentences(found, 0.1) if line.startswith("Over "))


def test_rows_of_samples_are_those_of_the_head_itself():
    found = prompt_length(HEAD, SAMPLES, QUERIES, lengths=[7])
    rows, summed = found.rows, summary(found, 0.1)["rows"]
    assert not rows.drawn and rows.tokens == summed["tokens"] == 60 and summed["rows"] == 9
    scores = QUERIES[rows.query] @ HEAD.score_matrix.T @ SAMPLES.T
    np.testing.assert_allclose(rows.top_probability, softmax(scores, axis=-1).max(-1), rtol=1e-12)
    for beta in (0.3, 1, 10):
        top = softmax(beta * scores, axis=-1).max(-1)
        assert (rows.concentration.top_probability_bound(beta) <= top).all()
        assert (rows.concentration.top_probability_ceiling(beta) >= top * (1 - 1e-12)).all()
    half = summed["inverse_temperature_for_half"]
    assert half["0.5"] == pytest.approx(2 * summed["rate"]["0.5"])
    assert "60 sampled tokens" in words_of(found)
    data = found.to_xarray()
    np.testing.assert_array_equal(data["row_rate"], rows.concentration.rate)


def test_a_prompt_of_the_longest_length_asked_is_drawn_from_a_law():
    law = Gaussian(np.zeros(3), np.eye(3))
    found = prompt_length(HEAD, law, QUERIES, lengths=[7, 90], seed=2)
    assert found.rows.drawn and found.rows.tokens == 90
    again = prompt_length(HEAD, law, QUERIES, lengths=[90], seed=2)
    np.testing.assert_array_equal(found.rows.top_probability, again.rows.top_probability)
    long = score_rows(HEAD, law, QUERIES, np.arange(9.0), longest=1e12, seed=0)
    assert long.tokens == 10_000
    weighted = Empirical(SAMPLES, np.arange(60.0))
    assert score_rows(HEAD, weighted, QUERIES, np.arange(9.0), longest=5, seed=0).tokens == 5


def test_what_is_certain_of_attention_is_told():
    strong = AttentionHead(60 * HEAD.score_matrix, HEAD.value_matrix)
    assert "at temperature 1, that is 100 %" in words_of(prompt_length(strong, SAMPLES, QUERIES))
    found = prompt_length(HEAD, SAMPLES, QUERIES)
    half = 2 * quantiles(found.rows.concentration.rate)[1]
    assert f"scores {half:.3g} times as large" in words_of(found)
    tied = prompt_length(HEAD, Rademacher(3), QUERIES)
    assert "Other tokens tie with it" in words_of(tied)
    assert summary(tied, 0.1)["rows"]["rate"]["0.5"] is None


def test_queries_are_spread_over_all_score_deviations():
    values = RNG.permutation(100)
    np.testing.assert_array_equal(values[spread_over(values, 4)], [12, 37, 62, 87])
    np.testing.assert_array_equal(np.sort(spread_over(values, 500)), np.arange(100))

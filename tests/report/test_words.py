import pytest

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten
from attractor.report.words import near_one, norm_in_words, prediction_sentences


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9999856, "0.9999856"),
        (0.957, "0.957"),
        (1.0, "1.0000"),
        (0.3, "0.300"),
        (float("nan"), "-"),
    ],
)
def test_near_one_shows_how_far(value, text):
    assert near_one(value).startswith(text)


def test_a_contradiction_is_not_called_a_solution(contradictory, solved):
    (sentence,) = prediction_sentences(solved(*contradictory), "the best tokens")
    assert sentence.startswith("No matrix selects the best tokens")
    assert "inf" not in sentence and "nan" not in sentence


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        (Frobenius(), "Frobenius"),
        (Lp(2), "Frobenius"),
        (Nuclear(), "nuclear"),
        (Lp(1.5), "l_1.5"),
        (Schatten(3), "Schatten-3"),
    ],
)
def test_norms_are_called_what_people_call_them(geometry, words):
    assert norm_in_words(geometry) == words

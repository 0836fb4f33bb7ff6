import pytest

from attractor.report.words import near_one, prediction_sentences


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

"""Exponents of errors averaged over queries, beside published references."""

import numpy as np
import pytest

from attractor.papers import Outcome, examine, get_claim
from attractor.papers.data import line
from attractor.prompts import AttentionHead, HeadCase
from attractor.prompts.measures import Gaussian


def found(name, case):
    return examine(get_claim(f"token-sample-complexity/{name}"), case)


@pytest.mark.parametrize(
    ("horizon", "exponent", "reference"), [(1, 0.309, 0.25), (2, 0.1036, 0.1), (3, 0.0505, 0.05)]
)
def test_the_reference_is_nearly_tight(horizon, exponent, reference):
    details = found("sample-complexity-exponent", line(float(horizon))).measured.details
    assert details["in the limit"] == pytest.approx(exponent, abs=1e-4)
    assert details["reference"] == pytest.approx(reference, abs=1e-12)
    assert details["at 1e12 tokens"] > details["reference"]


def test_with_many_directions_of_scores_the_rate_on_a_ball_alone_is_told():
    eye, law = np.eye(8), Gaussian(np.zeros(8), np.eye(8))
    many = HeadCase(AttentionHead(eye, eye), law, law)
    told = found("sample-complexity-exponent", many)
    assert told.outcome is Outcome.ASSUMPTION_NOT_MET
    assert told.reason == "scores along few directions: the variance is 8 times the largest"
    assert found("uniform-rate", many).outcome is Outcome.HOLDS

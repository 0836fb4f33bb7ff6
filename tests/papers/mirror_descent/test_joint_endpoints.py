"""Joint descent with labels beyond the margin: which runs count, and where they do not end."""

import pytest

from attractor.attention import LinearHead
from attractor.papers import Case, Outcome, examine
from attractor.papers.mirror_descent.claims.joint_endpoints import JOINT_DIRECTIONS, JOINT_ENDPOINTS
from attractor.papers.mirror_descent.data import two_sequences


@pytest.mark.parametrize("claim", [JOINT_ENDPOINTS, JOINT_DIRECTIONS])
def test_runs_with_all_labels_at_the_margin_are_not_what_they_speak_of(claim):
    case = Case(two_sequences(), LinearHead([0.0, 0.0]), "v, W", steps=2000)
    found = examine(claim, case)
    assert found.outcome is Outcome.VACUOUS and found.measured.checked == 0
    assert found.measured.details["runs decided"] > 0


@pytest.mark.slow
def test_attention_stops_short_of_the_relaxed_direction_at_equal_rates():
    """The head grows as fast as attention and no faster; the relaxed limit asks for more."""
    case = JOINT_DIRECTIONS.data(0)[3]
    found = examine(JOINT_DIRECTIONS, case)
    assert found.outcome is Outcome.HOLDS
    details = found.measured.details
    low, high = details["norm of the head over that of attention"]
    assert 0.99 < low <= high < 1.01
    assert details["largest of attention from the relaxed direction"] > 0.05


def test_a_short_training_decides_nothing():
    case = JOINT_ENDPOINTS.data(0)[3].replace(steps=20)
    assert examine(JOINT_ENDPOINTS, case).outcome is Outcome.VACUOUS

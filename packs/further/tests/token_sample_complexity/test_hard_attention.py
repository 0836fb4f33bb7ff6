"""The slow fall of errors under wide scores, where it can and cannot be told."""

import numpy as np
import pytest

from attractor.papers import Outcome, examine, get_claim
from attractor.papers.data import line
from attractor.prompts import AttentionHead, HeadCase
from attractor.prompts.measures import Gaussian

CLAIM = get_claim("token-sample-complexity/hard-attention")


def of_values(values):
    head = AttentionHead([[1, 0], [0, 0]], values)
    return HeadCase(head, Gaussian([0.0, 0], np.eye(2)), Gaussian([0.0, 0], np.eye(2)))


def test_errors_do_not_depend_on_the_scale_of_scores_or_values():
    one, other = (examine(CLAIM, case).measured.value for case in (line(1.0), line(3.0, 0.1)))
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize(
    "case",
    [
        line(1.0, 0.0),
        # Values show nothing of the direction of the scores, or next to nothing.
        of_values([[0, 1]]),
        of_values([[0.1, 1]]),
    ],
)
def test_nothing_is_said_of_outputs_that_scores_do_not_move(case):
    assert examine(CLAIM, case).outcome is Outcome.VACUOUS


def test_error_under_wide_scores_by_drawing_prompts():
    # On a line, with scores 16 g and outputs g, the output of infinite prompts is 16.
    finding = examine(CLAIM, CLAIM.example())
    draws = np.random.default_rng(7)
    squares = []
    for _ in range(60):
        g = draws.standard_normal(round(np.exp(0.1 * 16**2 / 2)))
        weights = np.exp(16 * (g - g.max()))
        squares.append((weights @ g / weights.sum() - 16) ** 2 / 16**2)
    spread = np.std(squares) / np.sqrt(60)
    ((error, *_), *_) = finding.measured.details["errors"]
    assert error**2 == pytest.approx(np.mean(squares), abs=4 * spread) and spread < 0.01

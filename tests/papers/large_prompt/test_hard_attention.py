"""The slow fall of errors under wide scores, where it can and cannot be told."""

import numpy as np
import pytest

from attractor.papers import Outcome, examine, get_claim
from attractor.papers.large_prompt.data import gaussian_case, line, without_scores

CLAIM = get_claim("large-prompt/hard-attention")


def test_errors_do_not_depend_on_the_scale_of_scores_or_values():
    one, other = (examine(CLAIM, case).measured.value for case in (line(1.0), line(3.0, 0.1)))
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize(
    "case",
    [
        without_scores(),
        # Values show nothing of the direction of the scores, or next to nothing.
        gaussian_case([[1, 0], [0, 0]], [[0, 1]], np.eye(2), about="across"),
        gaussian_case([[1, 0], [0, 0]], [[0.1, 1]], np.eye(2), about="nearly across"),
    ],
)
def test_nothing_is_said_of_outputs_that_scores_do_not_move(case):
    assert examine(CLAIM, case).outcome is Outcome.VACUOUS

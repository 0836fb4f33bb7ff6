"""What regularization paths that are still on their way can say."""

import numpy as np
import pytest

from attractor.files import Case
from attractor.papers import Outcome, examine, get_claim
from attractor.papers.max_margin.claims.joint_path import least_slack
from attractor.papers.max_margin.data import joint_training
from attractor.papers.measurements.paths import RADII, end_of_path
from attractor.tokens import Tokens


def nearly_tied(gap, parameterization):
    """Three sequences, in the first of which the second token is as good but for a gap."""
    random = np.random.default_rng(4)
    keys, queries = random.standard_normal((3, 3, 4)), random.standard_normal((3, 4))
    scores = [[1, 1 - gap, 0], [1, 0.5, 0], [1, 0.5, 0]]
    return Case.from_scores(keys, scores, queries=queries, parameterization=parameterization)


@pytest.mark.parametrize("late", [1.0, 30.0, 1e3])
def test_a_distance_that_falls_with_the_radius_is_settled_where_it_stops_alone(late):
    falling = late / np.array(RADII)
    measured = end_of_path(falling, 1, {})
    assert measured.interval[0] == 0 and measured.value == measured.interval[1]
    stopped = end_of_path(0.5 + falling, 1, {})
    assert stopped.interval[0] > 0.4 - 10 * late / RADII[-1]


@pytest.mark.long
@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("name", ["global-path", "key-query-path"])
def test_scores_that_hardly_differ_make_no_path_fail(name, gap):
    claim = get_claim(f"transformers-as-svms/{name}")
    case = nearly_tied(gap, "KQ" if "key" in name else "W")
    found = examine(claim, case)
    assert found.outcome in (Outcome.HOLDS, Outcome.NOT_SETTLED), found.reason
    assert examine(claim.exchanged(), case).outcome is Outcome.FAILS


def beyond(slack):
    """Three labels, the third of which is beyond the margin of the head by a slack."""
    keys = [[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 1 + slack]]]
    tokens = Tokens(np.array(keys, float), np.ones((3, 1)), np.array([1.0, -1.0, 1.0]))
    return joint_training(all_labels_support=True).replace(tokens=tokens)


@pytest.mark.long
@pytest.mark.parametrize("slack", [1e-6, 2e-6, 1e-5, 1e-4, 2e-3, 0.1])
def test_a_label_beyond_the_margin_is_left_out_at_radii_of_many_over_its_slack(slack):
    claim, case = get_claim("max-margin/relaxed-joint-path"), beyond(slack)
    assert least_slack(case) == pytest.approx(slack, rel=1e-6)
    found = examine(claim, case)
    if RADII[-1] * slack < 0.5:
        assert found.outcome is Outcome.NOT_SETTLED, found.reason
    else:
        assert found.outcome is Outcome.HOLDS, found.reason
    if RADII[-1] * slack > 10:
        assert examine(claim.exchanged(), case).outcome is Outcome.FAILS

"""Where runs may still end, from what they have come to."""

import numpy as np
import pytest

from attractor.papers.measurements.paths import where_it_ends

SPREAD = np.geomspace(1 / 27, 1, 45)
DECADES = np.array([0.01, 0.1, 1.0])


def settled(bound, measured):
    return measured.settles(bound)


@pytest.mark.parametrize("ahead", [1.0, 2.0, 10.0])
@pytest.mark.parametrize("lengths", [SPREAD, DECADES])
@pytest.mark.parametrize("power", [0.75, 1.0, 2.0])
def test_a_known_rate_leaves_in_what_falls_to_nothing_and_out_what_stops_short(
    power, lengths, ahead
):
    falling = 0.01 * lengths**-power
    assert not settled(1e-6, where_it_ends(falling, ahead=ahead))
    assert settled(0.1, where_it_ends(0.4 + falling / 100, ahead=ahead))


@pytest.mark.parametrize(
    "values", [np.ones(3), np.ones(45), np.array([0.2, 0.3, 0.5]), np.array([1, 1, 1 - 1e-15])]
)
def test_a_run_that_does_not_fall_has_ended_unless_it_has_hardly_begun(values):
    assert settled(0.1, where_it_ends(values))
    assert not settled(0.1, where_it_ends(values, begun=False))
    assert settled(2.0, where_it_ends(values, begun=False))

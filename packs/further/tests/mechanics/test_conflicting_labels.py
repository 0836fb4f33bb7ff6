"""What labels that conflict leave of attention."""

import pytest

from attractor.papers import Outcome, examine, get_claim
from attractor_further.mechanics.data import random_labels


@pytest.mark.parametrize("uneven", [True, False])
def test_conflicts_leave_a_finite_part_whatever_the_odds(uneven):
    case = random_labels(0, cyclic=True, uneven=uneven)
    found = examine(get_claim("mechanics/conflicts-leave-a-finite-part"), case)
    assert found.outcome is Outcome.HOLDS
    assert (found.measured.details["norm of the finite part"] > 0.1) == uneven
    # descent started at a distance of one, 20 steps, within the cycles
    assert found.control.value > 10

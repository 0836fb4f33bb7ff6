import numpy as np
import pytest

from attractor.support.errors import InvalidInputError
from attractor.training.recording import record_steps


@pytest.mark.parametrize("steps", [1, 2, 7, 2000, 10**6])
def test_default_steps_hold_both_ends_and_every_small_step(steps):
    found = record_steps(steps)
    assert found[0] == 0 and found[-1] == steps and len(found) <= 62
    assert (np.diff(found) > 0).all()
    assert set(range(min(steps, 4) + 1)) <= set(found.tolist())


def test_the_users_steps_are_sorted_and_end_with_the_last():
    assert record_steps(100, [50, 0, 50]).tolist() == [0, 50, 100]
    assert record_steps(5, range(6)).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("bad", [[-1], [101], [1.5], [[1, 2]], [], ["a"], [True]])
def test_other_steps_are_refused(bad):
    with pytest.raises(InvalidInputError, match="record"):
        record_steps(100, bad)

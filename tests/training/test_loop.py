import dataclasses
import threading

import jax.numpy as jnp
import numpy as np
import pytest

from attractor.errors import TrialStatus
from attractor.training import loop


@dataclasses.dataclass(frozen=True)
class Countdown(loop.Objective):
    """A toy objective: the state counts down to its floor and rests there."""

    width: int = 1

    def step(self, state, data):
        lower = jnp.maximum(state - 1, data)
        resting = (lower == state).all()
        return lower, jnp.where(resting, TrialStatus.STATIONARY, TrialStatus.TRAINED)

    def record(self, state, data):
        return {"state": state, "floor": data}


def gather(trials):
    return trials[:, None].astype(float), np.full((len(trials), 1), 3.0)


def test_records_statuses_and_steps_taken():
    seen = []
    records = loop.run(Countdown(), gather, 60, [0, 2, 50], advance=seen.append)
    start = np.arange(60.0)
    expected = np.stack([start, *(np.maximum(start - k, np.minimum(start, 3)) for k in (2, 50))], 1)
    expected = np.where(start[:, None] < 3, np.where([0, 1, 1], 3.0, start[:, None]), expected)
    np.testing.assert_array_equal(records.series["state"][..., 0], expected)
    np.testing.assert_array_equal(records.steps_taken[3:53], np.arange(50))
    assert (records.status[:53] == TrialStatus.STATIONARY).all()
    assert (records.status[53:] == TrialStatus.TRAINED).all()
    assert sum(seen) == 60 * 50


def test_a_quantity_can_be_kept_at_the_last_step_alone():
    records = loop.run(Countdown(), gather, 30, [0, 5], last_only=frozenset({"state"}))
    assert records.series["state"].shape == (30, 1)
    assert records.series["floor"].shape == (30, 2, 1)
    np.testing.assert_array_equal(records.series["state"][10:, 0], np.arange(10, 30) - 5)


def test_the_last_measurement_of_a_frozen_block_is_kept_too():
    records = loop.run(Countdown(), gather, 4, [0, 10, 20, 30], last_only=frozenset({"state"}))
    np.testing.assert_array_equal(records.series["state"][:, 0], 3)


def test_blocks_shrink_only_with_the_memory_of_one_trial():
    def large(trials):
        return np.zeros((len(trials), 1)), np.zeros((len(trials), 2**22 - 1))

    assert loop._block_size(gather) == 25
    assert loop._block_size(large) == 8


def test_an_error_in_one_block_ends_the_run():
    def failing(trials):
        if trials[0] >= 50:
            raise MemoryError("too large")
        return gather(trials)

    before = threading.active_count()
    with pytest.raises(MemoryError, match="too large"):
        loop.run(Countdown(), failing, 100, [0, 10])
    assert threading.active_count() <= before


def test_long_stretches_between_records_change_nothing():
    seen = []
    records = loop.run(Countdown(), lambda t: (gather(t)[0] + 1e6, gather(t)[1]), 3, [7, 9001],
                       advance=seen.append)  # fmt: skip
    np.testing.assert_array_equal(records.series["state"][0, :, 0], [1e6 - 7, 1e6 - 9001])
    assert len(seen) > 4 and sum(seen) == 3 * 9001

import dataclasses
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.support.errors import TrialStatus
from attractor.support.threads import use_threads
from attractor.training import loop
from attractor.training.programs import blocks


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
    small, large = np.zeros(1), np.zeros(2**22 - 1)
    assert blocks.block_size(Countdown(), small, small, "cpu") == 25
    assert blocks.block_size(Countdown(), small, small, "gpu") == 1000
    assert blocks.block_size(Countdown(), small, large, "gpu") == 8


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


def falling(trials):
    """States that no floor stops."""
    return gather(trials)[0], np.full((len(trials), 1), -np.inf)


def below(record):
    return record["state"][0] < 8


def test_a_condition_freezes_the_trials_that_meet_it_where_they_are_recorded():
    records = loop.run(Countdown(), falling, 60, [0, 2, 8, 30, 50], stop=below)
    # Below 8 at step 0: trials 0 to 7; at step 2: up to 9; at 8: up to 15; and so on.
    expected = np.select(
        [np.arange(60) < 8, np.arange(60) < 10, np.arange(60) < 16, np.arange(60) < 38],
        [0, 2, 8, 30],
        50,
    )
    np.testing.assert_array_equal(records.steps_taken, expected)
    stopped = np.arange(60) < 58
    np.testing.assert_array_equal(records.status == TrialStatus.STOPPED, stopped)
    assert (records.status[~stopped] == TrialStatus.TRAINED).all()
    np.testing.assert_array_equal(records.series["state"][10:16, 2:, 0].T, [np.arange(2, 8)] * 3)


def test_a_run_ends_when_every_trial_has_stopped():
    seen = []
    steps = [0, 4, 10**15]
    records = loop.run(Countdown(), gather, 60, steps, stop=lambda r: True | (r["floor"][0] > 0),
                       advance=seen.append)  # fmt: skip
    assert (records.status == TrialStatus.STOPPED).all()
    assert (records.steps_taken == 0).all()
    np.testing.assert_array_equal(records.series["state"][..., 0].T, [np.arange(60.0)] * 3)
    assert sum(seen) == 60 * 10**15


def test_a_condition_gives_a_trial_the_same_numbers_alone():
    together = loop.run(Countdown(), falling, 60, [0, 2, 8, 30, 50], stop=below)
    alone = loop.run(Countdown(), lambda t: falling(t + 37), 1, [0, 2, 8, 30, 50], stop=below)
    assert alone.steps_taken[0] == together.steps_taken[37] == 30
    np.testing.assert_array_equal(alone.series["state"][0], together.series["state"][37])


@dataclasses.dataclass(frozen=True)
class Doubling(loop.Objective):
    """Doubles the state until it overflows."""

    def step(self, state, data):
        diverged = ~jnp.isfinite(2 * state)
        status = jnp.where(diverged, TrialStatus.DIVERGED, TrialStatus.TRAINED)
        return jnp.where(diverged, state, 2 * state), status

    def record(self, state, data):
        return {"state": state}


class Restarting(Doubling):
    """Goes back to one whenever it is measured."""

    def recorded(self, state, measured):
        return jnp.where(measured["state"] > 1, state / measured["state"], state)


def test_a_trial_can_keep_something_of_what_was_measured():
    records = loop.run(Restarting(), lambda t: (np.ones(len(t)),) * 2, 3, [0, 2, 5, 6])
    assert (records.series["state"] == [1, 4, 8, 2]).all()


def test_a_diverging_trial_is_frozen_and_the_others_go_on():
    start = np.where(np.arange(30) == 4, 2.0**1000, 1.0)
    records = loop.run(Doubling(), lambda t: (start[t], start[t]), 30, [0, 10, 100])
    others = np.arange(30) != 4
    assert records.status[4] == TrialStatus.DIVERGED and records.steps_taken[4] == 23
    assert (records.status[others] == TrialStatus.TRAINED).all()
    np.testing.assert_array_equal(records.series["state"][4], [2.0**1000, 2.0**1010, 2.0**1023])
    assert (records.series["state"][others] == [1, 2.0**10, 2.0**100]).all()


def test_slow_stretches_are_short_so_that_a_run_can_be_interrupted(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(blocks.time, "monotonic", lambda: next(clock))
    seen = []
    loop.run(Doubling(), lambda t: (t * 0.0, t * 0.0), 1, [0, 10], advance=seen.append)
    assert seen == [0.0] + [1.0] * 10  # a stretch of one step seems to take a second


def test_a_chosen_device_is_respected():
    chosen = jax.local_devices()[0]
    with jax.default_device(chosen):
        assert loop._devices() == [chosen]
    with jax.default_device("cpu"):
        assert loop._devices() == jax.local_devices(backend="cpu")
    assert loop._devices() == jax.local_devices()


@dataclasses.dataclass(frozen=True)
class Losing(Countdown):
    """The loss is undefined below a height, where steps go on or come to rest."""

    def record(self, state, data):
        return {"loss": jnp.where(state[0] < 5, jnp.nan, state[0]), "state": state}


def test_a_trial_without_a_loss_has_diverged_and_stays():
    starts = np.array([[3.0], [4.0], [8.0], [50.0]])
    records = loop.run(
        Losing(), lambda trials: (starts[trials], np.full((len(trials), 1), 3.0)), 4, [0, 2, 6, 9]
    )
    diverged, trained = TrialStatus.DIVERGED, TrialStatus.TRAINED
    assert records.status.tolist() == [diverged, diverged, diverged, trained]
    assert records.series["state"][..., 0].tolist() == [
        [3, 3, 3, 3], [4, 4, 4, 4], [8, 6, 3, 3], [50, 48, 44, 41]
    ]  # fmt: skip
    assert records.steps_taken.tolist() == [0, 0, 5, 9]


def test_a_condition_met_without_a_loss_stays_what_it_is():
    records = loop.run(Losing(), gather, 1, [0, 2], stop=lambda record: jnp.isnan(record["loss"]))
    assert records.status.tolist() == [TrialStatus.STOPPED]


def test_the_number_of_threads_changes_no_bit_and_is_kept_to(monkeypatch):
    sizes, pool = [], loop.ThreadPoolExecutor
    monkeypatch.setattr(
        loop, "ThreadPoolExecutor", lambda workers: sizes.append(workers) or pool(workers)
    )
    monkeypatch.setattr(loop, "_devices", lambda: jax.local_devices()[:1])
    found = []
    for threads in (1, 2, 4):
        with use_threads(threads):
            found.append(loop.run(Countdown(), gather, 100, [2, 40]))
    assert sizes == [1, 2, 4]
    for one in found[1:]:
        assert np.array_equal(one.series["state"], found[0].series["state"])
        assert np.array_equal(one.steps_taken, found[0].steps_taken)

"""Who gets which chunk, for how long, and a whole sweep through Dask within this process."""

import time

import made_up
import numpy as np
import pytest
from hypothesis import given, strategies as st
from made_up import PLAIN

from attractor.maps.sweeps import Grid, sweep
from attractor.maps.sweeps.dispatch import Dispatcher, Patience, Programs
from attractor.maps.sweeps.storage.layout import Layout
from attractor.maps.sweeps.storage.store import DONE, FIELDS
from attractor.support.errors import InvalidInputError


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.integers(1, 8), st.randoms())
def test_every_chunk_is_given_once_and_workers_keep_their_program(programs, workers, random):
    programs, numbers = np.array(programs), np.arange(len(programs)) + 5
    left, of, given = Programs(numbers, programs), {}, []
    remaining = dict(zip(*np.unique(programs, return_counts=True), strict=True))
    while left.left:
        worker = f"worker{random.randrange(workers)}"
        if random.random() < 0.1:
            left.forget(worker)
            of.pop(worker, None)
        number = left.take(worker)
        program = programs[number - 5]
        if remaining.get(of.get(worker)):
            assert program == of[worker]
        else:
            others = [p for w, p in of.items() if w != worker]
            rank = {p: count / (1 + others.count(p)) for p, count in remaining.items() if count}
            assert rank[program] == max(rank.values())
        of[worker] = program
        remaining[program] -= 1
        given.append(number)
    assert sorted(given) == numbers.tolist()


def test_a_chunk_may_take_ten_times_as_long_as_those_of_its_program():
    layout = Layout.of(Grid({"n": [1, 2, 3]}, instances=2, chunk=1), PLAIN)
    records = np.zeros((6, len(FIELDS)))
    records[0, [0, 2]] = DONE, 90.0
    records[2, [0, 2]] = DONE, 5.0
    patience = Patience(None, layout, records)
    assert [patience.of(program) for program in range(3)] == [900, 600, 3600]
    patience.learn(0, 50.0)
    patience.learn(1, 1000.0)
    assert [patience.of(program) for program in range(3)] == [900, 10_000, 10_000]
    assert Patience(7.0, layout, records).of(0) == 7


@pytest.fixture(scope="module")
def client():
    """Two workers of two threads each, within this process."""
    from distributed import Client, LocalCluster

    settings = {"processes": False, "n_workers": 2, "threads_per_worker": 2,
                "dashboard_address": "127.0.0.1:0", "protocol": "inproc"}  # fmt: skip
    with LocalCluster(**settings) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def lets_go(client):
    """Whether nothing is left of a sweep at the scheduler, once its client has said so."""
    end = time.monotonic() + 20
    while client.futures and time.monotonic() < end:
        time.sleep(0.01)
    return not client.futures


def measures(path):
    files = [file for name in made_up.MEASURES for file in sorted((path / name).iterdir())]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


GRID = Grid({"n": [1, 2, 3], "rate": [0.1, 0.2]}, instances=8, chunk=4)


def test_a_cluster_gives_the_bytes_of_one_process(client, tmp_path):
    here = sweep(GRID, PLAIN, tmp_path / "here")
    there = sweep(GRID, PLAIN, tmp_path / "there", client)
    assert here.computed == there.computed == 12 and there.status.left == 0
    assert measures(tmp_path / "here") == measures(tmp_path / "there")
    assert sweep(GRID, PLAIN, tmp_path / "there", client).computed == 0
    assert client.status == "running" and lets_go(client)


def test_workers_that_do_not_see_the_store_send_what_they_computed(client, tmp_path, monkeypatch):
    monkeypatch.setattr("attractor.maps.sweeps.work._visible", lambda path, token: None)
    sweep(GRID, PLAIN, tmp_path / "there", client)
    monkeypatch.undo()
    sweep(GRID, PLAIN, tmp_path / "here")
    assert measures(tmp_path / "here") == measures(tmp_path / "there")


def test_chunks_that_raise_or_hang_are_marked_and_no_other(client, tmp_path):
    grid = Grid({"kind": ["fine", "raises", "hangs"], "n": [1, 2]}, instances=3)
    summary = sweep(grid, made_up.experiment(), tmp_path / "s", client, patience_chunk=0.5)
    assert summary.status.done == 2 and summary.status.left == 0
    assert {place[0] for place in summary.newly_failed} == {1, 2}
    errors = {failure.place[0]: failure.error for failure in summary.status.failed}
    assert "this point" in errors[1] and "it hangs" in errors[2]


def test_what_no_other_worker_would_do_better_ends_the_sweep(client, tmp_path):
    with pytest.raises(InvalidInputError, match=r"^experiment: made_up:run_wrong returned number"):
        sweep(Grid({"n": [1, 2]}, 2), made_up.wrong("complex"), tmp_path / "s", client)
    assert lets_go(client)


@pytest.mark.long
def test_few_chunks_are_with_the_scheduler_at_once(client, tmp_path, monkeypatch):
    most, real = 0, Dispatcher._submit

    def counting(self, number, worker):
        nonlocal most
        real(self, number, worker)
        most = max(most, len(self._flying))

    monkeypatch.setattr(Dispatcher, "_submit", counting)
    grid = Grid({"n": list(range(60))}, instances=1)
    assert sweep(grid, PLAIN, tmp_path / "s", client).computed == 60
    assert 4 < most <= 2 * 4  # two for each thread


def test_workers_with_another_source_are_refused(client, tmp_path, monkeypatch):
    monkeypatch.setattr("attractor.maps.sweeps.work._source", lambda name: "another")
    with pytest.raises(InvalidInputError, match=r"^experiment: the file of made_up:run is another"):
        sweep(GRID, PLAIN, tmp_path / "s", client)

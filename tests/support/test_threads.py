import os
import threading
import time

import pytest

import attractor as at
from attractor.support.errors import InvalidInputError
from attractor.support.threads import (
    in_threads,
    number_of_threads,
    processors,
    under_the_same_settings,
    use_threads,
)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    monkeypatch.delenv("ATTRACTOR_THREADS", raising=False)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors are not assigned here")
def test_processors_are_those_that_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    assert processors() == len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert processors() == 1
        here = dict(in_threads(lambda _: threading.current_thread(), range(3)))
        assert set(here.values()) == {threading.current_thread()}
    finally:
        os.sched_setaffinity(0, allowed)


def test_every_item_comes_with_its_result():
    assert dict(in_threads(lambda item: item**2, range(20))) == {i: i**2 for i in range(20)}
    assert dict(in_threads(lambda item: item**2, [])) == {}


def test_an_exception_is_raised_and_drops_what_has_not_begun():
    begun = []

    def work(item):
        begun.append(item)
        time.sleep(0.01 * (item > 0))
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        dict(in_threads(work, range(1)))
    with pytest.raises(ValueError):
        dict(in_threads(work, range(10_000)))
    assert len(begun) < 10_000


def at_once(count, threads):
    """How many of some pieces of work were under way at the same time, at most."""
    meeting, most = threading.Barrier(threads), []

    def work(_):
        most.append(meeting.wait(timeout=10))  # breaks where fewer come

    dict(in_threads(work, range(count)))
    return max(most) + 1


def test_the_block_counts_before_the_environment_and_that_before_the_processors(monkeypatch):
    assert number_of_threads() == processors()
    monkeypatch.setenv("ATTRACTOR_THREADS", "3")
    assert number_of_threads() == at_once(6, 3) == 3
    with at.use_threads(2):
        assert number_of_threads() == at_once(4, 2) == 2
        with use_threads(5):
            assert number_of_threads() == 5
        assert number_of_threads() == 2
        with pytest.raises(KeyError), use_threads(4):
            raise KeyError
        assert number_of_threads() == 2
    assert number_of_threads() == 3


def test_one_thread_is_the_thread_that_asks():
    with use_threads(1):
        here = dict(in_threads(lambda _: threading.current_thread(), range(3)))
    assert set(here.values()) == {threading.current_thread()}


def test_threads_started_inside_have_the_number_and_other_threads_do_not():
    count = processors() + 1
    with use_threads(count):
        inside = dict(in_threads(lambda _: number_of_threads(), range(4)))
        assert set(inside.values()) == {count}
        assert set(dict(in_threads(lambda _: at_once(count, count), range(2))).values()) == {count}
        found = []
        for work in (number_of_threads, under_the_same_settings(number_of_threads)):
            other = threading.Thread(target=lambda work=work: found.append(work()))
            other.start()
            other.join()
        assert found == [processors(), count]


def test_blocks_of_several_threads_do_not_meet():
    meeting = threading.Barrier(3)

    def work(count):
        with use_threads(count):
            meeting.wait(timeout=10)
            return number_of_threads()

    with use_threads(3):
        assert dict(in_threads(work, (1, 7, 9))) == {1: 1, 7: 7, 9: 9}


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", "1e3", "99999", "٣"])
def test_a_bad_number_in_the_environment_is_an_error_that_names_it(monkeypatch, text):
    monkeypatch.setenv("ATTRACTOR_THREADS", text)
    with pytest.raises(InvalidInputError, match="ATTRACTOR_THREADS"):
        number_of_threads()
    with pytest.raises(InvalidInputError, match="ATTRACTOR_THREADS"):
        at.solve(at.MarginProblem([[1.0]], [[1.0]]))
    with use_threads(2):
        assert number_of_threads() == 2


def test_an_empty_variable_counts_as_none(monkeypatch):
    monkeypatch.setenv("ATTRACTOR_THREADS", " ")
    assert number_of_threads() == processors()


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True, None, 10**6])
def test_a_bad_number_is_an_error_before_the_block(count):
    with pytest.raises(InvalidInputError, match="count"):
        use_threads(count)

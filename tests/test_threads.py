import os
import threading
import time

import pytest

from attractor.threads import in_threads, processors


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

import pytest

from attractor.support import progress
from attractor.support.progress import progress_bar, time_in_words


def test_work_of_an_earlier_run_is_done_but_says_nothing_about_the_rate(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, in the eyes of rich
    with progress_bar("training", 100) as advance:
        task = advance._bar.tasks[0]
        advance.skip(90)
        assert task.completed == 90 and task.remaining == 10
        assert task.speed is None
        advance(1)
        advance(2)
        assert task.completed == 93 and task.speed > 0
        # The rate is that of the work done here: 90 more would make it thirty times higher.
        first, *others = task._progress
        assert sum(sample.completed for sample in (first, *others)) == 3


def test_a_bar_that_is_not_shown_takes_everything_and_prints_nothing(capfd):
    with progress_bar("training", 100, enabled=False) as advance:
        advance.skip(90)
        advance(1)
        advance.note("at rest")
    assert capfd.readouterr() == ("", "")


def test_a_log_gets_lines_now_and_then(capfd, monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress_bar("sweeping", 1000, lines_every=30) as bar:
        bar.skip(400)
        for now in (110.0, 131.0, 140.0):  # noqa: B007
            bar(100)
        bar.note("2 failed")
        now = 200.0
        bar(100)
    assert capfd.readouterr().err.splitlines() == [
        "sweeping: 600 of 1,000, 6.45/s, 62 s left",
        "sweeping: 800 of 1,000, 4/s, 50 s left; 2 failed",
        "sweeping: 800 of 1,000, 4/s, 50 s left; 2 failed",
    ]


def test_short_work_leaves_a_log_empty(capfd):
    with progress_bar("sweeping", 2) as bar:
        bar(2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.25, "0.25 s"), (119, "119 s"), (600, "10 min"), (7200, "2 h"), (864000, "10 days")],
)
def test_times_in_words(seconds, words):
    assert time_in_words(seconds) == words

from attractor.progress import progress_bar


def test_work_of_an_earlier_run_is_done_but_says_nothing_about_the_rate():
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

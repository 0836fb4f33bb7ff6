"""The figure of the published runs: whose runs it shows, and what is read off them."""

import numpy as np
import pytest
import xarray as xr

from attractor.papers import get_figure
from attractor.papers.figure import Request
from attractor.papers.large_prompt.figures.official_runs import PATHS, _runs
from attractor.prompts.regression import InContextRuns, RegressionTask, train_at_lengths
from attractor.support.errors import InvalidInputError

SETTINGS = {
    "seeds": 1,
    "steps": 3,
    "optimizer": "as published",
    "lengths": (8, 100),
    "trained_lengths": (4, 8),
}
FIGURE = get_figure("large-prompt/official-runs")


def same(first, second):
    return first.to_xarray().equals(second.to_xarray())


def test_runs_of_ones_own_are_shown_as_they_are(tmp_path):
    trained, path = _runs(Request("quick", SETTINGS))
    assert path == "as run" and trained.runs[0].settings["seed"] == 327
    trained.save(tmp_path / "runs")
    given = Request("quick", SETTINGS, source=tmp_path / "runs")
    assert same(_runs(given)[0], InContextRuns(trained.runs[1::2]))
    assert set(given.hashes) == {"runs"}
    none = Request("quick", SETTINGS | {"lengths": (100,)}, source=tmp_path / "runs")
    with pytest.raises(InvalidInputError, match="has a length that is shown"):
        _runs(none)
    other = train_at_lengths(RegressionTask(np.eye(2)), [8], steps=1)
    other.save(tmp_path / "other")
    with pytest.raises(InvalidInputError, match="not on the published task"):
        _runs(Request("quick", SETTINGS, source=tmp_path / "other"))


def made_up(verdicts):
    """Errors as the figure holds them, of runs that ended in some way."""
    lengths, runs = [10, 30, 50, 100, 300, 1000], len(verdicts)
    error = np.full((2, 4, len(lengths)), 0.5)
    return xr.Dataset(
        {
            "error": (("path", "predictor", "length"), error),
            "error_of_zero": ("path", [1.1, 1.1]),
            "trained_error": (("run", "seed"), np.full((runs, 1), 0.6)),
            "standard_error": (("run", "seed"), np.full((runs, 1), 0.01)),
            "on_plateau": (("run", "seed"), [["plateau" in verdict] for verdict in verdicts]),
        },
        {
            "path": list(PATHS),
            "predictor": ["softmax", "linear", "opposite heads", "ridge"],
            "length": lengths,
            "attention": ("run", ["softmax", "linear", "softmax"][:runs]),
            "trained_length": ("run", [10.0, 10.0, 30.0][:runs]),
            "verdict": ("run", list(verdicts)),
        },
        {"trained_path": "as run", "steps": 300, "optimizer": "made up"},
    )


def test_a_settled_run_far_above_the_best_head_is_read_as_such():
    kept = {reading.text: reading for reading in FIGURE.readings(made_up(["settled"] * 2))}
    wrong = kept["linear: largest error of a settled run, less three of its standard errors, "
                 "over the best"]  # fmt: skip
    assert wrong.value == pytest.approx(0.57 / 0.5) and not wrong.agrees
    falling = FIGURE.readings(made_up(["settled", "still falling: unfinished"]))
    assert not any(reading.text.startswith("linear: largest") for reading in falling)


def test_runs_on_the_plateau_are_crosses():
    data = made_up(["on the plateau: unfinished", "settled", "still falling: unfinished"])
    figure = FIGURE.draw(data)
    words = {dots.get_label() for dots in figure.axes[0].collections}
    assert words == {
        "trained softmax, on plateau", "trained softmax, still falling", "trained linear, settled",
    }  # fmt: skip
    assert not figure.axes[1].collections

"""The runs that figures of the published experiment share, and what is read off them."""

import numpy as np
import pytest
import xarray as xr
from scipy.interpolate import CubicSpline

from attractor.errors import InvalidInputError
from attractor.papers import get_figure
from attractor.papers.figure import Request
from attractor.papers.large_prompt import official
from attractor.papers.large_prompt.figures.softmax_norms import _limit_share, _weights
from attractor.papers.large_prompt.figures.trained_products import _scores, _values
from attractor.prompt.finite_length import sum_of_squared_weights
from attractor.prompt.regression import (
    Blocks,
    InContextRuns,
    RegressionTask,
    finite_prompt_limit,
    train_at_lengths,
)

SETTINGS = {"seeds": 1, "steps": 3, "optimizer": "as published"}
TASK = RegressionTask.official(as_run=True)


def request(**changes):
    return Request("quick", SETTINGS, **changes)


def same(first, second):
    return first.to_xarray().equals(second.to_xarray())


@pytest.fixture(scope="module")
def alone():
    return official.official_runs(request(), (4, 8))


def test_runs_are_trained_once_for_all_figures_of_a_folder(alone, tmp_path, monkeypatch):
    first = official.official_runs(request(shared=tmp_path), (4,))
    trained = []

    def training(**arguments):
        trained.append(arguments["lengths"])
        return train_at_lengths(
            TASK, arguments["lengths"], steps=3, attentions=official.ATTENTIONS,
            seed=arguments["seed"],
        )  # fmt: skip

    monkeypatch.setattr(official, "official_experiment", training)
    both = official.official_runs(request(shared=tmp_path), (4, 8))
    assert trained == [[8]]
    assert same(both, alone)
    assert same(official.official_runs(request(shared=tmp_path), (4,)), first)
    assert trained == [[8]]
    assert both.runs[0].settings["seed"] == 327 and both.task.equals(TASK)


def test_a_killed_figure_goes_on_from_its_checkpoints_with_the_same_numbers(
    alone, tmp_path, monkeypatch
):
    def killed(self, folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(InContextRuns, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            official.official_runs(request(shared=tmp_path), (4, 8))
    (folder,) = tmp_path.glob("official-runs-*")
    assert {place.name for place in (folder / ".unfinished").iterdir()} == {
        "softmax-4", "softmax-8", "linear-4", "linear-8",
    }  # fmt: skip
    # Another figure finishes some of the runs, and leaves the checkpoints of the others.
    assert same(
        official.official_runs(request(shared=tmp_path), (8,)), InContextRuns(alone.runs[1::2])
    )
    assert {place.name for place in (folder / ".unfinished").iterdir()} == {"softmax-4", "linear-4"}
    assert same(official.official_runs(request(shared=tmp_path), (4, 8)), alone)
    assert {place.suffix for place in folder.iterdir()} == {".nc"}


def test_runs_of_ones_own_are_shown_as_they_are(alone, tmp_path):
    alone.save(tmp_path / "runs")
    given = request(source=tmp_path / "runs")
    assert same(official.official_runs(given, (8, 100)), InContextRuns(alone.runs[1::2]))
    assert set(given.hashes) == {"runs"}
    with pytest.raises(InvalidInputError, match="has a length that is shown"):
        official.official_runs(given, (100,))
    other = train_at_lengths(RegressionTask(np.eye(2)), [8], steps=1)
    other.save(tmp_path / "other")
    with pytest.raises(InvalidInputError, match="not on the published task"):
        official.official_runs(request(source=tmp_path / "other"), (8,))


def test_products_are_those_of_predictions(rng):
    head = Blocks(rng.normal(size=(3, 3)), np.zeros(3), np.zeros(3), np.array(-1.7))
    np.testing.assert_allclose(_scores(head)[:-1], -1.7 * head.key_query)
    np.testing.assert_allclose(_values(head), [0, 0, 0, 1])
    full = head._replace(label_row=rng.normal(size=3), value_inputs=rng.normal(size=3))
    rescaled = Blocks(
        full.key_query / 5, full.label_row / 5, 5 * full.value_inputs, 5 * full.value_label
    )
    np.testing.assert_allclose(_scores(rescaled), _scores(full))
    np.testing.assert_allclose(_values(rescaled), _values(full))


@pytest.mark.parametrize("labels", [0.0, 0.3])
def test_sums_of_squared_weights_have_the_exact_mean_given_the_scores(labels, rng):
    head = Blocks(rng.normal(size=(5, 5)) / 6, np.full(5, labels), np.zeros(5), np.array(1.0))
    found = _weights(TASK, head, 12, 5000, rng)
    knots = np.linspace(0, found.deviation.max(), 30)
    exact = CubicSpline(knots, sum_of_squared_weights(knots, 12))(found.deviation)
    off = found.squares - exact
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(len(off))
    wider = np.sqrt(found.deviation**2 + 0.5)  # a wrong deviation is seen
    wrong = found.squares - CubicSpline(knots, sum_of_squared_weights(knots, 12))(wider)
    assert abs(wrong.mean()) > 10 * wrong.std() / np.sqrt(len(off))
    assert (found.squares <= found.largest + 1e-12).all()
    assert (found.largest**2 <= found.squares + 1e-12).all()


def test_no_scores_make_equal_weights_and_one_token_takes_all(rng):
    head = Blocks(np.zeros((5, 5)), np.zeros(5), np.zeros(5), np.array(1.0))
    for length in (1, 7):
        found = _weights(TASK, head, length, 3, rng)
        np.testing.assert_allclose(found.squares, 1 / length)
        np.testing.assert_allclose(found.largest, 1 / length)
        np.testing.assert_array_equal(found.deviation, 0)
    huge = _weights(TASK, head._replace(key_query=1e9 * np.eye(5)), 7, 3, rng)
    np.testing.assert_allclose(huge.squares, 1)


def test_the_limiting_share_of_one_input_is_a_quantile_of_chi_squared():
    task = RegressionTask(np.array([[2.0]]))
    median = 0.454936423119572  # of chi-squared with one degree of freedom
    exact = np.exp(-median / finite_prompt_limit(task) ** 2)
    assert _limit_share(task) == pytest.approx(exact, rel=5e-3)


def made_up(verdicts):
    """Errors as the figure of the runs holds them, of runs that ended in some way."""
    steps, lengths = np.array([0, 10, 100, 300]), [10, 30, 50, 100, 300, 1000]
    runs = len(verdicts)
    error = np.full((2, 4, len(lengths)), 0.5)
    return xr.Dataset(
        {
            "error": (("path", "predictor", "length"), error),
            "error_of_zero": ("path", [1.1, 1.1]),
            "trained_error": (("run", "seed", "step"), np.full((runs, 1, 4), [1.1, 1.0, 0.8, 0.6])),
            "standard_error": (("run", "seed"), np.full((runs, 1), 0.01)),
            "distance": (("run", "seed"), np.full((runs, 1), 0.25)),
            "on_plateau": (("run", "seed"), [["plateau" in verdict] for verdict in verdicts]),
        },
        {
            "path": list(official.PATHS),
            "predictor": ["softmax", "linear", "opposite heads", "ridge"],
            "length": lengths,
            "step": steps,
            "attention": ("run", ["softmax", "linear", "softmax"][:runs]),
            "trained_length": ("run", [10.0, 10.0, 30.0][:runs]),
            "verdict": ("run", list(verdicts)),
        },
        {"trained_path": "as run", "steps": 300, "optimizer": "made up"},
    )


def test_the_table_has_a_line_for_each_run():
    data = made_up(["on the plateau: unfinished", "settled", "settled"])
    title, head, *lines = get_figure("large-prompt/official-runs").table(data).splitlines()
    assert title.startswith("Mean squared error")
    assert head.split()[:7] == ["attention", "L", "10", "10", "100", "300", "300"]
    assert len(lines) == 3
    assert lines[0].split()[:2] == ["softmax", "10"] and lines[0].endswith("plateau: unfinished")
    assert "0.6000" in lines[1] and "+20.0%" in lines[1] and "0.250" in lines[1]


def test_a_settled_run_far_above_the_best_head_is_read_as_such():
    figure = get_figure("large-prompt/official-runs")
    kept = {reading.text: reading for reading in figure.readings(made_up(["settled"] * 2))}
    wrong = kept["linear: largest error of a settled run, less three of its standard errors, "
                 "over the best"]  # fmt: skip
    assert wrong.value == pytest.approx(0.57 / 0.5) and not wrong.agrees
    data = made_up(["settled", "still falling: unfinished"])
    assert not any(
        text.startswith("linear: largest") for text, *_ in map(_row, figure.readings(data))
    )


def _row(reading):
    return reading.text, reading.value


def test_runs_on_the_plateau_are_crosses():
    data = made_up(["on the plateau: unfinished", "settled", "still falling: unfinished"])
    figure = get_figure("large-prompt/official-runs").draw(data)
    words = {dots.get_label() for dots in figure.axes[0].collections}
    assert words == {
        "trained softmax, on plateau", "trained softmax, still falling", "trained linear, settled",
    }  # fmt: skip
    assert not figure.axes[1].collections


def norms(exact, squares, verdict="settled"):
    """Norms of weights as their figure holds them: exact means, and sums around them."""
    spread = 0.01 * np.linspace(-1, 1, 50)
    sums = np.broadcast_to(np.array(squares)[:, None, None] + spread, (2, 2, 50))
    means = np.broadcast_to(np.array(exact)[:, None, None], sums.shape)
    axes = ("length", "head", "prompt")
    return xr.Dataset(
        {"squares": (axes, sums), "exact": (axes, means), "verdict": ("length", [verdict] * 2)},
        {"length": [10, 1000], "head": ["trained", "best"]},
        {"limit_share": 0.5},
    )


def test_heads_that_select_and_means_that_are_off_are_read_as_such():
    figure = get_figure("large-prompt/softmax-norms")
    averaging = figure.readings(norms([0.3, 0.002], [0.3, 0.002]))
    assert len(averaging) == 5 and all(reading.agrees for reading in averaging)
    power = np.log10(0.002 / 0.3) / 2
    assert averaging[1].value == pytest.approx(power)
    assert averaging.values["powers"].startswith(f"{power:.2f} of trained heads, {power:.2f} of")
    selecting = figure.readings(norms([0.3, 0.29], [0.3, 0.29]))
    assert [reading.agrees for reading in selecting] == [True, False, False, False, False]
    assert not figure.readings(norms([0.3, 0.002], [0.31, 0.002]))[0].agrees
    unfinished = figure.readings(norms([0.3, 0.29], [0.3, 0.29], "still falling: unfinished"))
    assert not any(reading.text.startswith("trained") for reading in unfinished)


def products(trained, verdicts=("settled", "settled")):
    """Products of heads of two lengths as their figure holds them, each a multiple of one."""
    matrices = np.zeros((2, 3, 3, 2))
    for run, sizes in enumerate(zip(trained, (0.2, 0.9), (1.0, 1.0), strict=True)):
        for head, size in enumerate(sizes):
            matrices[run, head, :2] = size * np.eye(2)
    heads = ["trained", "best", "limit"]
    sizes = np.linalg.norm(matrices, axis=(2, 3)) / np.sqrt(2)
    zeros = (("run", "head"), np.zeros((2, 3)))
    return xr.Dataset(
        {
            "scores": (("run", "head", "row", "column"), matrices),
            "size": (("run", "head"), sizes),
            "to_best": (("run", "head"), np.abs(sizes - sizes[:, 1:2]) / sizes[:, 1:2]),
            "to_limit": (("run", "head"), np.abs(sizes - 1)),
            "label_in_scores": zeros,
            "inputs_in_values": zeros,
            "verdict": ("run", list(verdicts)),
        },
        {
            "head": heads,
            "row": ["x1", "x2", "y"],
            "column": ["x1", "x2"],
            "attention": ("run", ["linear"] * 2),
            "length": ("run", [10, 1000]),
        },
    )


def test_products_that_do_not_follow_the_length_are_read_as_such():
    figure = get_figure("large-prompt/trained-products")
    assert all(reading.agrees for reading in figure.readings(products((0.25, 0.88))))
    wrong = [
        reading.text for reading in figure.readings(products((0.95, 0.5))) if not reading.agrees
    ]
    assert wrong == [
        "linear, 10 tokens: distance from the best head over that from the limit",
        "linear: distance from the limit over that of shorter prompts",
    ]
    unfinished = ["still falling: unfinished"] * 2
    assert len(figure.readings(products((0.95, 0.5), unfinished))) == 1

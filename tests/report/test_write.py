import dataclasses
import html
import json
import re

import numpy as np
import pytest
import xarray as xr

import attractor as at
from attractor.report import write_report
from attractor.report.write import first_trial


@pytest.fixture(scope="module")
def written(tmp_path_factory, feasible, solved, verdict):
    folder = tmp_path_factory.mktemp("out") / "report"
    summary = write_report(folder, prediction=solved(*feasible), verdict=verdict, source="<mine>")
    return folder, summary


@pytest.mark.long
def test_writes_the_page_its_figures_and_its_numbers(written):
    folder, _ = written
    figures = {
        f"{name}.{kind}"
        for name in ("direction", "training", "attention")
        for kind in ("png", "svg")
    }
    data = {"summary.json", "prediction.nc", "measures.nc", "trajectory.nc", "trials.csv"}
    assert {file.name for file in folder.iterdir()} == figures | data | {"report.html"}


def test_the_page_needs_no_network(written):
    page = (written[0] / "report.html").read_text()
    assert page.count('src="data:image/svg+xml;base64,') == 3
    assert not re.search(r"src=[\"'](?!data:)|url\(|@import|<script|https?:", page)
    linked = re.findall(r'href="([^"]*)"', page)
    assert len(linked) == 6 and all((written[0] / name).is_file() for name in linked)
    assert "&lt;mine&gt;" in page
    assert "<mine>" not in page


def test_the_page_says_what_was_found(written, verdict):
    page = html.unescape((written[0] / "report.html").read_text())
    assert "certified to a relative gap of" in page
    assert 'alt="Medians over trials. all trials: margin ratio rises from' in page
    assert re.search(r'alt="The largest weight of a row is .* it is the one predicted\."', page)
    assert f"{float(verdict.margin_ratio.median()):.2f}" in page
    assert "In 83.3 % of the sequences attention ended on the token predicted beforehand" in page


def test_the_numbers_can_be_read_again(written, verdict):
    folder, summary = written
    assert json.loads((folder / "summary.json").read_text()) == summary
    measures = xr.load_dataset(folder / "measures.nc", engine="h5netcdf")
    np.testing.assert_array_equal(measures.margin_ratio, verdict.data.margin_ratio)
    again = at.verify(at.Trajectory.load(folder / "trajectory.nc"))
    np.testing.assert_array_equal(again.margin_ratio, verdict.margin_ratio)
    assert len((folder / "trials.csv").read_text().splitlines()) == 1 + 4


def test_an_infeasible_prediction_names_the_constraints_that_conflict(
    tmp_path, contradictory, solved
):
    summary = write_report(tmp_path / "report", prediction=solved(*contradictory))
    assert summary["prediction"]["status"] == "infeasible"
    named = {
        (one["sequence"], one["selected"], one["token"])
        for one in summary["prediction"]["conflicts"]
    }
    assert named == {(1, 0, 1), (2, 1, 0)}
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Constraints that conflict" in page and "are shown" not in page
    assert '<tr><th scope="row">1</th><td>0</td><td>1</td><td>0.500</td></tr>' in page


def test_several_data_sets_are_named_by_their_numbers(tmp_path, contradictory, solved):
    one, head = contradictory
    # The second data set has the first one's keys, and labels that do not contradict.
    tokens = at.Tokens(
        np.stack([one.keys] * 2),
        np.stack([one.queries] * 2),
        [[1, 1, -1], [1, 1, 1]],
        instance_numbers=[5, 8],
    )
    summary = write_report(
        tmp_path / "report",
        prediction=solved(tokens, head),
        instance_numbers=tokens.instance_numbers,
    )
    assert summary["prediction"]["status"] == {"infeasible": 1, "optimal": 1}
    assert {one["instance"] for one in summary["prediction"]["conflicts"]} == {5}
    assert "exists in 1 of 2 data sets, and in 1 none does" in html.unescape(
        (tmp_path / "report" / "report.html").read_text()
    )


def test_a_run_without_intermediate_matrices_says_what_cannot_be_drawn(tmp_path, feasible):
    run = at.train(*feasible, at.normalized_gradient_descent(1.0), steps=20, weights="last")
    write_report(tmp_path / "report", verdict=at.verify(run))
    assert "cannot be drawn" in (tmp_path / "report" / "report.html").read_text()
    assert not list(tmp_path.glob("report/*.png"))


def test_leaves_other_peoples_folders_alone(tmp_path, contradictory, solved):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(at.InvalidInputError, match=r"^out:"):
        write_report(tmp_path, prediction=solved(*contradictory))
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_attended_to_is_drawn_with_the_tokens_predicted(verdict):
    first, last, predicted = first_trial(verdict)
    expected = verdict.data["predicted"].isel(instance=0).values.ravel()
    np.testing.assert_array_equal(predicted, expected)
    for weights in (first, last):
        np.testing.assert_allclose(weights.sum("token"), 1)
    assert (last.max("token") > first.max("token")).all()
    without = dataclasses.replace(verdict, data=verdict.data.drop_vars("predicted"))
    assert first_trial(without)[2] is None

"""Verdicts of runs whose hyperparameters had several values."""

import csv
import json

import numpy as np
import pytest
import xarray as xr
from sizes import USUAL, drawn

import attractor as at
from attractor import analysis, plots, report
from attractor.support.errors import FileFormatError, InvalidInputError


@pytest.fixture(scope="module")
def data():
    return drawn(USUAL)


@pytest.fixture(scope="module")
def run(data):
    optimizer = at.momentum([0.05, 0.2], decay=[0.5, 0.9, 0.95])
    return at.train(*data, optimizer, steps=40, seeds=3, weights="all")


@pytest.fixture(scope="module")
def verdict(run):
    return at.verify(run)


def test_every_variant_has_the_verdict_of_its_run(run, verdict):
    assert len(run.variants) == 6
    for variant in run.variants:
        alone, chosen = at.verify(run.sel(**variant)), verdict.sel(**variant)
        xr.testing.assert_allclose(chosen.data, alone.data, rtol=1e-12)
        assert chosen.trajectory.settings == alone.trajectory.settings


def test_a_given_solution_is_held_against_all(run, data):
    solution = at.solve(at.MarginProblem.from_selection(data[0], at.optimal_tokens(*data)))
    found = at.verify(run, solution)
    trial = ("learning_rate", "decay", "instance", "seed")
    assert found.data["margin_ratio"].dims == (*trial, "step")
    for variant in (run.variants[0], run.variants[-1]):
        alone = at.verify(run.sel(**variant), solution)
        xr.testing.assert_allclose(found.sel(**variant).data, alone.data, rtol=1e-12)


def test_a_norm_of_one_s_choice_is_that_of_all(run, data):
    verdict = at.verify(run, geometry="l_3", selection="reached at step")
    assert verdict.why.endswith("l_3, was chosen; the one that training descended is frobenius.")
    first = run.variants[0]
    one = at.verify(run.sel(**first), geometry="l_3", selection="reached at step")
    np.testing.assert_allclose(verdict.sel(**first).margin_ratio, one.margin_ratio, rtol=1e-12)


def test_the_table_shows_each_variant(run, verdict):
    text = str(verdict)
    for variant in run.variants:
        words = ", ".join(f"{value:g}" for value in variant.values())
        (line,) = (line for line in text.splitlines() if line.startswith(f"│   {words} "))
        median = float(verdict.sel(**variant).margin_ratio.median())
        assert f" {median:.5g} " in line
    assert "2 learning_rates x 3 decays x 2 instances x 3 seeds" in str(run)


def test_many_variants_are_counted(data):
    run = at.train(*data, at.momentum(np.linspace(0.1, 0.5, 20)), steps=3)
    assert "8 more: see to_csv" in str(at.verify(run))


def test_the_run_comes_back_from_its_file(run, tmp_path):
    run.save(tmp_path / "run.nc")
    again = at.Trajectory.load(tmp_path / "run.nc")
    assert again.data.identical(run.data)
    assert again.sel(decay=0.9).settings == run.sel(decay=0.9).settings
    assert again.W().shape == (2, 3, 2, 3, 5, 5)


def test_a_file_whose_values_are_no_numbers_is_refused(run, tmp_path):
    from dataclasses import replace

    wrong = replace(run, data=run.data.assign_coords(decay=[0.5, 0.5, 0.9]))
    wrong.save(tmp_path / "run.nc")
    with pytest.raises(FileFormatError, match="the numbers of decay are not different"):
        at.Trajectory.load(tmp_path / "run.nc")


@pytest.mark.long
def test_reports_and_csv_have_every_variant(run, verdict, tmp_path, blank_pictures):
    blank_pictures.add("direction")
    report.write_report(tmp_path / "report", verdict=verdict)
    drawn = (tmp_path / "report" / "direction.svg").read_text()
    assert "decay = 0.95" in drawn.replace("\N{NO-BREAK SPACE}", " ")
    with (tmp_path / "report" / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * 2 * 3
    assert {row["decay"] for row in rows} == {"0.5", "0.9", "0.95"}
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["verdict"]["trials"] == 36


def test_curves_of_variants_are_drawn_side_by_side(verdict):
    several = {words: one.data for words, one in verdict.by_hyperparameters.items()}
    assert len(plots.direction_figure(several).axes[0].lines) >= 6


def test_what_needs_one_value_says_which_there_are(run, verdict, data):
    solution = at.solve(at.MarginProblem.from_selection(data[0], at.optimal_tokens(*data)))
    for refused in (
        lambda: at.fit_rates(verdict),
        lambda: verdict.rate(),
        lambda: analysis.measured_offsets(run, solution),
    ):
        with pytest.raises(InvalidInputError, match=r"values of \w+\. Take .*\.sel\(\w+=0\.0?5\)"):
            refused()
    assert len(at.fit_rates(verdict.sel(learning_rate=0.2, decay=0.9)))


def test_a_value_that_was_not_trained_with_is_refused(run, verdict):
    with pytest.raises(
        InvalidInputError, match=r"decay: 0.8 was not trained with.* 0.5, 0.9, 0.95"
    ):
        run.sel(decay=0.8)
    with pytest.raises(InvalidInputError, match="'b1' is not known"):
        verdict.sel(b1=0.8)

"""Everything that takes a run or a verdict, along every axis that records may have."""

import inspect
import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from runs import flow, verdict
from sizes import USUAL, drawn

import attractor as at
from attractor import analysis, plots, report
from attractor.support.errors import InvalidInputError
from fuzzing.arguments.public import public_callables

CURVES = (
    plots.correlation, plots.correlation_shortfall, plots.loss, plots.margin_ratio,
    plots.margin_ratio_shortfall, plots.norm_growth, plots.selected_probability,
    plots.unselected_probability,
)  # fmt: skip
TRIED = {
    "attractor.analysis.verify",
    "attractor.analysis.rates.fit_rates",
    "attractor.analysis.measured_offsets",
    "attractor.plots.direction_figure",
    "attractor.plots.training_figure",
    "attractor.report.write_report",
    *(f"attractor.plots.{draw.__name__}" for draw in CURVES),
}
OF_OTHER_RUNS = {
    "attractor.corpora.mechanics.measure_limits",  # along steps and radii, in its own tests
    "attractor.corpora.linear.measure_linear",
    "attractor.corpora.two_stages.TwoStageTrajectory",  # which holds two
}


def test_whatever_takes_a_run_or_a_verdict_is_tried_here():
    taking = {
        name
        for name, function in public_callables().items()
        if any(
            word in str(parameter.annotation)
            for parameter in inspect.signature(function).parameters.values()
            for word in (" Trajectory", "'Trajectory", "Verdict")
            if parameter.name != "self"
        )
        or "Trajectory"
        in {str(p.annotation) for p in inspect.signature(function).parameters.values()}
    }
    assert taking <= TRIED | OF_OTHER_RUNS


@pytest.mark.long
def test_a_run_knows_its_axis_and_says_where_it_ended(any_run):
    assert any_run.axis in any_run.data.dims
    np.testing.assert_array_equal(any_run.steps, any_run.data[any_run.axis])
    text = str(any_run)
    assert f"last {any_run.axis}" in text
    assert f"at every recorded {any_run.axis.replace('_', ' ')}" in text
    assert f"{any_run.steps[-1]:g}" in text
    assert "<caption>Trajectory</caption>" in any_run._repr_html_()
    norm = any_run.plot().axes[1].lines[0].get_ydata()
    assert norm[-1] == pytest.approx(float(np.median(any_run.data["norm"][..., -1])))


def test_matrices_are_those_of_the_step_asked_for(any_run):
    steps = any_run.steps
    kept = any_run.data["W"].transpose("instance", "seed", any_run.axis, "row", "column")
    np.testing.assert_array_equal(any_run.W(steps[2]), kept[:, :, 2])
    np.testing.assert_array_equal(any_run.W(), kept[:, :, -1])
    np.testing.assert_array_equal(any_run.W(), any_run.W(steps[-1]))
    with pytest.raises(InvalidInputError, match=f"step: {any_run.axis} .*nearest one recorded"):
        any_run.W(steps[-1] + 0.5)


def test_a_run_comes_back_from_its_file(any_run, tmp_path):
    any_run.save(tmp_path / "run.nc")
    again = at.Trajectory.load(tmp_path / "run.nc")
    assert str(again) == str(any_run)
    assert again.data.identical(any_run.data)
    assert again.settings == any_run.settings


def test_a_verdict_speaks_of_the_axis(any_run, any_verdict):
    assert any_verdict.axis == any_run.axis
    assert any_run.axis in str(any_verdict)
    assert '<th scope="col" class="number">median</th>' in any_verdict._repr_html_()
    ratio = any_verdict.plot().axes[0].lines[-1].get_xdata()
    assert ratio[-1] == any_verdict.data[any_verdict.axis][-1]
    data = any_verdict.trajectory.data
    last = data.assign(W=data["W"].isel({any_verdict.axis: -1}))
    short = replace(any_verdict, trajectory=replace(any_verdict.trajectory, data=last))
    with pytest.raises(InvalidInputError, match="matrices of earlier records were not kept"):
        short.plot()
    found = any_verdict.summary()
    assert found["trials"] == any_run.data["status"].size
    assert found["steps" if any_run.axis == "step" else f"last_{any_run.axis}"] == any_run.steps[-1]
    json.dumps(found)


def test_rates_are_fitted_along_the_axis(any_run, any_verdict):
    rates = at.fit_rates(any_verdict, against=any_run.axis)
    assert rates["correlation", any_run.axis].abscissa
    assert len(at.fit_rates(any_verdict.data)) >= len(rates)
    assert str(any_verdict.rate()) == str(rates["correlation", any_run.axis])
    logarithmic = any_run.axis == "logarithmic_time"
    assert ("log t from" in str(rates)) == logarithmic


def test_a_rate_over_the_logarithm_of_time_is_that_over_time():
    """Records of one flow at the same times, labeled by either."""
    later = verdict(flow).data.isel(time=slice(1, None))
    with_logarithms = later.assign_coords(time=np.log(later["time"])).rename(
        time="logarithmic_time"
    )
    for quantity in ("norm", "loss"):
        against_time = at.fit_rates(later, against="time", quantities=[quantity])
        against_log = at.fit_rates(
            with_logarithms, against="logarithmic_time", quantities=[quantity]
        )
        one = against_time[quantity, "time"]
        other = against_log[quantity, "logarithmic_time"]
        assert one.law.name == other.law.name
        np.testing.assert_array_equal(
            one.data["window"].values.sum() > 1, other.data["window"].values.sum() > 1
        )
        if one.law.name == "power":  # of windows of the same records
            both = one.data["window"].values & other.data["window"].values
            np.testing.assert_allclose(
                one.data["abscissa"].values[..., both], other.data["abscissa"].values[..., both],
                rtol=1e-12,
            )  # fmt: skip


def test_offsets_are_measured_at_every_record(any_run):
    tokens, head = drawn(USUAL)
    chosen = at.optimal_tokens(tokens, head)
    solution = at.solve(at.MarginProblem.from_selection(tokens, chosen), at.Frobenius())
    offsets = analysis.measured_offsets(any_run, solution)
    assert offsets.shape[2] == len(any_run.steps)
    assert np.isfinite(offsets).any()


def test_curves_and_figures_are_drawn(any_run, any_verdict):
    labels = {draw.__name__: _label(draw, any_verdict) for draw in CURVES}
    assert set(labels.values()) == {plots.curves.AXIS_LABELS[any_run.axis]}
    for figure in (plots.direction_figure, plots.training_figure):
        assert figure({"run": any_verdict.data}).axes


@pytest.mark.usefixtures("blank_pictures")
def test_a_report_is_written(any_run, any_verdict, tmp_path):
    summary = report.write_report(tmp_path / "report", verdict=any_verdict)
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"at the last {any_run.axis}" in page
    assert json.loads((tmp_path / "report" / "summary.json").read_text())
    assert summary


def _label(draw, verdict):
    axes = Figure().subplots()
    draw(axes, verdict.data)
    return axes.get_xlabel()

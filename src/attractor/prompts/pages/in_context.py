"""The page on training in-context regression at several prompt lengths."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from attractor.prompts import plots
from attractor.prompts.regression.runs import InContextRuns
from attractor.report import seen
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.results.provenance import Provenance
from attractor.support.storage import save_netcdf

TRAINING = FigureFile(
    "training",
    "Risk, label weight, norm of the key-query block and balance against time, medians over seeds; "
    "wide and gray, gradient flow on prompts of infinite length.",
)
LENGTHS = FigureFile(
    "lengths",
    "Mean squared error where training ended against the length of prompts, beside the best head "
    "of linear attention{ridge}. Hollow: not settled.",
)
_RIDGE = " and ridge regression, which no predictor beats"
_RULES = (
    "Risk: half the mean squared error of the prediction, without the noise in the query's label; "
    "MSE: the mean squared error with it. The gap is the risk above the least risk of linear "
    "attention of the same length; for softmax attention, above zero.",
    "b is the weight of the label in the value, A the block that scores inputs by the query; "
    "gradient flow keeps the balance ||A||^2 + |c|^2 - |v|^2 - b^2 of linear attention and of "
    "softmax on infinite prompts, but not of softmax on finite ones.",
    "On the plateau: on infinite prompts the heads would still do hardly better than predicting "
    "zero. What such a run reached says nothing about where it goes. Still falling: the risk fell "
    "by more than two percent, and more than its standard error, over the last third.",
)


def write_in_context_report(
    directory: str | os.PathLike[str],
    runs: InContextRuns,
    *,
    flow: xr.Dataset | None,
    source: str,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, figures as PNG and SVG, ``summary.json`` and ``runs.nc``.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        runs: Training at several lengths.
        flow: Gradient flow on infinite prompts, drawn over it: ``risk``, ``value_label``,
            ``key_query_norm`` and ``balance`` along ``time``.
        source: What was trained, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    data, references = runs.to_xarray(), runs.references()
    summary = in_context_summary(runs)
    rows = [
        [_shown(value) for name, value in row.items() if name != "infinite_risk"]
        for row in summary["runs"]
    ]
    header = [name.replace("_", " ") for name in summary["runs"][0] if name != "infinite_risk"]
    title = "Training in-context regression"
    with report_folder(
        directory, title, source, summary, "in-context", provenance=provenance
    ) as report:
        save_netcdf(data, report.place / "runs.nc")
        report.findings += _findings(runs)
        report.sections.append(Section("Where each run ended", table=Table(header, rows)))
        figure = plots.lengths_figure(data, time_of_step=runs.runs[0].time_of_step, flow=flow)
        training = report.picture(TRAINING, figure, _training_seen(runs))
        report.sections.append(Section("As training goes on", figure=training))
        if references.sizes["length"] > 1:
            figure = plots.experiment_figure(data, references, runs.task.query_noise)
            # Without noise ridge regression has no error, and no place on a logarithmic axis.
            noisy = runs.task.query_noise > 0 or bool(references["ridge"].any())
            caption = LENGTHS.caption.format(ridge=_RIDGE if noisy else "")
            file = dataclasses.replace(LENGTHS, caption=caption)
            lengths = report.picture(file, figure, _ends_seen(summary["runs"]))
            report.sections.append(Section("Against the length of prompts", figure=lengths))
        report.sections.append(Section("How to read this", _RULES))
    return summary


def in_context_summary(runs: InContextRuns) -> dict[str, Any]:
    """Where runs ended, and what they are compared with, as plain values of JSON."""
    references = runs.references()
    return {
        "runs": runs.rows(),
        "references": {
            "length": references["length"].values.tolist(),
            **{str(name): array.values.tolist() for name, array in references.data_vars.items()},
        },
    }


def _findings(runs: InContextRuns) -> list[str]:
    found = []
    for run, row in zip(runs.runs, runs.rows(), strict=True):
        tokens = "infinite prompts" if math.isinf(run.length) else f"{run.length:.0f} tokens"
        found.append(
            f"{row['attention'].capitalize()} attention, {tokens}: risk {row['risk']:.4g}, "
            f"mean squared error {row['mean_squared_error']:.4f}; {row['verdict']}."
        )
    return found


def _training_seen(runs: InContextRuns) -> str:
    data = runs.to_xarray().median("seed").isel(head=0)
    courses = {}
    for place in range(data.sizes["run"]):
        run = data.isel(run=place)
        length = float(run["length"])
        name = "infinite prompts" if math.isinf(length) else f"{length:.0f} tokens"
        courses[f"{run['attention'].item()}, {name}"] = (
            f"risk {seen.course(run['risk'].values)}, label weight b "
            f"{seen.course(run['value_label'].values)}"
        )
    return f"Medians over seeds. {seen.listed(courses)}"


def _ends_seen(rows: Sequence[Mapping[str, Any]]) -> str:
    return "Where training ended, the mean squared error is " + seen.listed(
        {
            f"{row['attention']}, {row['length']} tokens": f"{row['mean_squared_error']:.4g}"
            for row in rows
        }
    )


def _shown(value: float | str) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)

"""Writes the report of a prediction, a training run and the verdict."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
import xarray as xr
from jaxtyping import Float

from attractor import plots
from attractor.analysis import Verdict
from attractor.margin import Solution
from attractor.report import seen
from attractor.report.constraints import conflict_section, conflicts
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.report.summary import infeasible_count, report_summary
from attractor.report.words import (
    GLOSSARY,
    MEASURES,
    near_one,
    prediction_sentences,
    training_sentences,
    verdict_sentences,
)
from attractor.results.provenance import Provenance
from attractor.support.checks import check_kinds, check_path
from attractor.support.precision import as_integers
from attractor.support.storage import save_netcdf
from attractor.tokens import Tokens

CURVES = FigureFile(
    "direction",
    "Normalized margin ratio (top) and correlation with the solution (bottom) against iterations; "
    "on the right, how far each is from 1, on logarithmic axes.",
)
TRAINING = FigureFile(
    "training",
    "Attention on the selected tokens, attention elsewhere (as a power of ten), the norm of the "
    "trained matrix and the loss, against iterations.",
)
ATTENTION = FigureFile(
    "attention",
    "Attention weights of the first trial before and after training, a row for each sequence; "
    "rings mark the predicted tokens.",
)


def write_report(
    directory: str | os.PathLike[str],
    *,
    prediction: Solution | None = None,
    verdict: Verdict | None = None,
    about: str = "the tokens with the highest scores",
    why: str = "",
    source: str = "",
    instance_numbers: np.ndarray | None = None,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, its figures as PNG and SVG, and the data behind them.

    The folder appears whole or not at all. Beside the page: ``summary.json``; for a prediction
    ``prediction.nc``; for a verdict ``trials.csv``, ``measures.nc`` and ``trajectory.nc``.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        prediction: Solution of the margin problem predicted beforehand.
        verdict: What training did.
        about: Which tokens the prediction selects, in words.
        why: Which problem the prediction solves and why, in words.
        source: What was analyzed, a line for the page.
        instance_numbers: Number of each data set of the prediction; default: 0, 1, ...
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    check_kinds(
        prediction=(prediction, Solution | None),
        verdict=(verdict, Verdict | None),
        provenance=(provenance, Provenance | None),
        about=(about, str),
        source=(source, str),
        why=(why, str),
    )
    directory = check_path("directory", directory)
    if instance_numbers is None:
        instance_numbers = np.arange(1 if prediction is None else np.size(prediction.norm))
    elif prediction is not None:
        count = int(np.size(prediction.norm))
        instance_numbers = as_integers("instance_numbers", instance_numbers, (count,))
    summary = report_summary(prediction, verdict, instance_numbers)
    title = "Where attention goes"
    command = "verify" if prediction is None else "check"
    if provenance is not None:
        command = provenance.name
    with report_folder(directory, title, source, summary, command, provenance=provenance) as report:
        if prediction is not None:
            report.findings += prediction_sentences(prediction, about)
            if infeasible_count(prediction):
                report.sections.append(conflict_section(conflicts(prediction, instance_numbers)))
            save_netcdf(prediction.to_xarray(), report.place / "prediction.nc")
        if why:
            report.findings.append(why)
        if verdict is not None:
            # Both may say which problem it is and why.
            report.findings += [said for said in verdict_sentences(verdict) if said != why]
            report.sections += _verdict_sections(verdict)
            report.sections += _pictures(report, verdict)
            write_verdict_data(report.place, verdict)
        report.sections.append(Section("What the words mean", table=GLOSSARY))
    return summary


def _pictures(report: ReportFolder, verdict: Verdict) -> list[Section]:
    if verdict.trajectory.weights_kept == "last":
        words = (
            "The matrices of the intermediate steps were not kept, to save memory, so the "
            "measures against iterations cannot be drawn."
        )
        return [Section("Training", [words])]
    runs = {words: one.data for words, one in verdict.by_hyperparameters.items()}
    curves = direction_picture(report, verdict.directions)
    training = training_picture(report, runs)
    trial = first_trial(verdict)
    attention = report.picture(ATTENTION, plots.attention_figure(*trial), _attention_seen(*trial))
    return [
        Section("Where the matrix points", figure=curves),
        Section("How training went", training_sentences(verdict), figure=training),
        Section("What is attended to", figure=attention),
    ]


def direction_picture(
    report: ReportFolder, runs: Mapping[str, xr.Dataset], suffix: str = ""
) -> FigureFile:
    """Draws how far runs are from the direction predicted."""
    measures = {"margin_ratio": "margin ratio", "correlation": "correlation"}
    file = dataclasses.replace(CURVES, name=f"{CURVES.name}{suffix}")
    return report.picture(file, plots.direction_figure(runs), seen.runs(runs, measures))


def training_picture(
    report: ReportFolder, runs: Mapping[str, xr.Dataset], suffix: str = ""
) -> FigureFile:
    """Draws attention, norm and loss of runs."""
    measures = {
        "selected_probability": "attention on the selected tokens",
        "norm": "norm",
        "loss": "loss",
    }
    file = dataclasses.replace(TRAINING, name=f"{TRAINING.name}{suffix}")
    return report.picture(file, plots.training_figure(runs), seen.runs(runs, measures))


def _attention_seen(first: xr.DataArray, last: xr.DataArray, predicted: xr.DataArray | None) -> str:
    before, after = (np.nanmax(weights.values, axis=-1) for weights in (first, last))
    said = (
        f"The largest weight of a row is {seen.spread(before)} before training, and "
        f"{seen.spread(after)} after it."
    )
    if predicted is None:
        return said
    top = np.nanargmax(last.values, axis=-1)
    return (
        f"{said} In {(top == predicted.values).sum()} of {top.size} rows it is the one predicted."
    )


def write_verdict_data(folder: Path, verdict: Verdict, suffix: str = "") -> None:
    """Writes the numbers of a verdict: a line per trial, every measure, and the run itself."""
    verdict.to_csv(folder / f"trials{suffix}.csv")
    save_netcdf(verdict.data, folder / f"measures{suffix}.nc")
    verdict.trajectory.save(folder / f"trajectory{suffix}.nc")


def _verdict_sections(verdict: Verdict) -> list[Section]:
    rows = []
    for name, words in MEASURES.items():
        if name not in verdict.data:
            continue
        values = verdict.data[name].isel({verdict.axis: -1}).values
        values = values[np.isfinite(values)]
        if len(values):
            numbers = (values.mean(), np.median(values), values.std(), values.min(), values.max())
            rows.append((words, *(_number(number) for number in numbers)))
    table = Table(
        (f"at the last {verdict.axis}", "mean", "median", "std", "smallest", "largest"),
        rows,
        caption="Over trials.",
    )
    error = "; ".join(verdict.errors) or None
    summary = verdict.summary()
    counts = [
        f"Feasible margin problems, for {summary['reference']}: {summary['feasible']} of "
        f"{summary['trials']} trials."
    ]
    if "locally_optimal" in summary:
        counts.append(
            f"Locally optimal selections: {summary['locally_optimal']} of {summary['trials']}."
        )
    return [Section("The verdict in numbers", [" ".join(counts)], table=table, warning=error)]


def _number(value: float) -> str:
    return near_one(value) if 0.5 < value < 1.5 else f"{value:.5g}"


def attention_weights(tokens: Tokens, W: Float[np.ndarray, "*attention_head d e"]) -> xr.DataArray:
    """Softmax weights ``softmax(X W z)``, a row for each query; NaN where masked.

    Args:
        tokens: One data set.
        W: The attention matrix.

    Returns:
        Dimensions ``sequence, token``; several queries of a sequence follow one another. Matrices
        of several attention heads have a leading dimension ``attention_head``.
    """
    weights = scipy.special.softmax(tokens.scores(W), axis=-1)
    heads = W.shape[:-2]
    rows = np.where(tokens.mask, weights, np.nan).reshape(*heads, -1, tokens.length)
    return xr.DataArray(rows, dims=("attention_head",) * len(heads) + ("sequence", "token"))


def first_trial(
    verdict: Verdict,
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray | None]:
    """Weights of the first trial at the first and the last record, and its predicted tokens."""
    trajectory = verdict.trajectory.sel(**verdict.trajectory.variants[0])
    tokens = trajectory.tokens if trajectory.tokens.instances is None else trajectory.tokens[0]
    first, last = (
        attention_weights(tokens, trajectory.W(step)[0, 0])
        for step in (trajectory.steps[0], trajectory.steps[-1])
    )
    predicted = None
    if "predicted" in verdict.data:
        numbers = verdict.data["predicted"].isel(instance=0).values
        predicted = xr.DataArray(numbers.reshape(last.shape[:-1]), dims=last.dims[:-1])
    return first, last, predicted

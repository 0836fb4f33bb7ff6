"""In-context regression at several prompt lengths."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import xarray as xr

from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Report, recorded, report_output
from attractor.cli.session import session
from attractor.prompts import plots
from attractor.prompts.regression import RegressionTask, kac_murdock_szego
from attractor.prompts.regression.flows.block_flows import limit_flow
from attractor.prompts.regression.runs import (
    OFFICIAL_LENGTHS,
    OFFICIAL_SEED,
    InContextRuns,
    checkpoint_folders,
    train_at_lengths,
)
from attractor.report import seen
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.results.paper import LARGE_PROMPT
from attractor.results.provenance import Provenance
from attractor.support.errors import InvalidInputError
from attractor.support.storage import OutputFolder, check_paths, save_netcdf
from attractor.support.storage.markers import CHECKPOINT, REPORT

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


STEPS = {"lengths": 4000, "official": 20_000}
"""Steps of each run, by experiment."""
SECONDS = 3
"""What a run of as many steps as the first of these takes, with 128 prompts a step."""
RATES = {"lengths": 1e-2, "official": 1e-3}
"""Learning rates, by experiment."""
DATA = ("theory", "intended", "as-run")


def in_context(
    dimension: Annotated[
        int, typer.Option(min=1, help="Inputs of a token; 5 in the published configuration.")
    ] = 5,
    correlation: Annotated[
        float, typer.Option(help="Covariance correlation^|i-j| of the inputs; 0: identity.")
    ] = 0.5,
    lengths: Annotated[
        str | None, typer.Option(help="Tokens of a prompt, such as 64,256,1024,inf.")
    ] = None,
    attention: Annotated[str | None, typer.Option(help="softmax, linear or both.")] = None,
    data_path: Annotated[
        str | None, typer.Option("--data", help="theory, intended or as-run.")
    ] = None,
    initialization: Annotated[
        str | None, typer.Option(help="balanced, or default: as PyTorch starts layers.")
    ] = None,
    parameterization: Annotated[
        str | None, typer.Option(help="blocks: A and b; all_blocks; factors: four linear layers.")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Of the balanced start; default: half the paper's bound.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of each run.")] = None,
    lr: Annotated[float | None, typer.Option("--lr", help="Learning rate.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Prompts of a step.")] = 128,
    draw: Annotated[
        str, typer.Option(help="auto, tokens, projections or moments: one law, not one speed.")
    ] = "auto",
    experiment: Annotated[
        str | None, typer.Option(help="official: the published experiment.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to go on from if interrupted; new or of this call.")
    ] = None,
    out: Report = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each length.")] = 1,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The first seed; default: 0, or the published 327.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Trains, compares and reports."""
    arguments = recorded(locals())
    with session("in-context", as_json=as_json, quiet=quiet, out=[out]) as current:
        report = report_output("in-context", out)
        check_paths([report, OutputFolder("checkpoint", checkpoint)])

        official = _choice("experiment", experiment, ("official",)) == "official"
        kind = "official" if official else "lengths"
        data = _choice("data", data_path, DATA) or ("as-run" if official else "theory")
        task = _task(data, dimension, correlation)
        both = _choice("attention", attention, ("softmax", "linear", "both"))
        both = both or ("both" if official else "softmax")
        attentions = ("softmax", "linear") if both == "both" else (both,)
        if draw not in ("auto", "tokens") and both == "both":
            raise InvalidInputError(
                "draw", f"{draw} is for one kind of attention", "Give auto or tokens with both"
            )
        default = ",".join(map(str, OFFICIAL_LENGTHS)) if official else "64,256,1024,inf"
        chosen = _lengths(default if lengths is None else lengths)
        if checkpoint is not None:
            cases = itertools.product(attentions, chosen)
            kept = checkpoint_folders(checkpoint, cases).values()
            each = (OutputFolder("checkpoint", folder, CHECKPOINT) for folder in kept)
            check_paths([report, *each])
        first = seed if seed is not None else OFFICIAL_SEED if official else 0
        settings: dict[str, Any] = {
            "parameterization": parameterization or ("factors" if official else "blocks"),
            "initialization": initialization or ("default" if official else "balanced"),
            "scale": scale,
            "learning_rate": RATES[kind] if lr is None else lr,
            "half": not official,
            "batch": batch,
            "draw": draw,
        }
        steps = STEPS[kind] if steps is None else steps
        count = len(attentions) * len(chosen) * seeds
        work = count * steps / STEPS["lengths"] * batch / 128
        current.takes(f"Training {count} runs", SECONDS * work, out)
        runs = train_at_lengths(
            task,
            chosen,
            attentions=attentions,
            steps=steps,
            seeds=seeds,
            seed=first,
            checkpoint=checkpoint,
            progress=current.progress,
            **settings,
        )
        source = (
            f"{task.dimension} inputs, data {data}; {settings['parameterization']} from the "
            f"{settings['initialization']} start, {runs.runs[0].steps[-1]:,} steps of "
            f"{batch} prompts, learning rate {settings['learning_rate']:g}, {seeds} "
            f"seed{'' if seeds == 1 else 's'}"
        )
        current.show(runs)
        current.say(
            "Settled: the risk fell no more over the last third; b and |A| may grow on, where the "
            "risk hardly depends on them."
        )
        if any(run.verdict != "settled" for run in runs.runs):
            longer = current.again(steps=4 * runs.runs[0].steps[-1])
            current.suggest(longer, "for what is not settled")
        if out is None:
            current.result(**in_context_summary(runs))
            current.unwritten()
            return
        summary = write_in_context_report(
            out,
            runs,
            flow=limit_flow(runs.runs[0]),
            source=source,
            provenance=_provenance(arguments, range(first, first + seeds), settings),
        )
        current.wrote("report", out / REPORT, **summary)


def _choice(argument: str, value: str | None, known: tuple[str, ...]) -> str | None:
    if value is not None and value not in known:
        raise InvalidInputError(
            argument, f"{value!r} is not known", f"Give one of {', '.join(known)}"
        )
    return value


def _task(data: str, dimension: int, correlation: float) -> Any:

    if data == "theory":
        return RegressionTask(kac_murdock_szego(dimension, correlation))
    if (dimension, correlation) != (5, 0.5):
        raise InvalidInputError(
            "data",
            f"the published configuration has 5 inputs of correlation 0.5, not {dimension} of "
            f"{correlation:g}",
            "Give --data theory, or leave out --dimension and --correlation",
        )
    return RegressionTask.official(as_run=data == "as-run")


def _lengths(text: str) -> list[float]:
    try:
        return [math.inf if word.strip() == "inf" else int(word) for word in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            "lengths", f"{text!r} is no list of lengths", "Give such as 64,256,1024,inf"
        ) from None


def _provenance(arguments: dict[str, Any], seeds: range, settings: dict[str, Any]) -> Any:

    return Provenance.record(
        "report",
        "in-context",
        arguments=arguments,
        seeds=seeds,
        settings=settings,
        bibtex=[LARGE_PROMPT.bibtex("in-context linear regression")],
    )


COMMAND = Command(
    in_context,
    "Train attention to regress in context at several prompt lengths, side by side: "
    "risk, blocks of the head, balance and the gap to the optimum, beside gradient "
    "flow on infinite prompts; with --out write a report with figures, a table and "
    "NetCDF.",
    {
        "attractor in-context --lengths 64,256,1024,inf --out in-context-report": 14,
    },
    (
        "Tokens are pairs (x, y) with y = w.x, the query is (x, 0). --data theory: weights of "
        "variance 1, no noise; intended and as-run: the published configuration of five inputs, "
        "weights of variance 1/5 and noise of variance 0.1, as it was meant, and as its code "
        "draws the data.",
        "--experiment official repeats the published experiment: softmax and linear attention at "
        "19 lengths, four linear layers from PyTorch's start. It says of each run whether it got "
        "off the plateau. With --checkpoint an interrupted command goes on where it was.",
        "Exit codes: 0 done, 2 bad input, 130 interrupted.",
    ),
)

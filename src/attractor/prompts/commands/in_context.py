"""In-context regression at several prompt lengths."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Report, recorded, report_output
from attractor.cli.session import session
from attractor.support.errors import InvalidInputError
from attractor.support.storage import OutputFolder, check_paths
from attractor.support.storage.markers import CHECKPOINT, REPORT

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

        from attractor.prompts.pages.in_context import in_context_summary, write_in_context_report
        from attractor.prompts.regression.flows.limit_flow import limit_flow
        from attractor.prompts.regression.runs import (
            OFFICIAL_LENGTHS,
            OFFICIAL_SEED,
            checkpoint_folders,
            train_at_lengths,
        )

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
    from attractor.prompts.regression import RegressionTask, kac_murdock_szego

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
    from attractor.results.paper import LARGE_PROMPT
    from attractor.results.provenance import Provenance

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

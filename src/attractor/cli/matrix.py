"""``attractor matrix``: every optimizer on the same problems, in every norm; or your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.application import COMMANDS
from attractor.cli.options import OPTIMIZER_HELP, Json, OptionalLearningRate, Quiet, Seed, recorded
from attractor.cli.session import session
from attractor.errors import InvalidInputError
from attractor.storage import OutputFolder, check_paths
from attractor.storage.markers import REPORT

SIZES = {"quick": (10, 1500), "paper": (20, 6000)}
"""Data sets and steps of each size."""
SHAPE = (6, 8, 10)
"""Sequences, tokens and dimension of the data sets."""

HELP = (
    f"{COMMANDS['matrix']}\n\n"
    "The problems are the random unit tokens of arXiv 2308.16898 with n = 6, T = 8, d = 10. Exit "
    "codes: 0 done, 2 bad input, 130 interrupted."
)


def matrix(
    optimizer: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Only this one; may be given several times. {OPTIMIZER_HELP}, or one of torch "
            "parameters that returns a torch optimizer.",
        ),
    ] = None,
    lr: OptionalLearningRate = None,
    parameterization: Annotated[str, typer.Option(help="What --optimizer trains: W or KQ.")] = "W",
    size: Annotated[
        str, typer.Option(help="quick: 10 data sets, 1,500 steps; paper: 20 and 6,000.")
    ] = "quick",
    data_sets: Annotated[
        int | None, typer.Option(min=1, help="Number of data sets, in place of the size's.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Number of steps, in place of the size's.")
    ] = None,
    matched: Annotated[
        bool,
        typer.Option("--matched", help="Start all of them where the optimal tokens are kept."),
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the report, new or of an earlier run.")
    ] = Path("attractor-matrix"),
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Makes the bias matrix."""
    arguments = recorded(locals())
    with session("matrix", as_json=as_json, quiet=quiet) as current:
        if size not in SIZES:
            raise InvalidInputError("size", f"{size!r} is not known", "Give quick or paper")
        check_paths([OutputFolder("out", out, REPORT, replaced=True)])

        from attractor.analysis.bias import bias_matrix, load_method, standard_methods
        from attractor.cli.provenance import report_provenance
        from attractor.datasets import unit_tokens
        from attractor.report.bias_matrix import write_bias_report

        count, length = data_sets or SIZES[size][0], steps or SIZES[size][1]
        if optimizer:
            methods = tuple(
                load_method(one, learning_rate=lr, parameterization=parameterization)
                for one in optimizer
            )
        elif lr is not None or parameterization != "W":
            raise InvalidInputError(
                "lr" if lr is not None else "parameterization",
                "the optimizers of the matrix have their own, fixed beforehand",
                "Give it with --optimizer",
            )
        else:
            methods = standard_methods(size, length)
        for method in methods:
            current.say(f"{method.name}: {method.settings or 'settings not known'}")
        tokens, head = unit_tokens(*SHAPE, seeds=range(seed, seed + count))
        found = bias_matrix(
            tokens,
            head,
            methods=methods,
            steps=length,
            seed=seed,
            matched=matched,
            progress=current.progress,
        )
        n, T, d = SHAPE
        source = f"{count} data sets of random unit tokens, n = {n}, T = {T}, d = {d}"
        title = "Which optimizer maximizes the margin in which norm"
        if optimizer and len(methods) == 1:
            title = f"Which norm's margin does {methods[0].name} maximize?"
        provenance = report_provenance(
            "matrix",
            arguments,
            seeds=range(seed, seed + count),
            settings={"data_sets": count, "steps": length},
        )
        summary = write_bias_report(out, found, title=title, source=source, provenance=provenance)
        current.say(found.table(), found.answers_table())
        current.say(*(f"* {method.name}: {found.answer(method.name)}" for method in methods))
        current.wrote("report", out / REPORT, **summary)

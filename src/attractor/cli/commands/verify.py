"""How close a saved run came to its margin solution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor import analysis, training
from attractor.cli.command import Command
from attractor.cli.commands.solve import NORMS
from attractor.cli.options import Json, Quiet, Report, UnusedSeed, report_output
from attractor.cli.provenance import report_provenance
from attractor.cli.session import ExitCode, session
from attractor.cli.verdicts import (
    goes_on,
    has_direction,
    longer_training,
    naming_norms,
    say_verdict,
)
from attractor.files.netcdf_kinds import RUN, refuse_other_kinds
from attractor.geometry.loading import load_geometry
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths
from attractor.support.storage.markers import REPORT


def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A saved run, or a report's folder.")],
    geometry: Annotated[
        str | None,
        typer.Option(
            "--geometry",
            "--norm",
            help=f"The norm to compare in: {NORMS}, or module:name of your own; default: the one "
            "that training descended.",
        ),
    ] = None,
    out: Report = None,
    seed: UnusedSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verifies a saved run."""
    with session("verify", as_json=as_json, quiet=quiet, out=[out]) as current:
        check_paths([report_output("verify", out)], [Input("RUN", run)])
        file = run / "trajectory.nc" if run.is_dir() else run
        if not file.is_file():
            raise InvalidInputError(
                "run", f"there is no run at {file}", "Give a file that `attractor train` wrote"
            )
        refuse_other_kinds("run", file, RUN)

        norm = None if geometry is None else load_geometry(geometry)
        trajectory = training.Trajectory.load(file)
        with naming_norms(current, geometry):
            verdict = analysis.verify(trajectory, geometry=norm)
        say_verdict(current, verdict)
        if goes_on(verdict):
            why = f"longer training, with the file that {file.name} was trained on as tokens.npz"
            current.suggest(longer_training(trajectory), why)
        current.result(verdict=verdict.summary())
        if not has_direction(verdict):
            current.exit_code = ExitCode.INFEASIBLE
        if out is not None:
            from attractor.report import write_report

            provenance = report_provenance(
                "verify",
                {"geometry": geometry},
                source=trajectory,
                seeds=trajectory.data["seed"].to_numpy(),
                settings={"optimizer": trajectory.optimizer_name, "training": trajectory.settings},
            )
            source = f"{run.name}: {trajectory.tokens!r}"
            write_report(out, verdict=verdict, source=source, provenance=provenance)
            current.wrote("report", out / REPORT)
        else:
            current.unwritten()


COMMAND = Command(
    verify,
    "Compare a saved run with the margin problem for the selection that each trial reached.",
    {
        "attractor verify run.nc --out verify-report": 4,
    },
    (
        "RUN is a file that `attractor train` wrote, or the folder of a report. Exit codes: 0 "
        "done, 2 bad input, 3 infeasible (no trial has a direction to compare with: there is no "
        "solution, or W is at rest at a finite minimum of the loss, or beside one), 130 "
        "interrupted.",
    ),
)

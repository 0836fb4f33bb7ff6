"""Two results side by side, with differences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor import maps
from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Report, UnusedSeed, report_output
from attractor.cli.session import session
from attractor.support.checks import naming
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths
from attractor.support.storage.markers import REPORT


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A report's folder, or a run.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another of its kind.")],
    out: Report = None,
    seed: UnusedSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compares two results."""
    with session("compare", as_json=as_json, quiet=quiet, out=[out]) as current:
        paths = {"FIRST": first, "SECOND": second}
        check_paths([report_output("compare", out)], [Input(*one) for one in paths.items()])
        for name, path in paths.items():
            if not path.exists():
                raise InvalidInputError(name, f"there is no {path}", "Give a report or a run")

        from attractor.maps.comparison import write_comparison

        sides = []
        for name, path in paths.items():
            with naming(path=name, geometry=name):
                sides.append(maps.labeled(path))
        apart = first.resolve().name != second.resolve().name
        names = (first.resolve().name, second.resolve().name) if apart else ("first", "second")
        found = maps.paired(*sides, names=names)
        current.show(found)
        current.result(**found.summary())
        if out is not None:
            write_comparison(out, found)
            current.wrote("report", out / REPORT)
        else:
            current.unwritten()


COMMAND = Command(
    compare,
    "Put two results side by side, aligned by their labels: numbers that differ, with"
    " intervals and paired by trial; words and settings that do; what one of them "
    "alone has.",
    {
        "attractor compare report other-report": 3,
    },
    (
        "FIRST and SECOND are folders of reports of one command, stores of sweeps, runs of "
        "`attractor train`, or files of labeled arrays. They are aligned by their labels. Trials "
        "on the same data are paired by data set, or by seed, and differences have 95 % "
        "intervals. A run is verified in the norm that it descended; for another, give reports of"
        " `attractor verify --norm`. Exit codes: 0 done, whether or not anything differs; 2 bad "
        "input; 130 interrupted.",
    ),
)

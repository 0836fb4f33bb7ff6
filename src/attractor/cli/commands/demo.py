"""A report on handwritten digits: where attention goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attractor.analysis import verify
from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Seed, report_output
from attractor.cli.provenance import report_provenance
from attractor.cli.session import Session, session
from attractor.datasets import digit_patches
from attractor.datasets.digits_page import SizeResult, write_digits_report
from attractor.geometry import Frobenius
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import optimal_tokens
from attractor.results import plain_table
from attractor.support.storage import check_paths
from attractor.support.storage.markers import REPORT
from attractor.training import normalized_gradient_descent, train

if TYPE_CHECKING:
    from attractor.datasets.digits_page import SizeResult

SIZES = (6, 12, 24)
DATA_SETS = 40
STEPS = 3000
LEARNING_RATE = 10.0
DIGITS = (3, 8)


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the report, new or of an earlier run.")
    ] = Path("attractor-demo"),
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predicts, trains and verifies data sets of three sizes, and reports."""
    with session("demo", as_json=as_json, quiet=quiet) as current:
        check_paths([report_output("demo", out)])

        results = [_run(n, seed, current) for n in SIZES]
        provenance = report_provenance("demo", {"seed": seed}, seeds=[seed])
        summary, numbers = write_digits_report(out, results, provenance)
        shown = plain_table(caption=numbers.caption, caption_justify="left")
        for name in numbers.header:
            shown.add_column(name, justify="right", vertical="bottom")
        for row in numbers.rows:
            shown.add_row(*map(str, row))  # which holds no links
        current.say(shown, *summary["findings"])
        current.wrote("report", out / REPORT, **summary)


def _run(n: int, seed: int, current: Session) -> SizeResult:
    """Predicts, trains and verifies data sets of one size."""
    drawn = digit_patches(n, DATA_SETS, digits=DIGITS, seed=seed)
    selection = optimal_tokens(drawn.tokens, drawn.head)
    problem = MarginProblem.from_selection(drawn.tokens, selection, ties="equal")
    optimizer, progress = normalized_gradient_descent(LEARNING_RATE), current.progress
    run = train(drawn.tokens, drawn.head, optimizer, steps=STEPS, seed=seed, progress=progress)
    return SizeResult(drawn, solve(problem, Frobenius()), verify(run))


COMMAND = Command(
    demo,
    "Run the whole path on handwritten digits, and write a report with pictures.",
    {
        "attractor demo": 7,
    },
    (
        "Data sets of 6, 12 and 24 images of the digits 3 and 8, 40 of each size; every image is a "
        "sequence of 16 patches. Which patch does attention end on, and was it the predicted one?",
    ),
)

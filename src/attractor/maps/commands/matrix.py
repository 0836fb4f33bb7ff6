"""Which norm's margin does an optimizer maximize?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from attractor.cli.command import Command
from attractor.cli.options import OPTIMIZER_HELP, Json, Quiet, Report, Seed, recorded, report_output
from attractor.cli.provenance import code_of, report_provenance
from attractor.cli.session import Session, session
from attractor.datasets import unit_tokens
from attractor.maps import plots
from attractor.maps.bias import (
    NORMS,
    BiasMatrix,
    Cell,
    MedianInterval,
    load_geometry,
    load_method,
    standard_methods,
)
from attractor.maps.bias._bias_matrix import Experiment
from attractor.maps.bias.answer import NOT_BEGUN, NOT_SETTLED
from attractor.maps.bias.best_setting import MEAN_STEPS, MULTIPLES
from attractor.maps.bias.result import FinishedRuns
from attractor.report import seen
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Folded, Section, Table, Words
from attractor.results.provenance import Provenance
from attractor.support.errors import InvalidInputError
from attractor.support.storage import check_paths, kept_beside
from attractor.support.storage.markers import REPORT

if TYPE_CHECKING:
    from attractor.maps.bias import BiasMatrix, Method


_HEAT_MAP = FigureFile(
    "matrix",
    "Median margin ratio of every optimizer in every norm, its interval and step size, the best of "
    "several; hatched where it is not settled. The norm of each optimizer is outlined where one is "
    "known.",
)
_CURVES = FigureFile(
    "curves",
    "Margin ratio in every norm against iterations, median over data sets.",
)
_BEST = "Each optimizer in the norm in which its median ratio is largest, with 95 % intervals"
_MOST_ANSWERS = 6
"""Answers that are listed one by one; of more, optimizers are grouped by them."""
_RULES = (
    "Margin ratio: the smallest margin of the trained matrix divided by its norm, relative to the "
    "best possible for the tokens that the run attends to at its end. It is at most 1 in any norm.",
    "Intervals of medians are order statistics of the data sets and hold for any distribution. A "
    "norm is named only if its median ratio is 0.97 or more and goes to one: what is missing falls "
    "like one over the norm of W, to 0.005 or to a fifth of it. Besides, its paired lead over "
    "every other norm is above zero with a joint confidence of 95 % and not about to be lost, and "
    "the ratio is no higher in a norm of its family whose exponent is beside its own.",
    "Where the ratio has come to stand short of one, the answer is that it is none of these norms, "
    "and which is the closest; otherwise, that it is not settled.",
    "Runs that terminated before their end, because true gradients fell below what floating "
    "point holds or below a constant of the optimizer, are left out; if more than a quarter did, "
    "nothing is settled.",
)


_OVER_SETTINGS = (
    "Step sizes are constant, or fall like a power of the step, with the same mean over the run. "
    "All settings have intervals that hold at once; the interval of a cell is that of the largest "
    "of their medians.",
    "A cell is settled where the optimizer maximizes this margin at the best setting; or where at "
    "every setting that may be the best one the ratio has come to stand and attention is "
    "saturated, and the best step is not the first or the last that was tried.",
    "An optimizer is said to maximize a margin if at some setting it meets the rules below, with a "
    "confidence that is joint over the settings, and at no other setting another norm does.",
)


def write_bias_report(
    directory: str | os.PathLike[str],
    matrix: BiasMatrix,
    *,
    title: str,
    source: str,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, figures as PNG and SVG, and the matrix as NetCDF, CSV and JSON.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        matrix: What ``attractor.maps.bias_matrix`` returned.
        title: Title of the page.
        source: What was trained, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary = matrix.summary()
    several, tuned = len(matrix.methods) > 1, matrix.tuned
    with report_folder(
        directory, title, source, summary, "matrix", provenance=provenance
    ) as report:
        matrix.save(report.place / "matrix.nc")
        matrix.save(report.place / "matrix.csv")
        heat_map = report.picture(_HEAT_MAP, plots.bias_matrix_figure(matrix), _map_seen(matrix))
        curves = report.picture(_CURVES, plots.ratio_curves_figure(matrix), _curves_seen(matrix))
        report.findings += _findings(matrix)
        report.sections += [
            Section(
                "Every optimizer in every norm" if several else "Margin ratio in every norm",
                table=_optimizers(matrix) if several else _norms(matrix),
                figure=heat_map if several or tuned else None,
            ),
            *([_settings(matrix)] if tuned else []),
            Section(
                f"As training goes on{', at the best setting' if tuned else ''}", figure=curves
            ),
            _how_it_was_run(summary),
            Section("How to read this", (*(_OVER_SETTINGS if tuned else ()), *_RULES)),
        ]
    return summary


def _findings(matrix: BiasMatrix) -> list[Words | Folded]:
    """The answer of each optimizer; of many, who has which answer, and each folded away."""
    answers = {method: matrix.answer(method) for method in matrix.methods}
    each = [f"{method}: {found}." for method, found in answers.items()]
    if len(each) <= _MOST_ANSWERS:
        return [*each]
    groups: dict[str, list[str]] = {}
    for method, found in answers.items():
        verdict = f"Maximizes the {found.norm} margin" if found.norm else found.verdict.capitalize()
        groups.setdefault(verdict, []).append(method)
    lines = [f"{verdict}: {', '.join(methods)}." for verdict, methods in groups.items()]
    return [*lines, Folded("Each of them, with its numbers", each)]


def _ratio_text(found: MedianInterval | Cell) -> str:
    """A median ratio with its interval, which no line break parts."""
    space = "\N{NO-BREAK SPACE}"
    return f"{found.median:.4f}{space}[{found.low:.4f},{space}{found.high:.4f}]"


def _optimizers(matrix: BiasMatrix) -> Table:
    """What each optimizer does in its best norm."""
    rows = []
    for method in matrix.methods:
        best, found = matrix.best(method), matrix.answer(method)
        enough = matrix.enough(best.row)
        rows.append(
            (
                method,
                matrix.own_norm(method) or "not known",
                best.norm,
                _ratio_text(best),
                best.setting or "-",
                "-" if enough is None else str(enough),
                str(matrix.highest(best.row)[best.norm]),
                found.outcome if found.norm else found.verdict,
            )
        )
    header = (
        "optimizer", "its own norm", "best norm", "ratio there", "step size", "own ratio >= 0.97",
        "best in", "answer",
    )  # fmt: skip
    joint = ", joint over the settings" if matrix.tuned else ""
    return Table(header, rows, caption=f"{_BEST}{joint}.")


def _norms(matrix: BiasMatrix) -> Table:
    """The ratios of a single optimizer in every norm, the highest first."""
    (method,) = matrix.methods
    cells = [matrix.cell(method, norm) for norm in matrix.compared(method)]
    halfway = matrix.data["margin_ratio_halfway"].median("instance")
    rows = [
        (
            cell.norm,
            f"{cell.median:.4f}",
            f"[{cell.low:.4f}, {cell.high:.4f}]",
            cell.setting or "-",
            f"{float(halfway.sel(optimizer=cell.row, norm=cell.norm)):.4f}",
            str(matrix.highest(cell.row)[cell.norm]),
        )
        for cell in sorted(cells, key=lambda one: -one.median)
    ]
    header = (
        "norm", "median ratio", "95 % interval", "step size", "halfway", "highest in data sets"
    )  # fmt: skip
    return Table(header, rows)


def _settings(matrix: BiasMatrix) -> Section:
    """The ratio of each optimizer in one norm, its own or the best, at every setting."""
    rows = []
    for method in matrix.methods:
        norm = matrix.own_norm(method) or matrix.best(method).norm
        for row, answer in matrix.answers(method).items():
            found = matrix.ratio(row, norm)
            rows.append(
                (
                    method,
                    norm,
                    matrix.setting(row) or "-",
                    f"{found.median:.4f}",
                    f"[{found.low:.4f}, {found.high:.4f}]",
                    answer.outcome if answer.norm else answer.verdict,
                )
            )
    header = ("optimizer", "norm", "step size", "median ratio", "95 % interval", "answer there")
    caption = "In the own norm of each, or in the best where none is known; intervals one by one."
    return Section("At every setting", table=Table(header, rows, caption=caption))


def _map_seen(matrix: BiasMatrix) -> str:
    """Where each row of the heat map is largest."""
    places = {}
    for method in matrix.methods:
        best, own = matrix.best(method), matrix.own_norm(method)
        outlined = "outlined" if best.norm == own else f"outlined: {own}" if own else "not outlined"
        step = f" at {best.setting}" if best.setting else ""
        hatched = "" if best.settled else ", hatched"
        places[method] = f"{best.median:.3f} in {best.norm}{step} ({outlined}{hatched})"
    return f"The largest ratio of each optimizer. {seen.listed(places)}"


def _curves_seen(matrix: BiasMatrix) -> str:
    """How the ratio goes in every norm; of several optimizers, in that with the highest."""
    courses = {}
    several = len(matrix.methods) > 1
    for method in matrix.methods:
        best = matrix.best(method)
        run = matrix.data.sel(optimizer=best.row)
        known = np.isfinite(run["step"].values)
        for norm in [best.norm] if several else matrix.compared(method):
            values = run["margin_ratio_curve"].sel(norm=norm).transpose("record", "instance").values
            name = f"{best.row} in {norm}" if several else norm
            courses[name] = f"margin ratio {seen.course(np.nanmedian(values[known], axis=1))}"
    return f"Medians over data sets. {seen.listed(courses)}"


def _how_it_was_run(summary: dict[str, Any]) -> Section:
    """Step sizes, how gradients were read, and how runs ended."""
    rows = [
        (
            row["optimizer"],
            row["parameterization"],
            row["settings"],
            row["reads"],
            f"{row['steps']:,}",
            ", ".join(f"{count} {status}" for status, count in row["status"].items()),
            "-" if row["final_norm"] is None else f"{row['final_norm']:.5g}",
        )
        for row in summary.get("settings", summary["optimizers"])
    ]
    header = (
        "optimizer", "trained", "settings", "reads", "steps", "how runs ended", "norm of W",
    )  # fmt: skip
    start = summary["start"]
    sets, same = summary["data_sets"], summary["same_selection"]
    agree = f" All of them ended on the same tokens in {same} of {sets} data sets."
    words = (
        f"Initial weights: {start}, seed {summary['seed']}; {summary['loss']} loss."
        f"{agree if len(rows) > 1 else ''} Largest certified gap of the margin problems: "
        f"{summary['largest_gap']:.1e}."
    )
    return Section("How it was run", [words], table=Table(header, rows, words=True))


SIZES = {"quick": (12, 1500), "paper": (20, 6000)}
"""Data sets and steps of each size."""
LONGER = 16
"""Times the steps of its size that an optimizer at --lr may take until its answer settles."""
SHAPE = (6, 8, 10)
"""Sequences, tokens and dimension of the data sets."""


def matrix(
    optimizer: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Only this one; may be given several times. {OPTIMIZER_HELP} or of a learning "
            "rate alone, such as optax:adam, or one of torch parameters that returns a torch "
            "optimizer.",
        ),
    ] = None,
    lr: Annotated[
        list[float] | None,
        typer.Option(
            help="Learning rate of --optimizer, in place of all that are tried; given several "
            "times, each is a row."
        ),
    ] = None,
    norm: Annotated[
        list[str] | None,
        typer.Option(
            help="A norm to compare besides, by name or as module:name, a geometry of yours; may "
            "be given several times."
        ),
    ] = None,
    parameterization: Annotated[str, typer.Option(help="What --optimizer trains: W or KQ.")] = "W",
    size: Annotated[
        str, typer.Option(help="quick: 12 data sets, 1,500 steps; paper: 20 and 6,000.")
    ] = "quick",
    data_sets: Annotated[
        int | None, typer.Option(min=1, help="Number of data sets, in place of the size's.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Number of steps, no more and no fewer.")
    ] = None,
    matched: Annotated[
        bool,
        typer.Option("--matched", help="Start all of them where the optimal tokens are kept."),
    ] = False,
    out: Report = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Makes the bias matrix."""
    arguments = recorded(locals())
    if isinstance(lr, float):  # as files of earlier versions have it
        lr = [lr]
    with session("matrix", as_json=as_json, quiet=quiet, out=[out]) as current:
        if size not in SIZES:
            raise InvalidInputError("size", f"{size!r} is not known", "Give quick or paper")
        check_paths([report_output("matrix", out)])

        count, length = data_sets or SIZES[size][0], steps or SIZES[size][1]
        norms = [*NORMS, *map(load_geometry, norm or ())]
        if optimizer:
            methods = _methods(optimizer, lr or [None], parameterization)
        elif lr or parameterization != "W":
            raise InvalidInputError(
                "lr" if lr else "parameterization",
                "the optimizers of the matrix have their own, around which steps are tried",
                "Give it with --optimizer",
            )
        else:
            methods = standard_methods(size, length)
        for method in methods:
            step = "" if method.step_size is None else f"step = {method.step_size:g}"
            current.say(f"{method.name}: {method.settings or step or 'settings not known'}")
        tokens, head = unit_tokens(*SHAPE, seeds=range(seed, seed + count))
        n, T, d = SHAPE
        source = f"{count} data sets of random unit tokens, n = {n}, T = {T}, d = {d}"
        title = "Which optimizer maximizes the margin in which norm"
        if optimizer and len(methods) == 1:
            title = f"Which norm's margin does {methods[0].name} maximize?"
        tuned = not (lr or all(method.step_size is None for method in methods))
        done = FinishedRuns()

        def mean_steps(method: Method) -> Sequence[float]:
            if optimizer:
                return MEAN_STEPS[size]
            assert method.step_size is not None
            return [multiple * method.step_size for multiple in MULTIPLES[size]]

        def so_far() -> None:
            found = done.matrix()
            if found is not None:
                current.say(f"Unfinished, {len(found.data['optimizer'])} rows so far:")
                current.show(found)
                current.result(so_far=found.summary())

        asked = {**arguments, "code": code_of([*(optimizer or ()), *(norm or ())])}
        with kept_beside(out, asked) as done.folder, current.going_on(done.folder, so_far):
            if before := len(list(done.folder.glob("*.nc"))) if done.folder else 0:
                current.say(f"Going on: {before} runs are done.")
            experiment = Experiment.checked(
                tokens,
                head,
                methods,
                norms,
                length,
                mean_steps=mean_steps if tuned else None,
                seed=seed,
                matched=matched,
                progress=current.progress,
                finished=done,
            )
            goes_on = not (tuned or steps)
            found = experiment.settled(LONGER * length if goes_on else None, say=current.say)
            current.show(found)
            _next(current, found, size)
            if out is None:
                current.result(**found.summary())
                current.unwritten()
                return
            provenance = report_provenance(
                "matrix",
                arguments,
                seeds=range(seed, seed + count),
                settings={"data_sets": count, "steps": length},
            )
            summary = write_bias_report(
                out, found, title=title, source=source, provenance=provenance
            )
        current.wrote("report", out / REPORT, **summary)


def _next(current: Session, found: BiasMatrix, size: str) -> None:
    """Suggests the commands that may settle what is not settled, each once."""
    commands: dict[str, None] = {}
    for name in found.methods:
        answer = found.answer(name)
        if answer.outcome not in (NOT_SETTLED, NOT_BEGUN):
            continue
        run = found.data.sel(optimizer=found.best(name).row)
        step, length = run["step_size"].item(), run["steps"].item()
        if answer.enough_data_sets:
            options = {"data_sets": answer.enough_data_sets}
        elif found.tuned:
            options = {"size": "paper"} if size != "paper" else {"steps": 4 * length}
        elif answer.larger_steps and step > 0:
            options = {"lr": f"{10 * step:g}"}
        elif answer.more_steps or answer.larger_steps:
            options = {"steps": 4 * length}
        elif answer.smaller_steps and step > 0:
            options = {"lr": f"{step / 10:g}"}
        else:
            continue
        commands[current.again(**options)] = None
    for command in commands:
        current.suggest(command, "for what is not settled")


def _methods(
    optimizers: Sequence[str], rates: Sequence[float | None], parameterization: str
) -> tuple[Method, ...]:
    """A row for each optimizer at each learning rate; names say which, where there are several."""
    found = []
    for one in optimizers:
        for rate in rates:
            method = load_method(one, learning_rate=rate, parameterization=parameterization)
            if len(rates) > 1:
                method = replace(method, name=f"{one}, step {rate:g}")
            found.append(method)
    return tuple(found)


COMMAND = Command(
    matrix,
    "Train every optimizer on the same random problems and show the normalized margin"
    " ratio in every norm; or say which norm's margin an optimizer of yours "
    "maximizes.",
    {
        "attractor matrix": 6,
        "attractor matrix --optimizer optax:adam --lr 0.01 --lr 0.1": 6,
        "attractor matrix --optimizer torch.optim:SGD": 25,
        "attractor matrix --optimizer mine:signs --norm mine:RowNorm": 4,
    },
    (
        "The problems are the random unit tokens of arXiv 2308.16898 with n = 6, T = 8, d = 10.",
        "Each optimizer is tried with several step sizes, constant and falling like t^-0.5, and a "
        "cell says what the best of them reaches: 4 of each around its own with quick, 6 with "
        "paper; of --optimizer from 0.003 to 3, and from 0.001 to 10. With --lr it runs at that "
        "step size alone, and steps are doubled while they may bring another answer, up to "
        f"{LONGER} times, unless --steps says how many. mine:signs is the function signs of a file "
        "mine.py.",
        "Exit codes: 0 done, 2 bad input, 130 interrupted.",
    ),
)

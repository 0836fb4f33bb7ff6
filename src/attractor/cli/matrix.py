"""``attractor matrix``: every optimizer on the same problems, in every norm; or your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from attractor.cli.options import OPTIMIZER_HELP, Json, Quiet, Report, Seed, recorded, report_output
from attractor.cli.session import Session, session
from attractor.cli.texts import ending
from attractor.errors import InvalidInputError
from attractor.storage import check_paths
from attractor.storage.markers import REPORT

if TYPE_CHECKING:
    from attractor.analysis.bias import BiasMatrix, Method

SIZES = {"quick": (10, 1500), "paper": (20, 6000)}
"""Data sets and steps of each size."""
LONGER = 16
"""Times the steps of its size that an optimizer of one's own may take until its answer settles."""
SHAPE = (6, 8, 10)
"""Sequences, tokens and dimension of the data sets."""

EPILOG = ending(
    "matrix",
    "The problems are the random unit tokens of arXiv 2308.16898 with n = 6, T = 8, d = 10.",
    "With --optimizer, steps are doubled while they may bring another answer, up to "
    f"{LONGER} times, unless --steps says how many; and larger step sizes are tried where training "
    "has not begun, unless --lr says which. mine:signs is the function signs of a file mine.py.",
    "Exit codes: 0 done, 2 bad input, 130 interrupted.",
)


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
            help="Learning rate of --optimizer; given several times, each is a row. Default: that "
            "of its name or factory, or 0.1."
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
        str, typer.Option(help="quick: 10 data sets, 1,500 steps; paper: 20 and 6,000.")
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

        from attractor.analysis.bias import (
            NORMS,
            bias_matrix,
            load_geometry,
            standard_methods,
        )
        from attractor.analysis.bias.settling import settled_matrix
        from attractor.cli.provenance import report_provenance
        from attractor.datasets import unit_tokens
        from attractor.report.bias_matrix import write_bias_report

        count, length = data_sets or SIZES[size][0], steps or SIZES[size][1]
        norms = [*NORMS, *map(load_geometry, norm or ())]
        if optimizer:
            methods = _methods(optimizer, lr or [None], parameterization)
        elif lr or parameterization != "W":
            raise InvalidInputError(
                "lr" if lr else "parameterization",
                "the optimizers of the matrix have their own, fixed beforehand",
                "Give it with --optimizer",
            )
        else:
            methods = standard_methods(size, length)
        for method in methods:
            step = "" if method.step_size is None else f"step = {method.step_size:g}"
            current.say(f"{method.name}: {method.settings or step or 'settings not known'}")
        tokens, head = unit_tokens(*SHAPE, seeds=range(seed, seed + count))
        options = {"norms": norms, "seed": seed, "matched": matched, "progress": current.progress}
        if optimizer:
            found = settled_matrix(
                tokens,
                head,
                methods=methods,
                steps=length,
                most_steps=length if steps else LONGER * length,
                larger_steps=not lr,
                say=current.say,
                **options,
            )
        else:
            found = bias_matrix(tokens, head, methods=methods, steps=length, **options)
        n, T, d = SHAPE
        source = f"{count} data sets of random unit tokens, n = {n}, T = {T}, d = {d}"
        title = "Which optimizer maximizes the margin in which norm"
        if optimizer and len(methods) == 1:
            title = f"Which norm's margin does {methods[0].name} maximize?"
        current.show(found)
        _next(current, found, size, own=bool(optimizer))
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
        summary = write_bias_report(out, found, title=title, source=source, provenance=provenance)
        current.wrote("report", out / REPORT, **summary)


def _next(current: Session, found: BiasMatrix, size: str, *, own: bool) -> None:
    """Suggests the commands that may settle what is not settled, each once.

    Of a method whose step size was raised, the largest step speaks.
    """
    from attractor.analysis.bias.answer import NOT_BEGUN, NOT_SETTLED

    commands: dict[str, None] = {}
    followed = set(found.data["raised_from"].values.tolist())
    for name in found.methods:
        answer = found.answer(name)
        if answer.outcome not in (NOT_SETTLED, NOT_BEGUN) or name in followed:
            continue
        row = found.data.sel(optimizer=name)
        step, length, raised = (row[one].item() for one in ("step_size", "steps", "raised_from"))
        if not own:
            options = {"size": "paper"} if size != "paper" else {"steps": 4 * length}
        elif answer.enough_data_sets:
            options = {"data_sets": answer.enough_data_sets}
        elif answer.larger_steps and step > 0:
            options = {"lr": f"{10 * step:g}"}
        elif answer.more_steps or answer.larger_steps:
            options = {"steps": 4 * length} | ({"lr": f"{step:g}"} if raised else {})
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
    from dataclasses import replace

    from attractor.analysis.bias import load_method

    found = []
    for one in optimizers:
        for rate in rates:
            method = load_method(one, learning_rate=rate, parameterization=parameterization)
            if len(rates) > 1:
                method = replace(method, name=f"{one}, step {rate:g}")
            found.append(method)
    return tuple(found)

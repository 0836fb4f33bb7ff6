"""Which norm's margin does an optimizer maximize?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from attractor.cli.command import Command
from attractor.cli.options import OPTIMIZER_HELP, Json, Quiet, Report, Seed, recorded, report_output
from attractor.cli.session import Session, session
from attractor.support.errors import InvalidInputError
from attractor.support.storage import check_paths, kept_beside
from attractor.support.storage.markers import REPORT

if TYPE_CHECKING:
    from attractor.maps.bias import BiasMatrix, Method

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

        from attractor.cli.provenance import code_of, report_provenance
        from attractor.datasets import unit_tokens
        from attractor.maps.bias import NORMS, load_geometry, standard_methods
        from attractor.maps.bias._bias_matrix import Experiment
        from attractor.maps.bias.finished_runs import FinishedRuns
        from attractor.maps.bias.page import write_bias_report
        from attractor.maps.bias.tuning import MEAN_STEPS, MULTIPLES

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
    from attractor.maps.bias.answer import NOT_BEGUN, NOT_SETTLED

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
    from dataclasses import replace

    from attractor.maps.bias import load_method

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

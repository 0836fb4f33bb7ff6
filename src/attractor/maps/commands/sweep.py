"""An experiment at every point of a grid, with maps."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Seed, UnusedSeed, recorded
from attractor.cli.session import ExitCode, session
from attractor.maps import sweeps
from attractor.maps.sweeps.averages import MEASURE
from attractor.results.provenance import embed_all
from attractor.support.checks import near_names
from attractor.support.errors import InvalidInputError
from attractor.support.storage import (
    Input,
    OutputFolder,
    atomic_directory,
    check_paths,
    existing_file,
    save_netcdf,
    write_file,
)

if TYPE_CHECKING:
    import xarray as xr

    from attractor.maps.sweeps import SweepStatus

MARKER = "sweep.nc"
"""The file by which a folder of drawings is known."""
STORE_MARKER = "zarr.json"
_NO_PLAN = "Write one: attractor example sweep plan.toml"
_SHARE = re.compile(r"(\d{1,9})/(\d{1,9})")
_LISTED = 20
"""Failures in the JSON object."""


class PlanOrCommand(TyperGroup):
    """A group in which anything but a command is a plan, to be run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts ``run`` before a plan."""
        word = args[0] if args else "--help"
        if word in self.commands or word in ctx.help_option_names:
            return super().parse_args(ctx, args)
        near = near_names(word, self.commands)
        if near and not word.startswith("-") and not Path(word).exists():
            raise typer.BadParameter(
                f"There is neither a plan nor a command {word!r}. Did you mean {near[0]}?", ctx
            )
        return super().parse_args(ctx, ["run", *args])


app = typer.Typer(
    cls=PlanOrCommand,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

StoreOf = Annotated[
    Path, typer.Argument(metavar="STORE", help="The folder that a sweep was written to.")
]
OwnExperiment = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="An experiment of yours, which is imported and run; in a module that is installed, or "
        "in the current folder.",
    ),
]


@app.command()
def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan, .toml.")],
    store: Annotated[
        Path, typer.Option("--store", help="Folder for the results, new or of the same sweep.")
    ],
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|FILE", help="The scheduler of a Dask cluster: address or its file."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes to start here; default: this one alone.")
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Compute part I of N, counted from 0, as one task of an array job, without a "
            "scheduler.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads in every process; default: as many as fit.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Compute chunks again that failed before.")
    ] = False,
    experiment: OwnExperiment = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: UnusedSeed = 0,
) -> None:
    """Run a plan; the same command goes on where it ended.

    Results are the same bytes however the work is divided. Exit codes: 0 all is done, or all of
    this share; 2 bad input; 4 some chunks failed; 5 the scheduler or all workers are gone, and the
    same command goes on; 130 interrupted.
    """
    with session("sweep", as_json=as_json, quiet=quiet) as current:
        given = {"cluster": cluster, "workers": workers, "share": share}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) > 1:
            raise InvalidInputError(chosen[0], f"it stands beside {chosen[1]}", "Give one of them")
        part = None if share is None else _share(share)
        scheduler = Path(cluster) if cluster and "://" not in cluster else None
        inputs = [Input("PLAN", plan), Input("cluster", scheduler)]
        check_paths([OutputFolder("store", store, STORE_MARKER)], inputs)
        existing_file(plan, _NO_PLAN)

        loaded = sweeps.load_plan(plan, experiment)
        grid = loaded.grid
        current.say(
            f"{loaded.experiment.name}: {grid.points:,} points, {grid.trials:,} trials",
            "Ctrl-C ends it; the same command goes on.",
        )
        try:
            found = sweeps.sweep(
                grid,
                loaded.experiment,
                store,
                workers or cluster,
                share=part,
                retry_failed=retry_failed,
                threads=threads,
                progress=not quiet,
            )
        except KeyboardInterrupt:
            current.say(f"What is done is in {store}: the same command goes on from there.")
            raise
        current.show(found)
        current.result(computed=found.computed, **_numbers(found.status))
        if found.status.failed:
            current.exit_code = ExitCode.SOME_FAILED
            current.suggest(current.again(retry_failed=True), "to compute again what failed")
        measure = next(iter(loaded.experiment.measures))
        data = sweeps.open_sweep(store)
        axes = [axis for axis in data[measure].dims if axis not in ("instance", "seed")]
        words = ["attractor", "sweep", "draw", str(store)]
        for to, axis in zip("xy", axes, strict=False):
            words += [f"--{to}", str(axis)]
        for axis in axes[2:]:  # of which one value is drawn
            if data.sizes[axis] > 1:
                words += ["--at", f"{axis}={data[axis].values[-1]}"]
        current.suggest(shlex.join([*words, "--of", measure]))


@app.command()
def status(
    store: StoreOf, as_json: Json = False, quiet: Quiet = False, seed: UnusedSeed = 0
) -> None:
    """Say what is done, what failed and what is left."""
    with session("sweep status", as_json=as_json, quiet=quiet) as current:
        check_paths([], [Input("STORE", store)])

        found = sweeps.sweep_status(store)
        current.show(found)
        current.result(**_numbers(found))


@app.command()
def check(
    store: StoreOf,
    again: Annotated[
        int, typer.Option(min=0, help="Random chunks to compute anew, to compare every bit.")
    ] = 0,
    discard: Annotated[
        bool, typer.Option("--discard", help="Mark damaged chunks as not done.")
    ] = False,
    experiment: OwnExperiment = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the checksum of every chunk, and compute some anew.

    Exit codes: 0 all is right; 2 bad input; 4 some chunks are damaged or came out differently;
    130 interrupted.
    """
    with session("sweep check", as_json=as_json, quiet=quiet) as current:
        check_paths([], [Input("STORE", store)])

        own = None if experiment is None else _own(store, experiment)
        found = sweeps.check_sweep(store, again, seed, own, discard=discard)
        current.show(found)
        current.result(
            read=found.read,
            damaged=[list(place) for place in found.damaged],
            again=found.again,
            differing=[list(place) for place in found.differing],
            elsewhere=[list(place) for place in found.elsewhere],
            passed=found.passed,
        )
        if not found.passed:
            current.exit_code = ExitCode.SOME_FAILED


@app.command()
def draw(
    store: StoreOf,
    x: Annotated[str, typer.Option("--x", metavar="AXIS", help="The axis to the right.")],
    of: Annotated[
        str,
        typer.Option(
            "--of",
            metavar="MEASURE",
            help="What is averaged; several, with commas between, are an axis called measure.",
        ),
    ],
    y: Annotated[
        str | None, typer.Option("--y", metavar="AXIS", help="The axis upward, of a heat map.")
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(metavar="AXIS", help="Without --y: an axis with a line for each value."),
    ] = None,
    panels: Annotated[
        str | None, typer.Option(metavar="AXIS", help="An axis with a panel for each value.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=VALUE",
            help="The value of an axis that is not drawn; may be given several times.",
        ),
    ] = None,
    along: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS",
            help="Draw where along this axis the average passes a level for good, as lines.",
        ),
    ] = None,
    side: Annotated[
        str | None,
        typer.Option(
            metavar="SIDE",
            help="below or above: with --along, the side of the level to end on, for averages that "
            "rise and fall.",
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Contours of a heat map, with commas between; with --along the level, or 0.5.",
        ),
    ] = None,
    transition: Annotated[
        str | None,
        typer.Option(
            metavar="SCALE",
            help="Of lines of a probability: say and mark where each passes one half, and how wide "
            "its transition is, on a linear or a log scale.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for pictures and data, new or of an earlier run.")
    ] = Path("attractor-sweep"),
    as_json: Json = False,
    quiet: Quiet = False,
    seed: UnusedSeed = 0,
) -> None:
    """Draw averages over trials: a heat map, or lines with bands.

    Writes PNG, SVG, and the averages as NetCDF and JSON. Trials that are missing are counted and
    marked in the picture.
    """
    arguments = recorded({name: value for name, value in locals().items() if name != "store"})
    with session("sweep draw", as_json=as_json, quiet=quiet) as current:
        check_paths([OutputFolder("out", out, MARKER, replaced=True)], [Input("STORE", store)])
        if y is not None and lines is not None:
            raise InvalidInputError("lines", "a heat map with --y has none", "Give --y or --lines")
        if transition is not None and (y is not None or along is not None):
            what = "a heat map has contours" if along is None else "--along gives places already"
            raise InvalidInputError("transition", what, "Give --x and --lines alone")
        contours = None if levels is None else _levels(levels)
        if along is not None:
            _check_along(y, contours)
        elif side is not None:
            raise InvalidInputError("side", "there is no --along", "Give --along AXIS with it")
        names = [name.strip() for name in of.split(",")]
        drawn = [axis for axis in (x, y, lines, panels) if axis is not None]
        points = _points(at or [])

        from attractor import maps, plots
        from attractor.cli.provenance import sweep_provenance

        done = sweeps.sweep_status(store)
        left = done.left - len(done.damaged)  # which are refused where they are drawn
        if left or done.failed:
            current.complain(
                "warning",
                f"{left:,} of {done.chunks:,} chunks are not done and {len(done.failed):,} "
                "failed: their trials are missing",
            )
        data = sweeps.open_sweep(store)
        several = MEASURE in drawn or len(names) > 1
        axes = [axis for axis in drawn if not (several and axis == MEASURE)]
        how: Any = {"at": points, "confidence": confidence}
        if along is None:
            averages = sweeps.average_trials(data, names if several else names[0], axes, **how)
        else:
            level = (contours or [0.5])[0]
            averages = sweeps.crossings(data, of, along, axes, level=level, side=side, **how)
        summary = _averages(averages)
        halves = None if transition is None else sweeps.transition(averages, x, scale=transition)
        if halves is not None:
            summary["transitions"] = _table(halves, [*halves.data_vars])
            current.say_lines(_halves(summary["transitions"], halves.dims))
        provenance = sweep_provenance(data, names, arguments)
        with atomic_directory(out, MARKER) as folder, plots.style():
            if y is not None:
                figure = maps.plots.phase_map_figure(averages, x, y, panels=panels, levels=contours)
            else:
                figure = maps.plots.phase_lines_figure(
                    averages, x, lines=lines, panels=panels, transitions=halves
                )
            plots.save_figure(figure, folder, "map" if y is not None else "lines")
            save_netcdf(averages, folder / MARKER)
            write_file(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
            embed_all(folder, provenance)
        current.wrote("folder", out, **{key: summary[key] for key in ("of", "measured", "trials")})


def _numbers(found: SweepStatus) -> dict[str, Any]:
    """How far a sweep is, for the JSON object."""
    return {
        "store": str(found.store),
        "trials": found.trials,
        "chunks": found.chunks,
        "done": found.done,
        "failed": len(found.failed),
        "left": found.left,
        "damaged": len(found.damaged),
        "failures": [
            {"place": list(one.place), "times": one.times, "error": one.error}
            for one in found.failed[:_LISTED]
        ],
    }


def _own(store: Path, name: str) -> Any:
    """An experiment of the user's own, with the settings that the store has of it."""
    return sweeps.from_python(name, **json.loads(sweeps.open_sweep(store).attrs["settings"]))


def _share(text: str) -> tuple[int, int]:
    found = _SHARE.fullmatch(text)
    if found is None:
        raise InvalidInputError("share", f"it is {text!r}", "Give I/N, such as 0/64 for the first")
    part, parts = int(found[1]), int(found[2])
    if not part < parts:
        raise InvalidInputError("share", f"{text} is none", f"Count from 0: 0/{parts}, and so on")
    return part, parts


def _levels(text: str) -> list[float]:
    try:
        return [float(one) for one in text.split(",") if one.strip()]
    except ValueError:
        raise InvalidInputError("levels", f"it is {text!r}", "Give numbers, as 0.1,0.5") from None


def _check_along(y: str | None, levels: list[float] | None) -> None:
    if y is not None:
        raise InvalidInputError("along", "a heat map shows it itself", "Give --y or --along")
    if levels is not None and len(levels) != 1:
        raise InvalidInputError("levels", f"there are {len(levels)}", "Give one with --along")


def _points(written: list[str]) -> dict[str, str]:
    points = {}
    for one in written:
        name, equals, value = one.partition("=")
        if not (equals and name and value):
            raise InvalidInputError("at", f"it is {one!r}", "Give AXIS=VALUE, such as T=8")
        if name in points:
            raise InvalidInputError("at", f"it gives {name} twice", "Give one value of each axis")
        points[name] = value
    return points


def _averages(averages: xr.Dataset) -> dict[str, Any]:
    """Every average with its interval and counts, in plain numbers."""
    attrs = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in averages.attrs.items()}
    return {
        **attrs,
        "measured": int(averages["measured"].sum()),
        "trials": int(averages["trials"].sum()),
        "points": _table(averages, ["mean", "low", "high", "measured", "trials"]),
    }


def _plain(value: Any) -> Any:
    """A number as JSON has it: none for what is missing, and infinity as a text."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def _table(data: xr.Dataset, names: list[Any]) -> list[dict[str, Any]]:
    """Variables at every point, in plain numbers."""
    if not data.dims:
        return [{name: _plain(data[name].item()) for name in names}]
    table = data[names].to_dataframe().reset_index()
    return [
        {name: _plain(value) for name, value in row.items()} for row in table.to_dict("records")
    ]


def _halves(rows: list[dict[str, Any]], axes: Iterable[Any]) -> Iterator[str]:
    """A line of text for each transition."""

    def number(value: float | str | None) -> str:
        return f"{value:.5g}" if isinstance(value, float) else "unbounded"

    for row in rows:
        at = ", ".join(f"{axis} = {row[axis]}" for axis in axes)
        if row["half"] is None:
            yield f"{at}: no transition"
            continue
        parts = [
            f"{words} {number(row[name])} [{number(row[name + '_low'])}, "
            f"{number(row[name + '_high'])}]"
            for name, words in (("half", "half-way at"), ("width", "width"))
        ]
        yield f"{at}: {', '.join(parts)}".removeprefix(": ")


COMMAND = Command(
    app,
    "Run an experiment at every point of a grid, a million trials, here or on a "
    "cluster; say how far it is, check it and draw maps of it.",
    {
        "attractor sweep plan.toml --store plan.zarr": 7,
        "attractor sweep status plan.zarr": 1,
    },
    (
        "`attractor sweep PLAN --store STORE` runs a plan (`sweep run` is the same), as often as "
        "it takes: what is done stays, and the same command goes on. `attractor example sweep "
        "plan.toml` writes a plan to start from.",
    ),
)

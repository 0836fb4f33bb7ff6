"""Which tokens each start ends on, as a map."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from attractor.cli.command import Command
from attractor.cli.options import (
    Json,
    LossName,
    OptimizerName,
    OptionalLearningRate,
    Quiet,
    Report,
    Seed,
    TokenFile,
    recorded,
    report_output,
)
from attractor.cli.session import session
from attractor.cli.texts import about_tokens
from attractor.files.token_file import LoadedTokens
from attractor.maps import plots
from attractor.maps.basins import BasinMap, BasinShares
from attractor.maps.basins.tables import percent
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.report.seen import listed
from attractor.results.provenance import Provenance
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths, existing_file
from attractor.support.storage.markers import BASINS, REPORT

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import Float


SHARES = FigureFile(
    "shares", "The share of random starts that settle on each selection, with its interval."
)
MAP = FigureFile(
    "map",
    "The selection that each start of a plane settles on. Boundaries are drawn between the centers "
    "of cells, from which training starts: they are known to a cell.",
)
_RULES = (
    "A start has settled when one token has 99 % of the attention of every query and those that "
    "would lower the loss further pull less than 1 % of what the weakest support token holds. "
    "Others are followed on, and are counted as not settled where that takes too long.",
    "Globally optimal: in every sequence the token of highest score. Locally optimal: the tokens "
    "nearest to being selected score lower than the selected ones, so that theory allows training "
    "to end there.",
)


def basins_summary(shares: BasinShares, drawn: BasinMap | None) -> dict[str, Any]:
    """Where starts end, as plain values of JSON.

    Args:
        shares: Where random starts end.
        drawn: The map of a plane, or None.
    """
    return {**shares.summary(), "map": None if drawn is None else drawn.summary()}


def write_basins_report(
    directory: str | os.PathLike[str],
    shares: BasinShares,
    drawn: BasinMap | None,
    *,
    source: str,
    provenance: Provenance | None = None,
) -> None:
    """Writes ``report.html``, pictures as PNG and SVG, and the numbers as JSON and NetCDF.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        shares: Where random starts end.
        drawn: The map of a plane, or None.
        source: What was trained, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary = basins_summary(shares, drawn)
    studies = [shares.data] if drawn is None else [shares.data, drawn.data]
    colors = plots.selection_colors(*studies)
    title = "Where starts end"
    with report_folder(
        directory, title, source, summary, "basins", provenance=provenance, marker=BASINS
    ) as report:
        shares.save(report.place / BASINS)
        rows = [_row(one) for one in summary["outcomes"]]
        report.findings += _findings(summary)
        picture = plots.basin_shares_figure(shares.data, colors=colors)
        seen = listed({row[0]: f"{row[3]} ({row[4]})" for row in rows})
        header = (
            "selection",
            "optimal",
            "starts",
            "share",
            f"{100 * summary['confidence']:.0f} % interval",
        )
        report.sections.append(
            Section(
                "Random starts",
                table=Table(header, rows),
                figure=report.picture(SHARES, picture, seen),
            )
        )
        if drawn is not None:
            drawn.save(report.place / "map.nc")
            picture = plots.basin_map_figure(drawn.data, colors=colors)
            parts = {_name(one): percent(one["part"]) for one in summary["map"]["selections"]}
            seen = f"The part of the plane that each selection takes. {listed(parts)}"
            report.sections.append(
                Section("A plane of starts", figure=report.picture(MAP, picture, seen))
            )
        report.sections.append(Section("How to read this", _RULES))


def _row(outcome: dict[str, Any]) -> tuple[str, ...]:
    optimal = [word for word in ("globally", "locally") if outcome.get(f"{word}_optimal", False)]
    return (
        _name(outcome),
        optimal[0] if optimal else "-",
        f"{outcome['count']:,}",
        percent(outcome["share"]),
        f"{100 * outcome['low']:.1f} to {percent(outcome['high'])}",
    )


def _name(outcome: dict[str, Any]) -> str:
    """The tokens of a selection, one for each query."""
    if outcome["tokens"] is None:
        return "not settled"
    tokens = [str(token) for row in outcome["tokens"] for token in row]
    return f"token{'s' if len(tokens) > 1 else ''} {', '.join(tokens)}"


def _findings(summary: dict[str, Any]) -> list[str]:
    """How often training ends on the best tokens, where else most often, and what is not known."""
    settled = [one for one in summary["outcomes"] if one["tokens"] is not None and one["count"]]
    best = [one for one in settled if one.get("globally_optimal", False)]
    others = [one for one in settled if not one.get("globally_optimal", False)]
    starts = summary["starts"]
    found = [
        f"{sum(one['count'] for one in best):,} of {starts:,} random starts end on the globally "
        f"optimal tokens, the others on {len(others):,} other selections."
    ]
    if others:
        most = max(others, key=lambda one: one["count"])
        found.append(f"Of these most starts, {most['count']:,}, end on {_name(most)}.")
    if left := sum(one["count"] for one in summary["outcomes"] if one["tokens"] is None):
        found.append(f"{left:,} starts had not settled when they were given up.")
    return found


STEPS = 1000
"""Steps of every start where neither the file nor the command line says it."""


def basins(
    file: TokenFile,
    out: Report = None,
    optimizer: OptimizerName = None,
    lr: OptionalLearningRate = None,
    parameterization: Annotated[
        str | None,
        typer.Option(
            help="What is trained: W, its factors KQ or a prompt p; default: what the file says, "
            "or W."
        ),
    ] = None,
    loss: LossName = "logistic",
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Steps of every start; default: those of the file, or 1000. Starts that have not "
            "settled are followed up to 16 times as long.",
        ),
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Number of random starts.")] = 1000,
    scale: Annotated[
        float | None,
        typer.Option(
            help="Draw their entries from a normal distribution of this standard deviation; "
            "default: uniform on [-1/sqrt(d), 1/sqrt(d)]."
        ),
    ] = None,
    with_map: Annotated[
        bool,
        typer.Option(
            "--map",
            help="Also train from the cells of a plane: that of a prompt in R^2, else the plane "
            "of the two margin solutions that most starts reach.",
        ),
    ] = False,
    extent: Annotated[
        float, typer.Option(help="Half the width of the plane, which is centered at zero.")
    ] = 3.0,
    resolution: Annotated[
        int, typer.Option(min=1, help="Cells along each side of the plane; a start in each.")
    ] = 100,
    data_set: Annotated[
        int | None,
        typer.Option(min=0, help="Which of several data sets in the file, counted from 0."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Counts where random starts end."""
    arguments = recorded(locals())
    with session("basins", as_json=as_json, quiet=quiet, out=[out]) as current:
        check_paths([report_output("basins", out, BASINS)], [Input("FILE", file)])
        existing_file(file, LoadedTokens.missing)
        if not 0 < extent < np.inf:
            raise InvalidInputError("extent", f"it is {extent:g}", "Give a positive number")

        from attractor.cli.inputs import need_head, one_data_set, read_tokens
        from attractor.cli.plans import plan
        from attractor.cli.provenance import report_provenance
        from attractor.maps.basins import basin_map, basin_shares

        loaded = one_data_set(read_tokens(file, loss, parameterization), file, data_set)
        how = plan(loaded, optimizer=optimizer, lr=lr)
        length = steps or loaded.steps or STEPS
        problem = (loaded.tokens, need_head(loaded, file), how.optimizer)
        training: dict[str, Any] = {
            "steps": length,
            "loss": loss,
            "parameterization": how.method.layer,
            "progress": current.progress,
        }
        shares = basin_shares(*problem, starts=starts, scale=scale, seed=seed, **training)
        current.show(shares)
        plane = spanned_plane(shares.data) if with_map else None
        drawn = None
        if plane is not None:
            drawn = basin_map(
                *problem, plane=plane, extent=extent, resolution=resolution, **training
            )
            current.show(drawn)
        elif with_map:
            current.say("No map: fewer than two selections were reached, which span no plane.")
            current.suggest(current.again(starts=10 * starts), "for rarer selections")
        current.result(**basins_summary(shares, drawn))
        if out is None:
            current.unwritten()
            return
        provenance = report_provenance(
            "basins",
            arguments,
            source=loaded,
            seeds=[seed],
            settings={"optimizer": how.method.name, "steps": length},
        )
        source = f"{file.name}: {starts:,} random starts, {how.method.name}, {length:,} steps"
        write_basins_report(out, shares, drawn, source=source, provenance=provenance)
        current.wrote("report", out / REPORT, folder=str(out.absolute()))


def spanned_plane(data: xr.Dataset) -> Float[np.ndarray, "2 d e"] | None:
    """The plane of a prompt, or orthonormal directions that span two solutions; None if neither.

    Args:
        data: ``BasinShares.data``.
    """
    solutions = data["solution"].values
    shape = solutions.shape[1:]
    if np.prod(shape) == 2:
        return np.eye(2).reshape(2, *shape)
    frequent = np.argsort(-data["count"].values[:-1], kind="stable")[:2]
    if len(frequent) < 2:
        return None
    u, v = solutions[frequent].reshape(2, -1)
    u = u / np.linalg.norm(u)
    v = v - (u @ v) * u
    if np.linalg.norm(v) < 1e-9 * np.linalg.norm(solutions[frequent[1]]):
        return None
    return np.stack([u, v / np.linalg.norm(v)]).reshape(2, *shape)


COMMAND = Command(
    basins,
    "Train from many random starts, count the selections they settle on, and draw "
    "which start of a plane reaches which.",
    {
        "attractor basins tokens.npz": 4,
        "attractor basins tokens.npz --map --out basins": 10,
    },
    about_tokens("Starts are random even if the file names one."),
)

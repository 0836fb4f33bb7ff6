"""Which tokens each start ends on, as a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from attractor import maps
from attractor.cli.command import Command
from attractor.cli.inputs import need_head, one_data_set, read_tokens
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
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths, existing_file
from attractor.support.storage.markers import BASINS, REPORT

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import Float

    from attractor.files import LoadedTokens

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

        from attractor.cli.plans import plan
        from attractor.cli.provenance import report_provenance
        from attractor.maps.basins.page import basins_summary, write_basins_report

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
        shares = maps.basin_shares(*problem, starts=starts, scale=scale, seed=seed, **training)
        current.show(shares)
        plane = spanned_plane(shares.data) if with_map else None
        drawn = None
        if plane is not None:
            drawn = maps.basin_map(
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

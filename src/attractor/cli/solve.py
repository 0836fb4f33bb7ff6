"""``attractor solve``: the direction, and its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from jaxtyping import Float

from attractor.cli.inputs import layout_help, problem_for, read_tokens, select
from attractor.cli.options import Json, Quiet, SelectedTokens, TokenFile, UnusedSeed
from attractor.cli.session import ExitCode, session
from attractor.errors import InvalidInputError
from attractor.geometry import get_geometry
from attractor.margin import Solution
from attractor.margin import solve as solve_problem
from attractor.storage import atomic_file

HELP = layout_help("Solve the margin problem for the direction training must take; certify it.")


def solve(
    file: TokenFile,
    norm: Annotated[str, typer.Option(help="The norm that is to be smallest.")] = "frobenius",
    selection: SelectedTokens = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="NetCDF file for the solution, such as W.nc.")
    ] = None,
    seed: UnusedSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solves the margin problem."""
    with session("solve", as_json=as_json, quiet=quiet) as current:
        from attractor.report.conflicts import conflicts
        from attractor.report.summary import infeasible_count, solution_summary
        from attractor.report.words import prediction_sentences

        geometry = get_geometry(norm)
        if out is not None and out.is_dir():
            raise InvalidInputError("out", f"{out} is a folder", "Give the name of a file")
        loaded = read_tokens(file)
        chosen, about = select(loaded, file, selection)
        solution = solve_problem(problem_for(loaded, chosen), geometry, progress=current.progress)
        assert isinstance(solution, Solution)
        numbers = loaded.tokens.instance_numbers
        current.say(repr(solution), *prediction_sentences(solution, about))
        current.result(
            selection=chosen.index.tolist(),
            W=_matrices(solution.W),
            **solution_summary(solution, numbers),
        )
        if infeasible_count(solution):
            current.exit_code = ExitCode.INFEASIBLE
            for one in conflicts(solution, numbers)[:10]:
                current.say(
                    f"  in conflict: data set {one.instance}, sequence {one.sequence}: keep token "
                    f"{one.selected} against token {one.token} (share {one.weight:.3f})"
                )
        if out is not None:
            with atomic_file(out) as temporary:
                solution.to_xarray().to_netcdf(temporary, engine="h5netcdf")
            current.result(solution=str(out.absolute()))
            current.say(f"Solution: {out.absolute()}")


def _matrices(W: Float[np.ndarray, "*instances d e"]) -> Any:
    """Matrices as JSON can hold them: None for those that do not exist."""
    if W.ndim > 2:
        return [_matrices(one) for one in W]
    return W.tolist() if np.isfinite(W).all() else None

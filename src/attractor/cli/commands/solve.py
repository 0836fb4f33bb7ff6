"""The direction training must take, with a certificate."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from attractor.cli.command import Command
from attractor.cli.inputs import descended, read_tokens, select
from attractor.cli.options import Json, Quiet, SelectedTokens, TokenFile, UnusedSeed
from attractor.cli.predicted import conflict_lines, predict
from attractor.cli.session import ExitCode, session
from attractor.cli.texts import about_tokens
from attractor.files.token_file import LoadedTokens
from attractor.geometry import Frobenius
from attractor.geometry.loading import load_geometry
from attractor.report.constraints import support_pairs, support_table
from attractor.report.summary import infeasible_count, solution_summary
from attractor.report.words import prediction_sentences
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, OutputFile, check_paths, existing_file, save_netcdf

if TYPE_CHECKING:
    from jaxtyping import Float

    from attractor.margin import Solution

NORMS = (
    "frobenius, l_<p> (p from 1 to inf), schatten_<p> (p from 1 to inf), nuclear, spectral, "
    "max(<c> <norm>[<rows>, <columns>], ...), sum(<c> <norm>[<rows>, <columns>], ...)"
)
"""The norms by name, as the registry of geometries spells them."""
_NORM_HELP = (
    f"The norm to minimize: {NORMS}, or module:name of your own; default: the one that the "
    "file's optimizer descends, or frobenius."
)
_MOST_PAIRS = 20
"""Support tokens printed; all of them are in the JSON object and the NetCDF file."""

_MOST_VALUES = 10
"""Singular values printed."""


def solve(
    file: TokenFile,
    norm: Annotated[str | None, typer.Option(help=_NORM_HELP)] = None,
    selection: SelectedTokens = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="NetCDF file for the solution, such as W.nc.")
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="File for the certificate, which tools/verify_certificate.py checks."),
    ] = None,
    seed: UnusedSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solves the margin problem."""
    with session("solve", as_json=as_json, quiet=quiet, out=[out, certificate]) as current:
        outputs = [OutputFile("out", out, ".nc"), OutputFile("certificate", certificate)]
        check_paths(outputs, [Input("FILE", file)])
        existing_file(file, LoadedTokens.missing)

        geometry = None if norm is None else load_geometry(norm)
        loaded = read_tokens(file)
        if certificate is not None and loaded.tokens.instances is not None:
            raise InvalidInputError(
                "certificate",
                f"{file.name} holds {loaded.tokens.instances} data sets",
                "A certificate is of one; leave the axis of instances out of the file",
            )
        chosen, about = select(loaded, file, selection)
        geometry = geometry or descended(loaded) or Frobenius()
        predicted = predict(loaded, chosen, geometry, progress=current.progress)
        solution = predicted.solution
        numbers = loaded.tokens.instance_numbers
        pairs = support_pairs(solution, numbers)
        values = _singular_values(solution)
        current.show(solution)
        if values and solution.problem.instances is None:
            shown = ", ".join(f"{value:.6g}" for value in values[:_MOST_VALUES])
            left = len(values) - _MOST_VALUES
            more = f", and {left:,} more, which --json prints" if left > 0 else ""
            current.say(f"Singular values: {shown}{more}")
        if pairs:
            current.say(support_table(pairs, _MOST_PAIRS))
        current.say(*prediction_sentences(solution, about), predicted.sentence)
        current.result(
            problem=predicted.problem,
            why=predicted.why,
            selection=chosen.index.tolist(),
            W=_matrices(solution.W),
            singular_values=values,
            rank=_ranks(solution),
            uniqueness=np.asarray(solution.uniqueness).tolist(),
            support=[asdict(pair) for pair in pairs],
            **solution_summary(solution, numbers),
        )
        current.say_lines(conflict_lines(solution, numbers))
        if infeasible_count(solution):
            current.exit_code = ExitCode.INFEASIBLE
            kept = f"attractor check {shlex.quote(str(file))}"
            current.suggest(kept, "to see which tokens training keeps instead")
        if out is not None:
            save_netcdf(solution.to_xarray(), out)
            current.wrote("solution", out)
        if certificate is not None:
            solution.save_certificate(certificate)
            current.wrote("certificate", certificate)


def _matrices(W: Float[np.ndarray, "*instances d e"]) -> Any:
    """Matrices as JSON can hold them: None for those that do not exist."""
    if W.ndim > 2:
        return [_matrices(one) for one in W]
    return W.tolist() if np.isfinite(W).all() else None


def _ranks(solution: Solution) -> int | list[int | None] | None:
    """The rank of each W; None where it is not known."""
    found = [None if one < 0 else one for one in np.ravel(solution.rank).tolist()]
    return found if solution.problem.instances is not None else found[0]


def _singular_values(solution: Solution) -> Any:
    """Singular values of each W; None where there is none."""
    if solution.W.ndim > 2:
        return [_singular_values(solution[i]) for i in range(len(solution))]
    if not np.isfinite(solution.W).all():
        return None
    return np.linalg.svd(solution.W, compute_uv=False).tolist()


COMMAND = Command(
    solve,
    "Solve the margin problem for the direction training must take; certify it.",
    {
        "attractor solve tokens.npz": 1,
        "attractor solve tokens.npz --norm nuclear --certificate W.json": 2,
    },
    about_tokens(),
)

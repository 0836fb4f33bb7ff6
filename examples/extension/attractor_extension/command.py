"""The largest margin of a token file in several norms."""

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, TokenFile
from attractor.cli.session import session
from attractor.support.storage import existing_file


def norms(
    file: TokenFile,
    norm: Annotated[list[str] | None, typer.Option(help="A norm by name.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prints the largest margin in each norm."""
    with session("norms", as_json=as_json, quiet=quiet) as current:
        existing_file(Path(file))

        import attractor as at

        names = norm or ["frobenius", "nuclear"]
        loaded = at.load(file)
        selection = at.optimal_tokens(loaded.tokens, loaded.head)
        problem = at.MarginProblem.from_selection(loaded.tokens, selection)
        solved = {name: at.solve(problem, at.geometry.get_geometry(name)) for name in names}
        margins = {name: 1 / float(solution.norm) for name, solution in solved.items()}
        current.result(margins=margins)
        current.say(*(f"{name}: {margin:.4g}" for name, margin in margins.items()))


COMMAND = Command(
    norms,
    "Print the largest margin of a token file in several norms.",
    {"attractor norms tokens.npz --norm frobenius --norm spectral": 2},
)

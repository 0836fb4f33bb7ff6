"""The options that commands share, each defined once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor.support.storage import OutputFolder
from attractor.support.storage.markers import REPORT

Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object to standard output, the rest to standard error."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]
Seed = Annotated[int, typer.Option(min=0, help="The first seed; names all that is random.")]
UnusedSeed = Annotated[
    int, typer.Option(min=0, help="Taken by every command; nothing is random in this one.")
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Random starts for each data set; default: 10, or 1 if the file says where to start.",
    ),
]
Steps = Annotated[
    int | None, typer.Option(min=1, help="Training steps; default: those of the file, or 5000.")
]
OPTIMIZER_HELP = (
    "A name with its settings, such as md:p=1.5, or module:factory: a function without arguments "
    "that returns an optax transformation"
)
OptimizerName = Annotated[
    str | None,
    typer.Option(
        help="The optimizer; default: that of the file, or normalized gradient descent. "
        f"{OPTIMIZER_HELP}."
    ),
]
LossName = Annotated[str, typer.Option(help="The loss: logistic, exponential, linear, squared.")]
OptionalLearningRate = Annotated[
    float | None,
    typer.Option(
        "--lr",
        help="Learning rate of an optimizer with a name; default: that behind the name, or 0.1.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Folder for a report with pictures, new or of an earlier run; without it nothing is "
        "written.",
    ),
]


def report_output(command: str, out: Path | None, marker: str = REPORT) -> OutputFolder:
    """The folder of ``--out``, which replaces an earlier report of the same command alone."""
    return OutputFolder("out", out, marker, replaced=True, command=command)


TokenFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Token sequences, .npz or .safetensors.")
]
SelectedTokens = Annotated[
    str | None,
    typer.Option(
        "--selection",
        metavar="NUMBERS",
        help="Tokens to keep instead of the best ones: a number from 0 for each sequence, "
        "with commas between.",
    ),
]

_UNRECORDED = {"file", "run", "out", "checkpoint", "as_json", "quiet"}
"""Arguments that name files, or say how a command prints."""


def recorded(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a command that its report records, from which it can be made again.

    Args:
        given: ``locals()`` at the start of the command.
    """
    return {name: value for name, value in given.items() if name not in _UNRECORDED}

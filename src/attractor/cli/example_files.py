"""What the commands that write example files share."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from attractor.support.storage import OutputFile, OutputFolder, check_paths

ArrayPath = Annotated[Path, typer.Argument(metavar="PATH", help="A .npz or .safetensors file.")]
Folder = Annotated[Path | None, typer.Option("--out", help="Folder that PATH is counted from.")]


def destination(path: Path, folder: Path | None) -> Path:
    """The file to write, checked."""
    file = path if folder is None else folder / path
    check_paths([OutputFolder("out", folder), OutputFile("path", file)])
    return file


def quoted(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))

"""The report of a command made again and compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from attractor.cli.reproducible import Reproducible
from attractor.containers import read_json
from attractor.errors import FileFormatError
from attractor.papers.reproduction import Reproduction
from attractor.provenance import Provenance, differences, read_provenance

SUMMARY = "summary.json"
"""The numbers of a report."""


def reproduce_report(
    file: Path,
    provenance: Provenance,
    command: Reproducible,
    arguments: Mapping[str, Any],
    data: Path | None,
) -> Reproduction:
    """Runs the command of a report again, and compares the numbers of both.

    Args:
        file: A file of the report.
        provenance: Where it comes from.
        command: The command.
        arguments: What to call it with, checked.
        data: The file that the command takes: tokens, a corpus, a head or a run.

    Raises:
        FileFormatError: If the summary of the report is not beside the file, or is damaged.
    """
    old = _summary(file.with_name(SUMMARY))
    taken = {command.takes: data} if command.takes else {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "again"
        try:
            command.run(**arguments, **taken, out=out, quiet=True)
        except typer.Exit:  # an infeasible problem ends so, and has a report
            if not (out / SUMMARY).is_file():
                raise FileFormatError(
                    f"{file} cannot be made again: {provenance.name} refuses what it says it was "
                    "made with, for the reason above."
                ) from None
        new, made = _summary(out / SUMMARY), read_provenance(out / SUMMARY)
    before, now = dict(_flat(old)), dict(_flat(new))
    differing = {
        name: f"was {before.get(name, 'not there')} and is {now.get(name, 'not there')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    }
    return Reproduction(provenance, tuple(differences(provenance, made)), differing, len(before))


def _summary(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise FileFormatError(f"{path} cannot be read: it holds no JSON object.")
    found.pop("provenance", None)
    return found


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word of a summary under its dotted name."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _flat(entry, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _flat(entry, f"{name}[{number}]")
    else:
        yield name, value

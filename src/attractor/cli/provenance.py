"""Where the reports of commands come from, and what running them again gives."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import typer

from attractor.errors import FileFormatError
from attractor.files import LoadedCorpus, LoadedHead, LoadedTokens
from attractor.papers.paper import (
    LARGE_PROMPT,
    MAX_MARGIN,
    MECHANICS,
    NEXT_TOKEN,
    TRANSFORMERS_AS_SVMS,
)
from attractor.papers.reproduction import Reproduction
from attractor.provenance import Provenance, data_hash, differences, read_provenance
from attractor.training import Trajectory

SUMMARY = "summary.json"
_STATEMENT = "direction of attention under gradient descent"


def report_provenance(
    command: str,
    arguments: Mapping[str, Any],
    *,
    source: LoadedTokens | Trajectory | None = None,
    seeds: Iterable[int] = (),
    settings: Mapping[str, Any] | None = None,
) -> Provenance:
    """Where the report of a command comes from.

    Args:
        command: The command.
        arguments: What it was called with, but for files.
        source: What the file held that the command was called with.
        seeds: The seeds used.
        settings: What was in force.
    """
    paper = TRANSFORMERS_AS_SVMS
    if source is not None and "p" in _parameterization(source):
        paper = MAX_MARGIN
    return Provenance.record(
        "report",
        command,
        arguments={**arguments, "data": source is not None},
        data=None if source is None else data_hash(source.tokens, source.head),
        seeds=seeds,
        settings=settings,
        bibtex=[paper.bibtex(_STATEMENT)],
    )


def corpus_provenance(
    arguments: Mapping[str, Any], loaded: LoadedCorpus, *, realizable: bool
) -> Provenance:
    """Where the report of a corpus comes from.

    Args:
        arguments: What the command was called with, but for the file.
        loaded: What the file held.
        realizable: Whether it is realizable.
    """
    corpus = loaded.corpus
    papers = [NEXT_TOKEN.bibtex("realizable data sets")]
    if not realizable:
        papers.append(MECHANICS.bibtex("token-priority graphs with cycles"))
    return Provenance.record(
        "report",
        "corpus",
        arguments={**arguments, "data": True},
        data=data_hash(
            None,
            numbers=corpus.tokens,
            starts=corpus.starts,
            counts=corpus.counts,
            every_prefix=corpus.every_prefix,
            vocabulary=np.frombuffer(json.dumps(corpus.vocabulary).encode(), np.uint8),
            embeddings=loaded.embeddings,
        ),
        seeds=[arguments["seed"]],
        settings={"context_length": corpus.context_length},
        bibtex=papers,
    )


def head_provenance(arguments: Mapping[str, Any], loaded: LoadedHead) -> Provenance:
    """Where the report of an attention head comes from.

    Args:
        arguments: What the command was called with, but for the file.
        loaded: What the file held.
    """
    arrays = {
        f"{name}_{number}": leaf
        for name, part in (("head", loaded.head), ("tokens", loaded.tokens),
                           ("queries", loaded.queries))
        for number, leaf in enumerate(jax.tree.leaves(part))
    }  # fmt: skip
    return Provenance.record(
        "report",
        "prompt-length",
        arguments={**arguments, "data": True},
        data=data_hash(None, **arrays),
        seeds=[arguments["seed"]],
        bibtex=[LARGE_PROMPT.bibtex("attention over Gaussian tokens is affine")],
    )


def _parameterization(source: LoadedTokens | Trajectory) -> str:
    if isinstance(source, Trajectory):
        return str(source.settings["parameterization"])
    return source.parameterization


def reproduce_report(file: Path, provenance: Provenance, data: Path | None) -> Reproduction:
    """Runs the command of a report again, and compares the numbers of both.

    Args:
        file: A file of the report.
        provenance: Where it comes from.
        data: The file that the command takes: tokens, a corpus, a head or a run.

    Raises:
        FileFormatError: If the summary of the report is not beside the file, or is damaged.
    """
    from attractor.cli import (
        basins,
        check,
        corpus,
        demo,
        in_context,
        matrix,
        prompt_length,
        verify,
    )

    commands: dict[str, Any] = {
        "basins": basins.basins,
        "check": check.check,
        "corpus": corpus.corpus,
        "demo": demo.demo,
        "in-context": in_context.in_context,
        "matrix": matrix.matrix,
        "prompt-length": prompt_length.prompt_length,
        "verify": verify.verify,
    }
    if provenance.name not in commands:
        raise FileFormatError(f"{file} was made by a command that is not known: {provenance.name}.")
    old = _summary(file.with_name(SUMMARY))
    arguments = {name: value for name, value in provenance.arguments.items() if name != "data"}
    if data is not None:
        arguments["run" if provenance.name == "verify" else "file"] = data
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "again"
        try:
            commands[provenance.name](**arguments, out=out, quiet=True)
        except typer.Exit:  # an infeasible problem ends so, and has a report
            pass
        new, made = _summary(out / SUMMARY), read_provenance(out / SUMMARY)
    before, now = dict(_flat(old)), dict(_flat(new))
    differing = {
        name: f"was {before.get(name, 'not there')} and is {now.get(name, 'not there')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    }
    return Reproduction(provenance, tuple(differences(provenance, made)), differing, len(before))


def _summary(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found.pop("provenance", None)
    except (OSError, ValueError, AttributeError) as error:
        raise FileFormatError(f"{path} cannot be read ({error}).") from None
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

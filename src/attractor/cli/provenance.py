"""Where the reports of commands come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attractor.files import CorpusCase, HeadCase, LoadedTokens
from attractor.papers.paper import (
    LARGE_PROMPT,
    MAX_MARGIN,
    MECHANICS,
    NEXT_TOKEN,
    TRANSFORMERS_AS_SVMS,
)
from attractor.provenance import Provenance, data_hash
from attractor.training import Trajectory

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
    arguments: Mapping[str, Any], loaded: CorpusCase, *, realizable: bool
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
        data=loaded.hash,
        seeds=[arguments["seed"]],
        settings={"context_length": corpus.context_length},
        bibtex=papers,
    )


def head_provenance(arguments: Mapping[str, Any], loaded: HeadCase) -> Provenance:
    """Where the report of an attention head comes from.

    Args:
        arguments: What the command was called with, but for the file.
        loaded: What the file held.
    """
    return Provenance.record(
        "report",
        "prompt-length",
        arguments={**arguments, "data": True},
        data=loaded.hash,
        seeds=[arguments["seed"]],
        bibtex=[LARGE_PROMPT.bibtex("attention over Gaussian tokens is affine")],
    )


def _parameterization(source: LoadedTokens | Trajectory) -> str:
    if isinstance(source, Trajectory):
        return str(source.settings["parameterization"])
    return source.parameterization

"""Claims and figures by name, each imported alone; the file of a paper's index."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attractor.geometry.loading import IN_MODULE, named_in_module
from attractor.papers.figure import PaperFigure
from attractor.papers.ledger.claim import Claim, Ledger
from attractor.papers.ledger.index import INDEX, Kind, Listed, declared, listed, make_index
from attractor.papers.ledger.places import folder, imported, is_package
from attractor.support.checks import check_kinds, suggest
from attractor.support.errors import InvalidInputError
from attractor.support.storage import write_file


def all_claims(paper: str | None = None) -> dict[str, Claim]:
    """Every claim by name, of one paper or of all, in the order of the papers' statements.

    Args:
        paper: A paper, with those that are checked beside it, or a distribution that brings some.

    Raises:
        InvalidInputError: If there is no such paper.
    """
    return _loaded("claims", listed("claims", paper))


def all_figures(paper: str | None = None) -> dict[str, PaperFigure]:
    """Every figure by name, of one paper or of all, in the order of the papers' statements.

    Args:
        paper: A paper, with those that are shown beside it, or a distribution that brings some.

    Raises:
        InvalidInputError: If there is no such paper.
    """
    return _loaded("figures", listed("figures", paper))


def get_claim(name: str) -> Claim:
    """Finds a claim; the module that it lies in is imported, and no other.

    Raises:
        InvalidInputError: If there is none of that name; suggests near ones.

    Example:
        >>> import attractor as at
        >>> claim = at.papers.get_claim("transformers-as-svms/rank")
        >>> claim.summary
        'Frobenius and nuclear solutions have at most the rank n, the number of queries'
    """
    return _found("claims", name)


def get_figure(name: str) -> PaperFigure:
    """Finds a figure; the module that it lies in is imported, and no other.

    Raises:
        InvalidInputError: If there is none of that name; suggests near ones.
    """
    return _found("figures", name)


def load_claims(spelling: str) -> dict[str, Claim]:
    """A claim by its name, or claims of one's own from ``module:name``; by their names.

    The name in a module is that of a claim, of a ledger, whose claims are all taken, or of a
    measure that one declares. Modules are looked for in the current folder as well.

    Args:
        spelling: A name that ``get_claim`` knows, or where to find it.

    Raises:
        InvalidInputError: If there is none, or its module raises.
    """
    check_kinds(name=(spelling, str))
    own = IN_MODULE.fullmatch(spelling)
    if own is None:
        return {spelling: get_claim(spelling)}
    thing = named_in_module("name", *own.groups())
    if isinstance(thing, Claim):
        return {thing.name: thing}
    ledgers = [one for one in vars(sys.modules[own[1]]).values() if isinstance(one, Ledger)]
    every = {name: one for ledger in ledgers for name, one in ledger.claims.items()}
    found = thing.claims if isinstance(thing, Ledger) else {
        name: one for name, one in every.items() if one.measure is thing
    }  # fmt: skip
    if not found:
        raise InvalidInputError(
            "name",
            f"{spelling} is no claim",
            "Give a Claim, a Ledger, or a measure that a Ledger declares",
        )
    return dict(found)


def figures_in(out: str | os.PathLike[str]) -> dict[str, PaperFigure]:
    """The figures of the papers that have a subfolder in a folder; no others are loaded."""
    drawn = {
        name: one
        for name, one in listed("figures").items()
        if Path(out, name.partition("/")[0]).is_dir()
    }
    return _loaded("figures", drawn)


def write_index(place: str) -> Path:
    """Writes the index of a paper, in the order of its statements.

    Args:
        place: The first part of the names of its claims.

    Raises:
        InvalidInputError: If the paper is one module, which needs none.
    """
    if not is_package(place):
        raise InvalidInputError("place", f"{place} is one module", "It needs no index")
    made = make_index(place)
    kinds = {
        kind: ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
        for kind, found in made.items()
    }
    text = ",\n".join(f'"{kind}": {{\n{lines}\n}}' for kind, lines in kinds.items())
    file = folder(place) / INDEX
    write_file(file, f"{{\n{text}\n}}\n")
    return file


def _found(kind: Kind, name: str) -> Any:
    """The claim or figure of a name."""
    check_kinds(name=(name, str))
    every = listed(kind)
    if name in every:
        return _loaded(kind, {name: every[name]})[name]
    alike = [one for one in every if one.rpartition("/")[2] == name.rpartition("/")[2]]
    meant = f"Did you mean {' or '.join(alike)}? " if alike else suggest(name, every)
    remedy = f"{meant}`attractor {kind}` lists them"
    raise InvalidInputError("name", f"there is no {kind[:-1]} {name!r}", remedy)


def _loaded(kind: Kind, entries: Mapping[str, Listed]) -> dict[str, Any]:
    """Claims or figures, by importing the modules that an index says they lie in."""
    return {
        name: declared(imported(name.partition("/")[0], one.module), kind)[name]
        for name, one in entries.items()
    }

"""Lists of claims and figures, from the index of each paper: nothing is imported for them.

The index (``index.json``, which ``packs.write_index`` writes) has a line for each claim and figure:
the module that it lies in, its summary, its paper. A paper without an index is imported whole.
"""

from __future__ import annotations

import json
import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, Literal, NamedTuple

from attractor.papers.ledger.places import folder, imported, is_package, places, statements
from attractor.results.paper import PAPERS, Paper
from attractor.support.checks import check_kinds, suggest
from attractor.support.errors import AttractorWarning, InvalidInputError
from attractor.support.plugins import OWN

Kind = Literal["claims", "figures"]
Contents = dict[Kind, dict[str, "Listed"]]
"""The claims and figures of a paper by name."""
INDEX = "index.json"
KINDS: tuple[Kind, ...] = ("claims", "figures")


class Listed(NamedTuple):
    """A claim or figure, as an index has it.

    Attributes:
        module: The module that it lies in.
        summary: A line that says what is claimed or shown.
        paper: The name of the paper that it is from.
    """

    module: str
    summary: str
    paper: str


def listed(kind: Kind, paper: str | None = None) -> dict[str, Listed]:
    """All claims or figures by name, in the order of the papers; none with an index is imported.

    A pack that cannot be read is named in a warning, and the others are listed.

    Args:
        kind: Which of the two.
        paper: A paper, or a distribution that brings some; None for all.

    Raises:
        InvalidInputError: If there is no such paper or distribution.
    """
    check_kinds(paper=(paper, str | None))
    contents = _contents()
    every = {name: one for place in contents for name, one in contents[place][kind].items()}
    if paper is None:
        return every
    within = places_of(paper)
    return {
        name: one
        for name, one in every.items()
        if one.paper == paper or name.partition("/")[0] in within
    }


def places_of(paper: str) -> list[str]:
    """The places that are named like a paper, or that a distribution brings; none of one beside.

    Raises:
        InvalidInputError: If there is no paper or distribution of that name.
    """
    known = dict.fromkeys([*papers(), *(place.distribution for place in places().values())])
    if paper not in known:
        raise InvalidInputError(
            "paper",
            f"there is no paper {paper!r}",
            f"{suggest(paper, known)}Give one of {', '.join(known)}",
        )
    return [name for name, place in places().items() if paper in (name, place.distribution)]


@cache
def papers() -> dict[str, Paper]:
    """Papers by name: ours, then those of other distributions."""
    found = dict(PAPERS)
    for place in _contents():
        module, distribution = places()[place]
        if distribution != OWN:
            for one in vars(imported(place, module)).values():
                if isinstance(one, Paper):
                    found.setdefault(one.name, one)
    return found


def stored_index(place: str) -> Contents | None:
    """What the index of a paper says; None where it has none."""
    file = folder(place) / INDEX
    if not is_package(place) or not file.is_file():
        return None
    return {
        kind: {name: Listed(*one) for name, one in found.items()}
        for kind, found in json.loads(file.read_text("utf-8")).items()
    }


def make_index(place: str) -> Contents:
    """What an index says, made anew by importing all modules of a paper."""
    entries = [entry for each in statements(place).values() for entry in each]
    modules = [*_modules(place)]
    found: Contents = {}
    for kind in KINDS:
        every = {
            name: Listed(module.__name__, one.summary, one.paper.name)
            for module in reversed(modules)
            for name, one in declared(module, kind).items()
        }
        order = [f"{place}/{name}" for entry in entries for name in entry.get(kind, ())]
        order = [name for name in order if name in every]
        found[kind] = {name: every[name] for name in dict.fromkeys([*order, *every])}
    return found


@cache
def _contents() -> dict[str, Contents]:
    """The claims and figures of all papers that can be read; it is said which cannot."""
    found = {}
    for place in places():
        try:
            found[place] = stored_index(place) or make_index(place)
        except InvalidInputError as error:
            warnings.warn(str(error), AttractorWarning, stacklevel=3)
    return found


def _modules(place: str) -> Iterator[ModuleType]:
    """All modules of a paper: the one that it is, or a package and what lies in it."""
    top = imported(place, places()[place].module)
    yield top
    for inner in pkgutil.walk_packages(getattr(top, "__path__", ()), f"{top.__name__}."):
        yield imported(place, inner.name)


def declared(module: ModuleType, kind: Kind) -> dict[str, Any]:
    """The claims or figures that a module declares, by name.

    They are what has its kind's name as ``listed_as``: claims, ledgers, figures.
    """
    found: dict[str, Any] = {}
    for thing in vars(module).values():
        if getattr(type(thing), "listed_as", None) == kind:
            found |= thing.declared
    return found

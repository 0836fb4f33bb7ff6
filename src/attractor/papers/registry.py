"""The registries of claims and of figures."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from attractor.papers.claim import Claim
from attractor.papers.figure import PaperFigure
from attractor.results.paper import get_paper
from attractor.support.checks import check_kinds, suggest
from attractor.support.errors import InvalidInputError

if TYPE_CHECKING:
    from attractor.papers.statement import Statement

Named = TypeVar("Named", Claim, PaperFigure)
OfPaper = TypeVar("OfPaper", "Claim", "PaperFigure", "Statement")

PACKAGES = (
    "max_margin",
    "transformers_as_svms",
    "mirror_descent",
    "next_token",
    "large_prompt",
    "folklore",
)
"""Where the papers' claims, figures and statements lie, in the order of the papers."""


_REGISTERED: dict[str, Claim] = {}
"""Claims from outside of this library, by name."""


def register_claim(claim: Claim) -> Claim:
    """Adds a claim of one's own to those that are listed and found by name.

    Args:
        claim: The claim; one of its name that was added before is replaced.

    Raises:
        InvalidInputError: If a claim of the papers has its name.
    """
    check_kinds(claim=(claim, Claim))
    if claim.name in _all("claims", Claim):
        raise InvalidInputError(
            "claim", f"{claim.name} is one of the papers'", "Give it a name of its own"
        )
    _REGISTERED[claim.name] = claim
    return claim


def all_claims(paper: str | None = None) -> dict[str, Claim]:
    """Every claim by name, of one paper or of all, in the order of the papers' texts.

    Those of one's own come last.

    Raises:
        InvalidInputError: If there is no such paper.
    """
    return of_paper({**_all("claims", Claim), **_REGISTERED}, paper)


def all_figures(paper: str | None = None) -> dict[str, PaperFigure]:
    """Every figure by name, of one paper or of all, in the order of the papers.

    Raises:
        InvalidInputError: If there is no such paper.
    """
    return of_paper(_all("figures", PaperFigure), paper)


def figures_in(out: str | os.PathLike[str]) -> dict[str, PaperFigure]:
    """The figures of the papers that have a subfolder in a folder; no others are loaded."""
    return {
        name: figure
        for package in PACKAGES
        if Path(out, package.replace("_", "-")).is_dir()
        for name, figure in _found(package, "figures", PaperFigure).items()
    }


def get_claim(name: str) -> Claim:
    """Finds a claim.

    Raises:
        InvalidInputError: If there is none of that name; suggests near ones.

    Example:
        >>> import attractor as at
        >>> claim = at.papers.get_claim("transformers-as-svms/rank")
        >>> claim.summary
        'Frobenius and nuclear solutions have at most the rank n, the number of queries'
    """
    return _named("claim", Claim, name, _REGISTERED)


def get_figure(name: str) -> PaperFigure:
    """Finds a figure.

    Raises:
        InvalidInputError: If there is none of that name; suggests near ones.
    """
    check_kinds(name=(name, str))
    return _named("figure", PaperFigure, name, {})


def _all(folder: str, kind: type[Named]) -> dict[str, Named]:
    """The claims or figures of all packages."""
    found: dict[str, Named] = {}
    for package in PACKAGES:
        for name, thing in _found(package, folder, kind).items():
            found.setdefault(name, thing)
    return found


@cache
def _found(package: str, folder: str, kind: type[Named]) -> dict[str, Named]:
    """The claims or figures in all modules of one package, in the order of its ``ORDER``."""
    found: dict[str, Named] = {}
    listed = importlib.import_module(f"attractor.papers.{package}.{folder}")
    modules = [importlib.import_module(f"{listed.__name__}.{name}") for name in listed.ORDER]
    for module in modules:
        for thing in vars(module).values():
            if isinstance(thing, kind):
                found.setdefault(thing.name, thing)
    return found


def of_paper(things: Mapping[str, OfPaper], paper: str | None) -> dict[str, OfPaper]:
    """Those that are of a paper, or in its folder by their names; all if it is None.

    Raises:
        InvalidInputError: If there is no such paper.
    """
    if paper is None:
        return dict(things)
    check_kinds(paper=(paper, str))
    known = get_paper(paper)
    return {
        name: thing
        for name, thing in things.items()
        if thing.paper is known or name.startswith(f"{known.name}/")
    }


def _named(word: str, kind: type[Named], name: str, besides: Mapping[str, Named]) -> Named:
    """The claim or figure of a name; the package of its paper alone is loaded where that has it."""
    check_kinds(name=(name, str))
    package = name.partition("/")[0].replace("-", "_")
    own = _found(package, f"{word}s", kind) if package in PACKAGES else {}
    things = own if name in own else {**_all(f"{word}s", kind), **besides}
    if name in things:
        return things[name]
    alike = [one for one in things if one.rpartition("/")[2] == name.rpartition("/")[2]]
    meant = f"Did you mean {' or '.join(alike)}? " if alike else suggest(name, things)
    remedy = f"{meant}`attractor {word}s` lists them"
    raise InvalidInputError("name", f"there is no {word} {name!r}", remedy)

"""Where papers lie: packages that installed distributions name, this one among them.

A distribution brings a paper by an entry point of the group ``attractor.papers``. Its name is the
first part of the names of that paper's claims and figures, its value the package, or the one
module, that they lie in. ``statements.toml`` and ``index.json`` beside it are files of the paper;
both may be missing. Papers that are checked beside it are ``Paper`` objects of that package.
"""

from __future__ import annotations

import importlib
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from attractor.results.paper import PAPERS
from attractor.support.errors import InvalidInputError
from attractor.support.plugins import OWN, owner, plugins

GROUP = "attractor.papers"


class Place(NamedTuple):
    """Where the claims and figures of a paper lie.

    Attributes:
        module: The package or module.
        distribution: The distribution that brings it.
    """

    module: str
    distribution: str


@cache
def places() -> dict[str, Place]:
    """Where papers lie, by the first part of their claims' names; ours come first."""
    found = {name: Place(one.value, owner(one)) for name, one in plugins(GROUP).items()}
    order = [*PAPERS]
    ours = sorted(
        (name for name, place in found.items() if place.distribution == OWN),
        key=lambda name: order.index(name) if name in order else len(order),
    )
    return {name: found[name] for name in dict.fromkeys([*ours, *sorted(found)])}


def folder(place: str) -> Path:
    """The folder of a paper's files; its package is not imported for that.

    Raises:
        InvalidInputError: If the package is not there; its distribution is named.
    """
    module, distribution = places()[place]
    try:
        spec = find_spec(module)
    except ImportError:  # of a package that it lies in
        spec = None
    if spec is None or spec.origin is None:
        raise InvalidInputError(
            "paper",
            f"the package {module} of {place} is not there",
            f"Install {distribution} again",
        )
    return Path(spec.origin).parent


def is_package(place: str) -> bool:
    """Whether a paper's claims lie in a package, which may have files, and not in one module."""
    spec = find_spec(places()[place].module)
    return spec is not None and spec.submodule_search_locations is not None


def imported(place: str, module: str) -> Any:
    """A module of a paper.

    Raises:
        InvalidInputError: If it is of somebody else and cannot be imported; its distribution is
            named.
    """
    distribution = places()[place].distribution
    try:
        return importlib.import_module(module)
    except Exception as error:  # somebody else's module can raise anything
        if distribution == OWN:
            raise
        raise InvalidInputError(
            "paper",
            f"{module} of {distribution} raised {type(error).__name__}: {error}",
            f"Mend or uninstall {distribution}",
        ) from error


@cache
def statements(place: str) -> dict[str, list[dict[str, Any]]]:
    """What ``statements.toml`` of a paper says; empty where it has none."""
    if place not in places() or not is_package(place):
        return {}
    file = folder(place) / "statements.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}


def subject(name: str) -> str:
    """What the statement is about that lists a claim or figure; empty if none does."""
    place, _, own = name.partition("/")
    for entries in statements(place).values():
        for entry in entries:
            if own in (*entry.get("claims", ()), *entry.get("figures", ())):
                return entry["subject"]
    return ""

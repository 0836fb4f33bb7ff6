"""Results run again from the provenance in their file, and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attractor.containers import parsing, read_json
from attractor.errors import InvalidInputError
from attractor.files.contents import DataSet
from attractor.papers.check import check_claim
from attractor.papers.drawing import compute, read_data
from attractor.papers.registry import get_claim, get_figure
from attractor.papers.results import ClaimResults
from attractor.provenance import Provenance, differences


@dataclass(frozen=True)
class Reproduction:
    """A result and the same run again.

    Attributes:
        provenance: Where the result came from.
        changed: Differences in versions and settings, in words.
        differing: Differences in the numbers, in words by name.
        compared: Number of arrays or outcomes compared.
    """

    provenance: Provenance
    changed: tuple[str, ...]
    differing: Mapping[str, str]
    compared: int

    @property
    def same(self) -> bool:
        """Whether every number came out the same."""
        return not self.differing


def reproduce_figure(
    file: Path, provenance: Provenance, arguments: Mapping[str, Any], *, progress: bool = False
) -> Reproduction:
    """Computes a figure's data again and compares them with those stored beside it.

    Args:
        file: A file of the figure.
        provenance: Where it comes from.
        arguments: Checked arguments of ``compute``.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If the data of the figure are not there.
        FileFormatError: If they are damaged.
    """
    stored = file.with_suffix(".nc")
    if not stored.is_file():
        raise InvalidInputError(
            "file",
            f"the numbers behind {file.name} are not beside it",
            f"Put {stored.name} into the same folder",
        )
    old = read_data(stored)
    new, made = compute(get_figure(provenance.name), progress=progress, **arguments)
    names = sorted({*map(str, old.variables), *map(str, new.variables)})
    differing = {name: words for name in names if (words := _compare(old, new, name))}
    return Reproduction(provenance, tuple(differences(provenance, made)), differing, len(names))


def reproduce_claims(
    file: Path, provenance: Provenance, cases: Sequence[DataSet] | None, made: Provenance
) -> Reproduction:
    """Checks claims again and compares outcomes and measured values with those stored.

    Args:
        file: The report, or the outcomes beside it.
        provenance: Where they come from.
        cases: The user's data, where they were checked on such.
        made: Where the new ones come from, with names and seed as arguments.

    Raises:
        FileFormatError: If the outcomes are not beside the report, or are damaged.
    """
    stored = file.with_name("claims.json")
    names, seed = made.arguments["names"], made.arguments["seed"]
    contents = read_json(stored)
    with parsing(stored, "claims"):
        before = {name: _numbers(contents["claims"].get(name, {})) for name in names}
    results = [check_claim(get_claim(name), cases, seed=seed) for name in names]
    new = json.loads(json.dumps(ClaimResults(tuple(results)).summary()))["claims"]
    now = {name: _numbers(new[name]) for name in names}
    differing = {
        name: f"was {_in_words(before[name])} and is {_in_words(now[name])}"
        for name in names
        if before[name] != now[name]
    }
    return Reproduction(provenance, tuple(differences(provenance, made)), differing, len(names))


def _compare(old: xr.Dataset, new: xr.Dataset, name: str) -> str:
    """The difference of two arrays in words; empty where there is none."""
    if name not in old.variables or name not in new.variables:
        return "is new" if name in new.variables else "is no longer there"
    before, now = old[name].to_numpy(), new[name].to_numpy()
    if before.shape != now.shape:
        return f"had shape {before.shape} and has {now.shape}"
    if before.dtype.kind not in "fc" or now.dtype.kind not in "fc":
        changed = int((before.astype(str) != now.astype(str)).sum())
        return f"{changed} of {before.size} values differ" if changed else ""
    if np.array_equal(before, now, equal_nan=True):
        return ""
    with np.errstate(invalid="ignore"):
        apart = np.abs(before - now)
    apart = np.where(np.isnan(before) & np.isnan(now), 0.0, apart)
    largest = float(np.nanmax(apart, initial=0.0))
    scale = float(np.nanmax(np.abs(before), initial=0.0))
    return (
        f"{int((apart != 0).sum())} of {apart.size} differ, by up to {largest:.3g} of {scale:.3g}"
    )


def _numbers(claim: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Outcome and measured value on every data set."""
    return [
        (each["outcome"], None if each["measured"] is None else each["measured"]["value"])
        for each in claim.get("data", [])
    ]


def _in_words(numbers: Sequence[tuple[Any, Any]]) -> str:
    return ", ".join(f"{outcome} ({value})" for outcome, value in numbers) or "not there"

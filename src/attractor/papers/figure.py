"""``PaperFigure``: a figure of a paper, from settings to labeled data to a drawing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsFloat

import xarray as xr
from matplotlib.figure import Figure

from attractor.checks import check_choice, check_count, check_text
from attractor.papers.paper import Paper
from attractor.progress import ProgressBar, progress_bar
from attractor.provenance import data_hash

SIZES = ("quick", "small", "paper")


@dataclass(frozen=True)
class Request:
    """What a figure is asked for.

    Attributes:
        size: ``"quick"``, ``"small"`` or ``"paper"``.
        settings: The settings of that size, with the number of seeds asked for.
        seed: The first seed of all that is random.
        as_published: Whether the artifact of the published figure is wanted beside the exact one.
        progress: Whether to show progress bars.
        folder: Where long work may keep checkpoints; None for nowhere.
        shared: Where figures of a paper may keep what several of them need; None for nowhere.
        source: The user's own data, for figures that take some; None for those of the size.
    """

    size: str
    settings: Mapping[str, Any]
    seed: int = 0
    as_published: bool = False
    progress: bool = False
    folder: Path | None = None
    shared: Path | None = None
    source: Path | None = None
    hashes: dict[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """How many trials or data sets."""
        return self.settings["seeds"]

    def checkpoint(self, name: str) -> Path | None:
        """A folder for ``train(checkpoint=)``, so that a killed figure goes on where it was."""
        name = check_text("name", name)
        return None if self.folder is None else self.folder / name

    def uses(self, name: str, *data: Any, **arrays: Any) -> None:
        """Notes data that the figure is made of, for its provenance."""
        self.hashes[name] = data_hash(*data, **arrays)

    @contextlib.contextmanager
    def bar(self, description: str, total: float) -> Iterator[ProgressBar]:
        """A progress bar, where one is wanted."""
        with progress_bar(description, total, enabled=self.progress) as advance:
            yield advance


@dataclass(frozen=True)
class Reading:
    """What a figure shows, as a number.

    Attributes:
        text: What the number is, in words.
        value: The number.
        expected: What it must be for the figure's conclusion to stand, in words: ``"> 0.99"``.
        agrees: Whether it is.
    """

    text: str
    value: float
    expected: str
    agrees: bool


def at_least(text: str, value: SupportsFloat, bound: float) -> Reading:
    """A reading that must not lie below a bound."""
    return Reading(text, float(value), f">= {bound:g}", float(value) >= bound)


def at_most(text: str, value: SupportsFloat, bound: float) -> Reading:
    """A reading that must not exceed a bound."""
    return Reading(text, float(value), f"<= {bound:g}", float(value) <= bound)


def close_to(text: str, value: SupportsFloat, target: float, tolerance: float) -> Reading:
    """A reading that must be a number, to within a tolerance."""
    agrees = abs(float(value) - target) <= tolerance
    return Reading(text, float(value), f"{target:.7g} to within {tolerance:.2g}", agrees)


def stacked(panels: Sequence[xr.Dataset], name: str, values: Sequence[Any]) -> xr.Dataset:
    """Data of several panels side by side along a new dimension."""
    joined = xr.concat(panels, dim=xr.IndexVariable(name, list(values)))
    assert isinstance(joined, xr.Dataset)
    return joined


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper.

    Attributes:
        name: ``paper/name``.
        paper: The paper it is from.
        statement: The experiment by its subject, for citations.
        summary: A line that says what it shows.
        published: What the published figure shows, or that there is none.
        sizes: Settings by size, each with ``seeds``: how many trials or data sets. ``paper`` is
            the published experiment; ``quick`` has every panel and curve of it.
        compute: Makes the labeled data.
        draw: Draws them; called inside ``plots.style()``.
        caption: What is to be seen, in words, with the numbers of these data.
        readings: Its conclusion, as numbers read off the data.
        artifact: What ``as_published`` reproduces of the published figure beside the exact one;
            empty where there is nothing.
        takes: What data of the user's it can be made of, in words; empty where of none.
    """

    name: str
    paper: Paper
    statement: str
    summary: str
    published: str
    sizes: Mapping[str, Mapping[str, Any]]
    compute: Callable[[Request], xr.Dataset]
    draw: Callable[[xr.Dataset], Figure]
    caption: Callable[[xr.Dataset], str]
    readings: Callable[[xr.Dataset], Sequence[Reading]]
    artifact: str = ""
    takes: str = ""

    @property
    def bibtex(self) -> str:
        """How to cite the experiment."""
        return self.paper.bibtex(self.statement)

    def settings(self, size: str, seeds: int | None = None) -> dict[str, Any]:
        """The settings of a size, perhaps with another number of seeds."""
        size = check_choice("size", size, self.sizes)
        seeds = None if seeds is None else check_count("seeds", seeds)
        chosen = dict(self.sizes[size])
        return chosen if seeds is None else chosen | {"seeds": seeds}

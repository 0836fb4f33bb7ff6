"""``PaperFigure``: a figure of a paper, from settings to labeled data to a drawing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.files import data_hash
from attractor.results.paper import Paper
from attractor.support.checks import check_choice, check_count, check_text
from attractor.support.errors import InvalidInputError
from attractor.support.progress import ProgressBar, progress_bar

SIZES = ("quick", "small", "paper")


def by_size(**settings: Any) -> dict[str, dict[str, Any]]:
    """The settings of each of ``SIZES``: lists have one value for each, others are the same in all.

    ``by_size(seeds=1, steps=[100, 1000, 10_000])`` takes 1,000 steps at size ``"small"``.
    """
    every = {
        name: value if isinstance(value, list) else [value] * len(SIZES)
        for name, value in settings.items()
    }
    rows = zip(*every.values(), strict=True)
    return {size: dict(zip(every, row, strict=True)) for size, row in zip(SIZES, rows, strict=True)}


@dataclass(frozen=True)
class Request:
    """The arguments that a figure is computed with.

    Attributes:
        size: ``"quick"``, ``"small"`` or ``"paper"``.
        settings: The settings of that size, with the number of seeds requested.
        seed: The first seed of all that is random.
        as_published: Whether the artifact of the published figure is drawn beside the exact one.
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
        """Number of trials or data sets."""
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
    """A number that a figure shows.

    Attributes:
        text: Description of the number.
        value: The number.
        expected: The condition for the figure's conclusion to hold, in words: ``"> 0.99"``.
        agrees: Whether the number meets it.
        key: Name of the number in captions; empty where they do not use it.
    """

    text: str
    value: float
    expected: str
    agrees: bool
    key: str = ""


def at_least(text: str, value: SupportsFloat, bound: float, key: str = "") -> Reading:
    """A reading that must not lie below a bound."""
    return Reading(text, float(value), f">= {bound:g}", float(value) >= bound, key)


def at_most(text: str, value: SupportsFloat, bound: float, key: str = "") -> Reading:
    """A reading that must not exceed a bound."""
    return Reading(text, float(value), f"<= {bound:g}", float(value) <= bound, key)


def close_to(
    text: str, value: SupportsFloat, target: float, tolerance: float, key: str = ""
) -> Reading:
    """A reading that must be a number, to within a tolerance."""
    agrees = abs(float(value) - target) <= tolerance
    return Reading(text, float(value), f"{target:.7g} to within {tolerance:.2g}", agrees, key)


class Readings(tuple[Reading, ...]):
    """The readings of a figure, and by their keys all numbers that its caption names.

    Attributes:
        values: The value of each reading that has a key, and what is shown in the caption alone.
    """

    values: Mapping[str, Any]

    def __new__(cls, *readings: Reading, **shown: Any) -> Readings:
        """Collects what a figure shows.

        Args:
            readings: The numbers that decide its conclusion.
            shown: Further numbers and words of its caption, by key. Labeled arrays become numbers
                by their labels, one dimension after the other: ``{norm[exact][KQ]:.0f}``.

        Raises:
            InvalidInputError: If two have the same key.
        """
        values = {key: _by_label(value) for key, value in shown.items()}
        for reading in readings:
            if reading.key in values:
                raise InvalidInputError(
                    "key", f"{reading.key!r} is that of two numbers", "Give each its own"
                )
            if reading.key:
                values[reading.key] = reading.value
        found = super().__new__(cls, readings)
        found.values = values
        return found


def _by_label(value: Any) -> Any:
    """A number as Python's own; a labeled array as nested dictionaries of numbers by label."""
    if not isinstance(value, xr.DataArray):
        return value.item() if isinstance(value, np.generic) else value
    if not value.dims:
        return value.item()
    along = value.dims[0]
    # Fields of ``str.format`` are integers or texts.
    labels = [
        str(label) if isinstance(label, float) else label for label in value[along].values.tolist()
    ]
    return {label: _by_label(value.isel({along: at})) for at, label in enumerate(labels)}


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
        published: Description of the published figure, or that there is none.
        sizes: Settings by size, each with ``seeds``, the number of trials or data sets. ``paper``
            is the published experiment; ``quick`` has every panel and curve of it.
        compute: Makes the labeled data.
        draw: Draws them; called inside ``plots.style()``.
        caption: The caption, with the numbers of these data.
        readings: Its conclusion, as numbers read off the data.
        artifact: The artifact of the published figure that ``as_published`` reproduces beside the
            exact one; empty where there is none.
        takes: Kind of the user's data that it can be drawn from, in words; empty where of none.
    """

    listed_as: ClassVar[str] = "figures"
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
    def declared(self) -> dict[str, PaperFigure]:
        """Itself by its name, as its module's list has it."""
        return {self.name: self}

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


@dataclass(frozen=True)
class Artifact:
    """An artifact of rounding or of a solver in a published figure, which ``as_published`` draws.

    Attributes:
        summary: Description in a line.
        caption: What the caption adds where it is drawn; a template as the caption itself.
        drawn: Whether data hold it beside what is exact; by default, whether ``"as published"``
            is one of their kernels.
    """

    summary: str
    caption: str
    drawn: Callable[[xr.Dataset], bool] = lambda data: "as published" in data["kernel"]


@dataclass(frozen=True)
class Caption:
    """A caption with the numbers of the data.

    Attributes:
        template: The words. Fields of ``str.format`` name the values of ``readings`` by key,
            the ``sizes`` of the data (``{sizes[instance]}``), the ``last`` label of each dimension
            (``{last[step]:,}``) and their ``attrs``.
        readings: The readings of the data.
        artifact: The artifact described where the published form is drawn.
    """

    template: str
    readings: Callable[[xr.Dataset], Readings]
    artifact: Artifact | None = None

    def __call__(self, data: xr.Dataset) -> str:
        """The caption for these data."""
        words = self.template
        if self.artifact is not None and self.artifact.drawn(data):
            words += f" {self.artifact.caption}"
        last = {name: labels[-1] for name, labels in data.indexes.items() if len(labels)}
        of_data = {"sizes": data.sizes, "last": last, "attrs": data.attrs}
        return words.format_map({**of_data, **self.readings(data).values})


@dataclass(frozen=True)
class Figures:
    """Makes the figures of one paper, with the fields that they share.

    Attributes:
        paper: The paper.
        folder: Prefix of their names: the name of the paper, or of the one that it is shown beside.
    """

    paper: Paper
    folder: str = ""

    def figure(
        self,
        name: str,
        summary: str,
        *,
        statement: str,
        published: str,
        sizes: Mapping[str, Mapping[str, Any]],
        compute: Callable[[Request], xr.Dataset],
        draw: Callable[[xr.Dataset], Figure],
        readings: Callable[[xr.Dataset], Readings],
        caption: str,
        artifact: Artifact | None = None,
        takes: str = "",
    ) -> PaperFigure:
        """A figure; see ``PaperFigure``.

        Args:
            name: Its name, without that of the paper.
            summary: A line that says what it shows.
            statement: The experiment by its subject, for citations.
            published: Description of the published figure, or that there is none.
            sizes: Settings by size; see ``by_size``.
            compute: Makes the labeled data.
            draw: Draws them.
            readings: Its conclusion, with the numbers that the caption names.
            caption: A template over these; see ``Caption``.
            artifact: The artifact that ``as_published`` adds, or None.
            takes: Kind of the user's data that it can be drawn from; empty where of none.
        """
        return PaperFigure(
            name=f"{self.folder or self.paper.name}/{name}",
            paper=self.paper,
            statement=statement,
            summary=summary,
            published=published,
            sizes=sizes,
            compute=compute,
            draw=draw,
            caption=Caption(caption, readings, artifact),
            readings=readings,
            artifact="" if artifact is None else artifact.summary,
            takes=takes,
        )

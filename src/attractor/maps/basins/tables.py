"""The common part of studies of basins: how they print, and the table of selections."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
from rich.console import Console
from rich.table import Table

from attractor.maps.basins.attractors import SATURATED
from attractor.results import Plotted, Printed, load_data, plain_table

if TYPE_CHECKING:
    import xarray as xr

LISTED = 12
"""Selections that a table lists before it adds up the rest."""
_NAMED = 3
"""Selections named of which it is not decided that they are kept."""


@dataclass(frozen=True, eq=False, repr=False)
class BasinStudy(Plotted, Printed):
    """Starts, and the selections that training from them settled on.

    Attributes:
        kind: What files call it.
        drawn_by: The function of ``attractor.plots`` that draws it.
        data: Labeled arrays.
    """

    _plots = "attractor.maps.plots"

    width: ClassVar[int] = 80
    kind: ClassVar[str]
    drawn_by: ClassVar[str]
    data: xr.Dataset

    @abstractmethod
    def table(self) -> Table:
        """The selections, with the share of starts that settled on each."""

    def to_xarray(self) -> xr.Dataset:
        """The labeled arrays."""
        return self.data.copy()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a NetCDF file that ``save`` wrote.

        Raises:
            FileFormatError: If it is none.
        """
        return cls(load_data(path, cls.kind))

    def _picture(self) -> tuple[str, xr.Dataset]:
        return self.drawn_by, self.data

    def _print(self, console: Console) -> None:
        console.print(self.table())
        for sentence in _words_about(self.data):
            console.print(sentence, highlight=False, markup=False)


class Line(NamedTuple):
    """One line of the table.

    Attributes:
        name: Name of the selection, or of what the others have in common.
        cells: Numbers beside it.
        position: Position of the selection in the data; None for none.
    """

    name: str
    cells: Sequence[str]
    position: int | None = None


def selection_table(
    title: str, columns: Sequence[str], lines: Sequence[Line], data: xr.Dataset
) -> Table:
    """Lines of numbers, with what is known of each selection behind them.

    Args:
        title: The title above.
        columns: Names of the cells.
        lines: The lines, in order.
        data: ``solution_norm`` and, where known, ``locally_optimal`` and ``globally_optimal`` of
            every selection.
    """
    table = plain_table(title)
    table.add_column("tokens", overflow="ellipsis", no_wrap=True)
    for name in (*columns, "norm"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("optimal", no_wrap=True)
    for line in lines:
        known = ("", "")
        if line.position is not None:
            norm = float(data["solution_norm"][line.position])
            known = (f"{norm:.4g}", optimality(data, line.position))
        table.add_row(line.name, *line.cells, *known)
    return table


def optimality(data: xr.Dataset, position: int) -> str:
    """Whether a selection is globally or locally optimal, in a word."""
    if "locally_optimal" not in data:
        return "not known"
    if bool(data["globally_optimal"][position]):
        return "globally"
    return "locally" if bool(data["locally_optimal"][position]) else "no"


def by_count(count: np.ndarray) -> list[int]:
    """Positions of the selections, those reached most often first."""
    return [int(place) for place in np.argsort(-count, kind="stable")]


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"


def _words_about(data: xr.Dataset) -> list[str]:
    """Sentences below the table: the training, and the starts without a basin."""
    known = data.attrs
    words = [f"{known['optimizer']} on {known['parameterization']}, {known['loss']} loss"]
    if "interval" in known:
        words.append(f"starts: {known['distribution']}")
        words.append(f"{known['interval']} intervals, each by itself")
    return ["; ".join(words) + ".", *_undecided(data)]


def _undecided(data: xr.Dataset) -> list[str]:
    """Says what the starts without a basin attend to."""
    left = data["basin"].values.ravel() < 0
    if not left.any():
        return []
    attended = data["attended"].values.reshape(len(left), -1)
    saturated = left & (data["smallest_weight"].values.ravel() > SATURATED)
    chosen, count = np.unique(attended[saturated], axis=0, return_counts=True)
    parts = [
        f"{count[place]} attend to {','.join(map(str, chosen[place]))} but may still leave"
        for place in by_count(count)[:_NAMED]
    ]
    rest = int(saturated.sum()) - int(np.sort(count)[::-1][:_NAMED].sum())
    parts += [f"{rest} to other tokens"] if rest else []
    several = int(left.sum() - saturated.sum())
    several_words = f"{several} have no token with {100 * SATURATED:g} % in some row"
    parts += [several_words] if several else []
    most = f"after {data.attrs['most_steps']:,} steps at most"
    return [f"Not settled {most}: {'; '.join(parts)}."]

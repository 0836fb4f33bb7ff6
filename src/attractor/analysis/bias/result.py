"""``BiasMatrix``: the margin ratios of every optimizer in every norm."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.console import Console
from rich.table import Table

from attractor.analysis.bias.answer import (
    ENOUGH,
    NormAnswer,
    answer,
)
from attractor.analysis.bias.medians import MedianInterval, median_interval
from attractor.checks import check_choice, check_path
from attractor.containers import read_netcdf
from attractor.errors import FileFormatError, InvalidInputError, TrialStatus
from attractor.records import Plotted, Printed, finite_or_none, plain_table
from attractor.storage import save_netcdf, write_file

if TYPE_CHECKING:
    import xarray as xr

_LINES = ("margin_ratio", "margin_ratio_halfway", "gap")
_OF_RUN = ("status", "movement")
_LONGEST_NAME, _CELL, _BETWEEN = 30, 6, 2
"""Characters of a name before it is broken, of a ratio, and between the columns of a table."""


@dataclass(frozen=True, eq=False, repr=False)
class BiasMatrix(Plotted, Printed):
    """Margin ratios of every method in every norm, over data sets.

    Attributes:
        data: Labeled numbers. Over (optimizer, norm, instance): ``margin_ratio`` at the last step,
            ``margin_ratio_halfway``, and ``gap``, the certified gap of the solution it is relative
            to. Over (optimizer, norm, instance, record): ``margin_ratio_curve``, at the ``step`` of
            (optimizer, record). Over (optimizer, instance): ``status``, ``trained``, ``W`` at the
            last step, ``movement``, its relative change over the second half of the run,
            ``displacement``, its change in units of its size at the start, ``loss_rise``, that of
            the loss in units of it at the start, ``smallest_margin`` at the last step; with a
            record ``norm_of_W``, in the own norm, or Frobenius where none is known. Over optimizer:
            ``own_norm``, empty where none is known, ``steps``, ``parameterization``, ``settings``,
            ``reads``, ``step_size``, NaN where it is not known, ``decay``, the power of the step
            that it falls with, and ``setting_of``, the row that this one is at another step size,
            empty for none. ``reached``: the token that each row
            attends to at the end, -1 for several.
    """

    width: ClassVar[int] = 80
    data: xr.Dataset

    @property
    def methods(self) -> list[str]:
        """Names of the rows."""
        return [str(name) for name in self.data["optimizer"].values]

    @property
    def columns(self) -> list[str]:
        """The norms requested."""
        return [str(name) for name in self.data["norm"].values[self.data["compared"].values]]

    def compared(self, method: str) -> list[str]:
        """The norms a method is compared in: the columns, and its own."""
        own, columns = self.own_norm(method), self.columns
        return columns if own in (*columns, "") else [*columns, own]

    def own_norm(self, method: str) -> str:
        """The norm a method is known to descend; empty if none is."""
        check_choice("method", method, self.methods)
        return str(self.data["own_norm"].sel(optimizer=method).item())

    def ratio(self, method: str, norm: str) -> MedianInterval:
        """Median margin ratio over data sets, with its 95 % order-statistic interval."""
        check_choice("method", method, self.methods)
        check_choice("norm", norm, map(str, self.data["norm"].values))
        return median_interval(self.data["margin_ratio"].sel(optimizer=method, norm=norm).values)

    def enough(self, method: str) -> int | None:
        """Number of data sets whose ratio in the method's own norm is 0.97 or more."""
        own = self.own_norm(method)
        if not own:
            return None
        ratios = self.data["margin_ratio"].sel(optimizer=method, norm=own).values
        return int((ratios >= ENOUGH).sum())

    def highest(self, method: str) -> dict[str, int]:
        """In how many data sets each norm has the highest ratio of those compared."""
        names = self.compared(method)
        ratios = self.data["margin_ratio"].sel(optimizer=method, norm=names).transpose("norm", ...)
        known = ratios.values[:, np.isfinite(ratios.values).all(0)]
        winners = known.argmax(0)
        return {name: int((winners == place).sum()) for place, name in enumerate(names)}

    def answer(self, method: str) -> NormAnswer:
        """The norm whose margin a method maximizes, or that it is not settled."""
        return answer(self.data.sel(optimizer=method, norm=self.compared(method)))

    @property
    def same_selection(self) -> int:
        """Number of data sets in which all methods ended on the same tokens."""
        reached = self.data["reached"].transpose("optimizer", "instance", ...).values
        same = (reached == reached[:1]).all(0)
        return int(same.reshape(len(same), -1).all(1).sum())

    def summary(self) -> dict[str, Any]:
        """The matrix as plain numbers, for JSON."""
        rows = [self._summary_row(method) for method in self.methods]
        return {
            **{str(name): value for name, value in self.data.attrs.items()},
            "data_sets": self.data.sizes["instance"],
            "same_selection": self.same_selection,
            "largest_gap": finite_or_none(np.nanmax(self.data["gap"].values)),
            "optimizers": rows,
        }

    def table(self) -> Table:
        """Medians over data sets, the own norm of every optimizer marked."""
        return self._medians(self.columns)

    def _tables(self, width: int) -> list[Table]:
        """The same in tables below each other, each of as many columns as a line holds."""
        blocks = column_blocks(self.columns, self.methods, width)
        return [self._medians(block, titled=block is blocks[0]) for block in blocks]

    def _medians(self, columns: Sequence[str], titled: bool = True) -> Table:
        title = f"Median margin ratio over {self.data.sizes['instance']} data sets; * its own norm"
        table = _empty_table(title if titled else None)
        for name in columns:
            table.add_column(name, justify="right", no_wrap=True)
        for method in self.methods:
            medians = {name: self.ratio(method, name).median for name in columns}
            own = self.own_norm(method)
            cells = [f"{value:.3f}{'*' if n == own else ' '}" for n, value in medians.items()]
            table.add_row(method, *cells)
        return table

    def answers_table(self) -> Table:
        """The best norm of every optimizer, and whether it may be quoted."""
        table = _empty_table("The norm with the highest median; 95 % intervals of the median")
        table.add_column("norm", no_wrap=True)
        table.add_column("margin ratio", no_wrap=True)
        table.add_column("highest", justify="right", no_wrap=True)
        table.add_column("answer", no_wrap=True)
        for method in self.methods:
            best = self.best(method)
            found, answered = self.ratio(method, best), self.answer(method)
            table.add_row(
                method,
                f"{best}{'*' if best == self.own_norm(method) else ''}",
                f"{found.median:.4f} [{found.low:.4f}, {found.high:.4f}]",
                f"{self.highest(method)[best]} of {self.data.sizes['instance']}",
                answered.outcome if answered.norm else answered.verdict,
            )
        return table

    def best(self, method: str) -> str:
        """The norm with the highest median ratio, of those compared."""
        return max(self.compared(method), key=lambda norm: _or_least(self.ratio(method, norm)))

    def to_xarray(self) -> xr.Dataset:
        """The labeled numbers."""
        return self.data.copy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file by its ending: ``.nc`` everything, ``.csv`` lines, ``.json`` the summary.

        Raises:
            InvalidInputError: If the ending is none of these.
        """
        path = check_path("path", path)
        ending = Path(path).suffix
        if ending not in (".nc", ".csv", ".json"):
            raise InvalidInputError(
                "path", f"{os.fspath(path)} ends in {ending!r}", "Give .nc, .csv or .json"
            )
        if ending == ".nc":
            save_netcdf(self.data, path)
        elif ending == ".csv":
            write_file(path, self._lines().to_csv(index=False))
        else:
            write_file(path, json.dumps(self.summary(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BiasMatrix:
        """Reads a NetCDF file that ``save`` wrote.

        Raises:
            FileFormatError: If it is none.
        """
        data = read_netcdf(check_path("path", path))
        if "margin_ratio_curve" not in data or "own_norm" not in data:
            raise FileFormatError(f"{os.fspath(path)} holds no bias matrix.")
        return cls(data)

    def _picture(self) -> tuple[str, BiasMatrix]:
        return ("ratio_curves_figure" if len(self.methods) == 1 else "bias_matrix_figure"), self

    def _print(self, console: Console) -> None:
        for table in (*self._tables(console.width), self.answers_table()):
            console.print(table)
        for method in self.methods:
            console.print(f"{method}: {self.answer(method)}", highlight=False, markup=False)

    def _summary_row(self, method: str) -> dict[str, Any]:
        row = self.data.sel(optimizer=method)
        statuses, found = row["status"].values, self.answer(method)
        own = self.own_norm(method)
        ratios = {name: self.ratio(method, name) for name in map(str, row["norm"].values)}
        counts = {str(s): int((statuses == s).sum()) for s in TrialStatus if (statuses == s).any()}
        return {
            "optimizer": method,
            "own_norm": own or None,
            "parameterization": str(row["parameterization"].item()),
            "settings": str(row["settings"].item()),
            "reads": str(row["reads"].item()),
            "steps": int(row["steps"]),
            "margin_ratio": {
                name: {end: finite_or_none(value) for end, value in ratio._asdict().items()}
                for name, ratio in ratios.items()
            },
            "at_least_0.97_in_own_norm": self.enough(method),
            "highest": self.highest(method),
            "answer": {**asdict(found), "norm": found.norm or None},
            "status": counts,
            "final_norm": finite_or_none(np.nanmedian(row["norm_of_W"].values[:, -1])),
        }

    def _lines(self) -> Any:
        """One line for every method, norm and data set."""
        flat = self.data[[*_LINES, *_OF_RUN, "own_norm", "steps"]]
        flat = flat.assign(final_norm=self.data["norm_of_W"].isel(record=-1))
        frame = flat.to_dataframe(dim_order=["optimizer", "norm", "instance"]).reset_index()
        frame["status"] = [str(TrialStatus(status)) for status in frame["status"]]
        return frame


def column_blocks(columns: Sequence[str], methods: Sequence[str], width: int) -> list[list[str]]:
    """Columns of ratios, in blocks of as many as a line holds beside the names of optimizers."""
    room = width - min(max(map(len, ("optimizer", *methods))), _LONGEST_NAME)
    blocks: list[list[str]] = []
    left = 0
    for name in columns:
        taken = max(len(name), _CELL) + _BETWEEN
        if not blocks or taken > left:
            blocks.append([])
            left = room
        blocks[-1].append(name)
        left -= taken
    return blocks


def _empty_table(title: str | None) -> Table:
    table = plain_table(title)
    table.add_column("optimizer", overflow="fold")
    return table


def _or_least(found: MedianInterval) -> float:
    return -math.inf if math.isnan(found.median) else found.median

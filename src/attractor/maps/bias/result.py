"""``BiasMatrix``: margin ratios of every optimizer in every norm, and its runs that are done."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from attractor.maps.bias.answer import (
    ENOUGH,
    MedianInterval,
    NormAnswer,
    answer,
    median_interval,
    or_least,
)
from attractor.maps.bias.best_setting import Cell, answer_over, best_cell, setting_of
from attractor.results import Plotted, Printed, finite_or_none, load_data, plain_table, save_data
from attractor.support.checks import check_choice, check_path
from attractor.support.containers import read_netcdf
from attractor.support.errors import FileFormatError, InvalidInputError, TrialStatus
from attractor.support.storage import save_netcdf, write_file
from attractor.training.own.method import Method

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from attractor.training import Trajectory


_LINES = ("margin_ratio", "margin_ratio_halfway", "gap")
_OF_RUN = ("status", "movement")
_LONGEST_NAME, _CELL, _BETWEEN = 30, 7, 2
"""Characters of a name before it is broken, of a ratio, and between the columns of a table."""


@dataclass(frozen=True, eq=False, repr=False)
class BiasMatrix(Plotted, Printed):
    """Margin ratios of every optimizer in every norm, over data sets.

    An optimizer is one row, or has one for each setting: a step size, and the power of the step
    that it falls with. What it reaches in a norm is that of the best of them.

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
            that it falls with, and ``setting_of``, the optimizer that the row is a setting of,
            empty where it is the only one. ``reached``: the token that each row
            attends to at the end, -1 for several.
    """

    _plots = "attractor.maps.plots"

    width: ClassVar[int] = 80
    data: xr.Dataset

    @functools.cached_property
    def _rows(self) -> dict[str, list[str]]:
        """The rows of each optimizer."""
        rows = [str(name) for name in self.data["optimizer"].values]
        of = self.data["setting_of"].values if "setting_of" in self.data else [""] * len(rows)
        found: dict[str, list[str]] = {}
        for row, method in zip(rows, of, strict=True):
            found.setdefault(str(method) or row, []).append(row)
        return found

    @property
    def methods(self) -> list[str]:
        """Names of the optimizers."""
        return list(self._rows)

    @property
    def tuned(self) -> bool:
        """Whether rows are settings that were tried, so that answers are over all of them."""
        return "setting_of" in self.data and bool((self.data["setting_of"].values != "").any())

    @property
    def columns(self) -> list[str]:
        """The norms requested."""
        return [str(name) for name in self.data["norm"].values[self.data["compared"].values]]

    def rows(self, method: str) -> list[str]:
        """The rows of an optimizer, one for each setting."""
        check_choice("method", method, self.methods)
        return [*self._rows[method]]

    def setting(self, row: str) -> str:
        """The step size and decay of a row, in words; empty where they are not known."""
        return setting_of(self._run(row))

    def own_norm(self, method: str) -> str:
        """The norm an optimizer is known to descend; empty if none is."""
        return self._own_norm(self.rows(method)[0])

    def compared(self, method: str) -> list[str]:
        """The norms an optimizer is compared in: the columns, and its own."""
        return self._compared(self.rows(method)[0])

    def ratio(self, row: str, norm: str) -> MedianInterval:
        """Median margin ratio of a row over data sets, with its 95 % order-statistic interval."""
        run = self._run(row)
        check_choice("norm", norm, map(str, self.data["norm"].values))
        return median_interval(run["margin_ratio"].sel(norm=norm).values)

    def enough(self, row: str) -> int | None:
        """Number of data sets whose ratio in the row's own norm is 0.97 or more."""
        run, own = self._run(row), self._own_norm(row)
        return int((run["margin_ratio"].sel(norm=own).values >= ENOUGH).sum()) if own else None

    def highest(self, row: str) -> dict[str, int]:
        """In how many data sets each norm has the highest ratio of those compared."""
        run, names = self._run(row), self._compared(row)
        ratios = run["margin_ratio"].sel(norm=names).transpose("norm", ...).values
        winners = ratios[:, np.isfinite(ratios).all(0)].argmax(0)
        return {name: int((winners == place).sum()) for place, name in enumerate(names)}

    def cell(self, method: str, norm: str) -> Cell:
        """What an optimizer reaches in a norm at the best setting tried.

        It is settled if the answer at the best setting is that it maximizes this margin; or if, at
        every setting that may be the best one, the ratio has come to stand and attention is
        saturated (the rules of ``attractor.maps.bias.answer.answer``), and the best setting is
        not the first or the last of several with its decay.
        """
        check_choice("norm", norm, map(str, self.data["norm"].values))
        check_choice("method", method, self.methods)
        return self._cells[method][norm]

    @functools.cached_property
    def _cells(self) -> dict[str, dict[str, Cell]]:
        found = {}
        for method in self.methods:
            runs, answers = self.data.sel(optimizer=self.rows(method)), self.answers(method)
            norms = map(str, self.data["norm"].values)
            found[method] = {norm: best_cell(runs, norm, answers) for norm in norms}
        return found

    def best(self, method: str) -> Cell:
        """The cell with the highest median, of the norms that an optimizer is compared in."""
        cells = [self.cell(method, norm) for norm in self.compared(method)]
        return max(cells, key=lambda cell: or_least(cell.median))

    def answers(self, method: str) -> dict[str, NormAnswer]:
        """The answer at every setting, with a joint confidence of 95 %."""
        check_choice("method", method, self.methods)
        return self._answers[method]

    @functools.cached_property
    def _answers(self) -> dict[str, dict[str, NormAnswer]]:
        return {
            method: {row: self._answer_at(row, len(rows)) for row in rows}
            for method, rows in self._rows.items()
        }

    def answer_at(self, row: str) -> NormAnswer:
        """The answer at one setting, of a confidence of its own."""
        return self._answer_at(row)

    def _answer_at(self, row: str, questions: int = 1) -> NormAnswer:
        return answer(self._run(row).sel(norm=self._compared(row)), questions)

    def answer(self, method: str) -> NormAnswer:
        """The norm whose margin an optimizer maximizes, or that it is not settled."""
        answers = self.answers(method)
        if not self.tuned:
            return answers[method]
        runs = self.data.sel(optimizer=self.rows(method), norm=self.compared(method))
        return answer_over(runs, self._cells[method], self.best(method), answers)

    def _run(self, row: str) -> xr.Dataset:
        check_choice("row", row, map(str, self.data["optimizer"].values))
        return self.data.sel(optimizer=row)

    def _own_norm(self, row: str) -> str:
        return str(self._run(row)["own_norm"].item())

    def _compared(self, row: str) -> list[str]:
        own, columns = self._own_norm(row), self.columns
        return columns if own in (*columns, "") else [*columns, own]

    @property
    def same_selection(self) -> int:
        """Number of data sets in which all methods ended on the same tokens."""
        reached = self.data["reached"].transpose("optimizer", "instance", ...).values
        same = (reached == reached[:1]).all(0)
        return int(same.reshape(len(same), -1).all(1).sum())

    def summary(self) -> dict[str, Any]:
        """The matrix as plain numbers, for JSON; of several settings, those of each besides."""
        found: dict[str, Any] = {
            "optimizers": [self._summary_row(str(row)) for row in self.data["optimizer"].values]
        }
        if self.tuned:
            over = [self._summary_over(method) for method in self.methods]
            found = {"settings": found["optimizers"], "optimizers": over}
        return {
            **{str(name): value for name, value in self.data.attrs.items()},
            "data_sets": self.data.sizes["instance"],
            "same_selection": self.same_selection,
            "largest_gap": finite_or_none(np.nanmax(self.data["gap"].values)),
            **found,
        }

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
        alone = self.data.sizes["optimizer"] == 1
        return ("ratio_curves_figure" if alone else "bias_matrix_figure"), self

    def _print(self, console: Console) -> None:
        for place, columns in enumerate(_blocks(self.columns, self.methods, console.width)):
            console.print(self._medians_table(columns, titled=not place))
        console.print(self._answers_table())
        for method in self.methods:
            console.print(f"{method}: {self.answer(method)}", highlight=False, markup=False)

    def _medians_table(self, columns: Sequence[str], titled: bool) -> Table:
        """Medians over data sets, the own norm of every optimizer marked."""
        count, at = self.data.sizes["instance"], ", at the best step" if self.tuned else ""
        title = f"Median margin ratio over {count} data sets{at}; * its own norm, ? not settled"
        table = _empty_table(title if titled else None)
        for name in columns:
            table.add_column(name, justify="right", no_wrap=True)
        for method in self.methods:
            own, cells = self.own_norm(method), [self.cell(method, name) for name in columns]
            marks = [f"{'*' if c.norm == own else ' '}{' ' if c.settled else '?'}" for c in cells]
            texts = [f"{c.median:.3f}{mark}" for c, mark in zip(cells, marks, strict=True)]
            table.add_row(method, *texts)
        return table

    def _answers_table(self) -> Table:
        """The best norm of every optimizer, and whether it may be quoted."""
        joint = ", joint over the steps" if self.tuned else " of the median"
        table = _empty_table(f"The norm with the highest median; 95 % intervals{joint}")
        where, digits = ("step", 3) if self.tuned else ("highest", 4)
        for name in ("norm", "margin ratio", where, "answer"):
            table.add_column(name, no_wrap=name != "answer", overflow="fold")
        for method in self.methods:
            best, found = self.best(method), self.answer(method)
            of = f"{self.highest(best.row)[best.norm]} of {self.data.sizes['instance']}"
            table.add_row(
                method,
                f"{best.norm}{'*' if best.norm == self.own_norm(method) else ''}",
                f"{best.median:.{digits}f} [{best.low:.{digits}f}, {best.high:.{digits}f}]",
                (best.setting or "-") if self.tuned else of,
                found.outcome if found.norm else found.verdict,
            )
        return table

    def _summary_row(self, name: str) -> dict[str, Any]:
        row, found = self._run(name), self._answer_at(name)
        statuses = row["status"].values
        ratios = {norm: self.ratio(name, norm) for norm in map(str, row["norm"].values)}
        counts = {str(s): int((statuses == s).sum()) for s in TrialStatus if (statuses == s).any()}
        return {
            "optimizer": name,
            "own_norm": self._own_norm(name) or None,
            "parameterization": str(row["parameterization"].item()),
            "settings": str(row["settings"].item()),
            "reads": str(row["reads"].item()),
            "steps": int(row["steps"]),
            "margin_ratio": {norm: _interval(ratio) for norm, ratio in ratios.items()},
            "at_least_0.97_in_own_norm": self.enough(name),
            "highest": self.highest(name),
            "answer": {**asdict(found), "norm": found.norm or None},
            "status": counts,
            "final_norm": finite_or_none(np.nanmedian(row["norm_of_W"].values[:, -1])),
        }

    def _summary_over(self, method: str) -> dict[str, Any]:
        found, cells = self.answer(method), [self.cell(method, norm) for norm in self.columns]
        return {
            "optimizer": method,
            "own_norm": self.own_norm(method) or None,
            "settings": [self.setting(row) or row for row in self.rows(method)],
            "margin_ratio": {
                cell.norm: {
                    "setting": cell.setting or None,
                    **_interval(cell),
                    "settled": cell.settled,
                    "open": cell.open or None,
                }
                for cell in cells
            },
            "answer": {**asdict(found), "norm": found.norm or None},
        }

    def _lines(self) -> Any:
        """One line for every method, norm and data set."""
        flat = self.data[[*_LINES, *_OF_RUN, "own_norm", "steps"]]
        flat = flat.assign(final_norm=self.data["norm_of_W"].isel(record=-1))
        frame = flat.to_dataframe(dim_order=["optimizer", "norm", "instance"]).reset_index()
        frame["status"] = [str(TrialStatus(status)) for status in frame["status"]]
        return frame


def _blocks(columns: Sequence[str], methods: Sequence[str], width: int) -> list[list[str]]:
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


def _interval(found: MedianInterval | Cell) -> dict[str, float | None]:
    return {end: finite_or_none(getattr(found, end)) for end in ("median", "low", "high")}


_KIND = "run of a bias matrix"
_MEASURED = ["W", "norm", "loss", "log_gradient_norm", "status"]


class FinishedRun(NamedTuple):
    """What a matrix takes of a run.

    Attributes:
        data: Labeled arrays, as in ``Trajectory``.
        steps: The steps recorded.
    """

    data: xr.Dataset
    steps: np.ndarray


@dataclass
class FinishedRuns:
    """The runs that are done, a file each; of none where there is no folder.

    Attributes:
        folder: Where they are kept; None keeps nothing.
        runs: Those of this call with their rows, in the order in which they were done.
        measure: Makes a matrix of rows and their runs.
    """

    folder: Path | None = None
    runs: list[tuple[Method, FinishedRun]] = field(default_factory=list)
    measure: Callable[[list[Method], list[FinishedRun]], BiasMatrix] | None = None

    def run(self, method: Method, steps: int, train: Callable[[], Trajectory]) -> FinishedRun:
        """The run of a row: from its file, or trained now and kept.

        Args:
            method: The row.
            steps: Its number of steps.
            train: Trains it.

        Raises:
            FileFormatError: If its file is damaged.
            WriteError: If it cannot be written.
        """
        file = None if self.folder is None else self.folder / f"{_digest(method, steps)}.nc"
        if file is not None and file.exists():
            data = load_data(file, _KIND)
        else:
            data = train().data[_MEASURED]
            if file is not None:
                save_data(data, file, _KIND)
        run = FinishedRun(data, data["step"].to_numpy())
        self.runs.append((method, run))
        return run

    def matrix(self) -> BiasMatrix | None:
        """The matrix of the rows that are done; None where there are none."""
        by_name = {method.name: (method, run) for method, run in self.runs}
        if not by_name or self.measure is None:
            return None
        return self.measure(*map(list, zip(*by_name.values(), strict=True)))


def _digest(method: Method, steps: int) -> str:
    """Names a row by all that tells it from the others of one command."""
    told = (
        method.name, method.layer.name, method.settings, method.step_size, method.decay, steps,
    )  # fmt: skip
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]

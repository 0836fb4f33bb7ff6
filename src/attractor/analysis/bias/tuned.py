"""``TunedMatrix``: what each optimizer reaches in every norm at the best step size tried."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.console import Console
from rich.table import Table

from attractor.analysis.bias.answer import (
    ENOUGH,
    MAXIMIZES,
    NONE,
    NOT_SETTLED,
    SATURATED,
    NormAnswer,
    answer,
    at_tiny_gradients,
    still_moving,
)
from attractor.analysis.bias.medians import joint_confidence, median_interval, smallest_sample
from attractor.analysis.bias.result import BiasMatrix, column_blocks
from attractor.checks import check_choice
from attractor.records import Described, Plotted, Printed, Rows, finite_or_none, plain_table

if TYPE_CHECKING:
    import xarray as xr

DEPENDS = "depends on the step"
_MOST_STOPPED = 0.25


@dataclass(frozen=True)
class Cell:
    """What an optimizer reaches in a norm at the best setting tried.

    Attributes:
        norm: Name of the norm.
        row: The setting with the highest median ratio, as a row of the runs.
        setting: Its step size and decay, in words; empty where there is one setting alone.
        median: That median.
        low: Lower end of an interval for the best median of all settings.
        high: Its upper end. With 95 % confidence the true medians of all settings lie in intervals
            of their own, all at once, and so does the largest of them in this one.
        open: Why it is not settled, in words; empty where it is.
    """

    norm: str
    row: str
    setting: str
    median: float
    low: float
    high: float
    open: str

    @property
    def settled(self) -> bool:
        """Whether neither more steps nor other ones are likely to change it."""
        return not self.open

    def __str__(self) -> str:
        at = f", at {self.setting}" if self.setting else ""
        rest = f"; {self.open}" if self.open else ""
        return f"{self.median:.4f} [{self.low:.4f}, {self.high:.4f}] in {self.norm}{at}{rest}"


@dataclass(frozen=True)
class TunedAnswer(Described):
    """The norm whose margin an optimizer maximizes, and at which settings.

    Attributes:
        outcome: ``"maximizes"``, ``"depends on the step"``, ``"not settled"`` or
            ``"none of these"``.
        norm: Name of the norm; empty unless the outcome is ``"maximizes"``.
        settings: By norm, the settings at which its margin is maximized.
        reason: Why, in a sentence with its numbers.
        data_sets: How many the answer is from.
        remedy: What to try next; empty where there is nothing to try.
        enough_data_sets: As many data sets may bring another answer; 0 where they are not too few.
    """

    outcome: str
    norm: str
    settings: dict[str, list[str]]
    reason: str
    data_sets: int
    remedy: str = ""
    enough_data_sets: int = 0

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}{f'. {self.remedy}' if self.remedy else ''}"

    @property
    def verdict(self) -> str:
        """The outcome with the norm, if it is one, in words."""
        return f"maximizes the {self.norm} margin" if self.norm else self.outcome

    def _summary(self) -> tuple[str, Rows]:
        rows = [("because", self.reason), ("data sets", f"{self.data_sets:,}")]
        return self.verdict.capitalize(), rows + ([("next", self.remedy)] if self.remedy else [])


@dataclass(frozen=True, eq=False, repr=False)
class TunedMatrix(Plotted, Printed):
    """Margin ratios of every method in every norm, at the best step size and decay tried.

    Attributes:
        runs: The matrix with a row for each setting.
    """

    width: ClassVar[int] = 80
    runs: BiasMatrix

    @property
    def data(self) -> xr.Dataset:
        """The labeled numbers of all settings."""
        return self.runs.data

    @property
    def methods(self) -> list[str]:
        """Names of the optimizers."""
        return list(dict.fromkeys(self.data["setting_of"].values.tolist()))

    @property
    def columns(self) -> list[str]:
        """The norms requested."""
        return self.runs.columns

    def rows(self, method: str) -> list[str]:
        """The settings of an optimizer, as rows of the runs."""
        check_choice("method", method, self.methods)
        chosen = self.data["setting_of"].values == method
        return [str(name) for name in self.data["optimizer"].values[chosen]]

    def setting(self, row: str) -> str:
        """The step size and decay of a row, in words; empty where it has none."""
        check_choice("row", row, self.runs.methods)
        size, decay = (self.data[name].sel(optimizer=row).item() for name in ("step_size", "decay"))
        if math.isnan(size):
            return ""
        return setting_text(size, decay)

    def own_norm(self, method: str) -> str:
        """The norm an optimizer is known to descend; empty if none is."""
        return self.runs.own_norm(self.rows(method)[0])

    def cell(self, method: str, norm: str) -> Cell:
        """What an optimizer reaches in a norm at the best setting tried.

        It is settled if the answer at the best setting is that it maximizes this margin; or if, at
        every setting that may be the best one, the ratio has come to stand and attention is
        saturated (the rules of ``attractor.analysis.bias.answer.answer``), and the best setting is
        not the first or the last of its decay.
        """
        check_choice("norm", norm, map(str, self.data["norm"].values))
        check_choice("method", method, self.methods)
        return self._cells[method][norm]

    @functools.cached_property
    def _cells(self) -> dict[str, dict[str, Cell]]:
        norms = [str(norm) for norm in self.data["norm"].values]
        return {
            method: {norm: self._cell(method, norm) for norm in norms} for method in self.methods
        }

    def _cell(self, method: str, norm: str) -> Cell:
        rows = self.rows(method)
        sure = joint_confidence(len(rows))
        data = self.data["margin_ratio"].sel(norm=norm)
        found = {row: median_interval(data.sel(optimizer=row).values, sure) for row in rows}
        best = max(rows, key=lambda row: _or_least(found[row].median))
        low = max(one.low for one in found.values())
        high = max(one.high for one in found.values())
        near = [row for row in rows if found[row].high >= low]
        return Cell(
            norm,
            best,
            self.setting(best),
            found[best].median,
            low,
            high,
            self._open(method, norm, best, near, low),
        )

    def _open(self, method: str, norm: str, best: str, near: Sequence[str], low: float) -> str:
        """Why a cell is not settled."""
        if math.isinf(low):
            return f"{self.data.sizes['instance']} data sets are too few for an interval"
        if self.answers(method)[best].norm == norm:
            return ""
        for row in [best, *(one for one in near if one != best)]:
            at = f"at {self.setting(row)} " if row != best else ""
            data = self.data.sel(optimizer=row, norm=norm)
            finite = np.isfinite(data["margin_ratio"].values)
            usable = data["trained"].values & finite
            if usable.sum() < (1 - _MOST_STOPPED) * usable.size:
                if row != best:
                    continue
                return f"{at}{usable.size - usable.sum()} of {usable.size} runs ended early"
            end, before = (
                data[name].values[None, usable] for name in ("margin_ratio", "margin_ratio_halfway")
            )
            changes = [median_interval(end[0] - before[0], 0.95)]
            movement = float(np.median(data["movement"].values[usable]))
            if moving := still_moving([norm], end, changes, 0, movement):
                return f"{at}{moving}"
            margin = float(np.median(data["smallest_margin"].values[usable]))
            if margin < SATURATED:
                return f"{at}attention is not saturated: its smallest margin is {margin:.2g}"
        end_of = self._at_an_end(method, best)
        return f"the best step is the {end_of} that was tried" if end_of else ""

    def _at_an_end(self, method: str, row: str) -> str:
        """Whether a setting is the first or the last of its decay, in words; empty if neither."""
        every = self.data.sel(optimizer=self.rows(method))
        decay, size = (self.data[name].sel(optimizer=row).item() for name in ("decay", "step_size"))
        sizes = every["step_size"].values[every["decay"].values == decay]
        if len(self.rows(method)) == 1 or math.isnan(size):
            return ""
        return "smallest" if size == sizes.min() else "largest" if size == sizes.max() else ""

    def best(self, method: str) -> Cell:
        """The cell with the highest median, of the norms that an optimizer is compared in."""
        names = self.runs.compared(self.rows(method)[0])
        cells = [self.cell(method, norm) for norm in names]
        return max(cells, key=lambda cell: _or_least(cell.median))

    def answers(self, method: str) -> dict[str, NormAnswer]:
        """The answer at every setting, with a joint confidence of 95 %."""
        check_choice("method", method, self.methods)
        return self._answers[method]

    @functools.cached_property
    def _answers(self) -> dict[str, dict[str, NormAnswer]]:
        found = {}
        for method in self.methods:
            rows = self.rows(method)
            names = self.runs.compared(rows[0])
            found[method] = {
                row: answer(self.data.sel(optimizer=row, norm=names), questions=len(rows))
                for row in rows
            }
        return found

    def answer(self, method: str) -> TunedAnswer:
        """The norm whose margin an optimizer maximizes at some setting, or that none is settled."""
        answers = self.answers(method)
        best = self.best(method)
        found = self._answer(method, answers, best)
        said, remedy = at_tiny_gradients(self.data.sel(optimizer=best.row))
        if not said:
            return found
        if found.outcome != MAXIMIZES:
            found = replace(found, remedy=remedy, enough_data_sets=0)
        if said in found.reason:  # as the answer at the best setting has it
            return found
        return replace(found, reason=f"{found.reason}; {said}")

    def _answer(self, method: str, answers: dict[str, NormAnswer], best: Cell) -> TunedAnswer:
        settings: dict[str, list[str]] = {}
        for row, found in answers.items():
            if found.outcome == MAXIMIZES:
                settings.setdefault(found.norm, []).append(self.setting(row) or row)
        count = self.data.sizes["instance"]
        tried = f"of {len(answers)} settings the best" if len(answers) > 1 else "the"
        if len(settings) == 1:
            ((norm, where),) = settings.items()
            cell = self.cell(method, norm)
            at = f", at {len(where)} of {len(answers)} settings: {', '.join(where)}"
            at = at if len(answers) > 1 else ""
            reason = f"the median ratio is {cell.median:.4f} [{cell.low:.4f}, {cell.high:.4f}]{at}"
            if against := self._stops_short(answers):
                reason = f"{norm}: {reason}; but it stops short of one at {', '.join(against)}"
                return TunedAnswer(DEPENDS, "", settings, reason, count)
            return TunedAnswer(MAXIMIZES, norm, settings, reason, count)
        if settings:
            reason = "; ".join(f"{norm} at {', '.join(at)}" for norm, at in settings.items())
            return TunedAnswer(DEPENDS, "", settings, f"it maximizes {reason}", count)
        reason = f"{tried} median ratio is {best}"
        at_best = answers[best.row]
        if at_best.outcome == NONE and (best.settled or best.median >= ENOUGH):
            reason = f"{reason}, below {ENOUGH}" if best.median < ENOUGH else at_best.reason
            return TunedAnswer(NONE, "", {}, reason, count, at_best.remedy)
        joint = joint_confidence(len(answers) * max(len(self.runs.compared(best.row)) - 1, 1))
        if count < (enough := smallest_sample(joint)):
            remedy = f"Give {enough} data sets or more"
            return TunedAnswer(NOT_SETTLED, "", {}, reason, count, remedy, enough)
        return TunedAnswer(NOT_SETTLED, "", {}, reason, count, _remedy(best, answers))

    def _stops_short(self, answers: dict[str, NormAnswer]) -> list[str]:
        """Settings that stop short of one at smaller steps than some that do not.

        At larger steps they may, as these keep W from the flow.
        """
        decays, sizes = (
            self.data[name].sel(optimizer=list(answers)) for name in ("decay", "step_size")
        )
        reaching = np.array([found.outcome == MAXIMIZES for found in answers.values()])
        return [
            self.setting(row)
            for row, found in answers.items()
            if found.outcome == NONE
            and (
                reaching
                & (decays == decays.sel(optimizer=row))
                & (sizes > sizes.sel(optimizer=row))
            ).any()
        ]

    def summary(self) -> dict[str, Any]:
        """The matrix as plain numbers, for JSON."""
        whole = self.runs.summary()
        whole["settings"] = whole.pop("optimizers")
        return whole | {"optimizers": [self._summary_row(method) for method in self.methods]}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the runs by the ending of a file, as ``BiasMatrix.save``.

        Raises:
            InvalidInputError: If the ending is none that it knows.
        """
        self.runs.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TunedMatrix:
        """Reads a NetCDF file that ``save`` wrote.

        Raises:
            FileFormatError: If it is none.
        """
        return cls(BiasMatrix.load(path))

    def answers_table(self) -> Table:
        """The best norm of every optimizer at its best setting, and the answer."""
        table = plain_table("The best norm and step; 95 % intervals, joint over the settings")
        table.add_column("optimizer", overflow="fold")
        for name in ("norm", "margin ratio", "step", "answer"):
            table.add_column(name, no_wrap=name != "answer", overflow="fold")
        for method in self.methods:
            best, found = self.best(method), self.answer(method)
            table.add_row(
                method,
                f"{best.norm}{'*' if best.norm == self.own_norm(method) else ''}",
                f"{best.median:.3f} [{best.low:.3f}, {best.high:.3f}]",
                best.setting or "-",
                found.outcome,
            )
        return table

    def _print(self, console: Console) -> None:
        for block in column_blocks(self.columns, self.methods, console.width):
            console.print(self._medians(block, titled=block[0] == self.columns[0]))
        console.print(self.answers_table())
        for method in self.methods:
            console.print(f"{method}: {self.answer(method)}", highlight=False, markup=False)

    def _medians(self, columns: Sequence[str], *, titled: bool) -> Table:
        title = (
            f"Median margin ratio at the best step, {self.data.sizes['instance']} data sets; "
            "* own norm, ? not settled"
        )
        table = plain_table(title if titled else None)
        table.add_column("optimizer", overflow="fold")
        for name in columns:
            table.add_column(name, justify="right", no_wrap=True)
        for method in self.methods:
            own = self.own_norm(method)
            cells = [self.cell(method, name) for name in columns]
            table.add_row(
                method,
                *(
                    f"{cell.median:.3f}{'*' if cell.norm == own else ' '}"
                    f"{' ' if cell.settled else '?'}"
                    for cell in cells
                ),
            )
        return table

    def _picture(self) -> tuple[str, TunedMatrix]:
        return "tuned_matrix_figure", self

    def _summary_row(self, method: str) -> dict[str, Any]:
        found = self.answer(method)
        cells = [self.cell(method, norm) for norm in self.columns]
        return {
            "optimizer": method,
            "own_norm": self.own_norm(method) or None,
            "settings": [self.setting(row) or row for row in self.rows(method)],
            "margin_ratio": {
                cell.norm: {
                    "setting": cell.setting or None,
                    **{
                        end: finite_or_none(getattr(cell, end)) for end in ("median", "low", "high")
                    },
                    "settled": cell.settled,
                    "open": cell.open or None,
                }
                for cell in cells
            },
            "answer": {**asdict(found), "norm": found.norm or None},
        }


def setting_text(size: float, decay: float) -> str:
    """A step size with its decay, such as ``1.2 t^-0.5``."""
    digits = f"{size:.3g}" if size < 1000 else f"{size:.0f}"
    return f"{digits} t^-{decay:g}" if decay else digits


def _remedy(best: Cell, answers: dict[str, NormAnswer]) -> str:
    """What may settle it, at the best setting."""
    if best.open.endswith("that was tried"):
        return "Try steps beyond it, by --lr"
    at_best = answers[best.row]
    return at_best.remedy if at_best.outcome != NONE else "More steps may settle it"


def _or_least(value: float) -> float:
    return -math.inf if math.isnan(value) else value

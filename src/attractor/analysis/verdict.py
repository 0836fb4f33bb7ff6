"""The verdict: what training did, measured against what was predicted."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool
from rich.console import Console
from rich.table import Table

from attractor.analysis.outcomes import AT_REST, BESIDE, COMPARED
from attractor.analysis.rates import Rate, fit_rates
from attractor.margin import Solution
from attractor.results import Plotted, Printed
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.storage import write_file
from attractor.training import Trajectory

if TYPE_CHECKING:
    import xarray as xr

_ROUNDING = 1e-12
"""The rounding error of a margin ratio, beyond the gap of its solution."""
_LABELS = "labels, which the tokens of this run do not carry"
_HEAD = "a linear head that is trained beside attention"
_MOST_VARIANTS = 12
"""Combinations of hyperparameters that a table shows."""
_COLUMNS, _COLUMNS_OF_ONE = ("mean", "median", "5 %", "95 %"), ("value",)
_NUMBER = len("1 - 1.9e-4")
"""Characters of a column of numbers, which are not broken at 80 characters a line."""
_MEASURES = {
    "margin_ratio": "margin ratio",
    "correlation": "correlation",
    "label_margin_ratio": "label margin ratio",
    "label_correlation": "label correlation",
    "kkt_residual": "KKT residual",
    "selected_probability": "selected probability",
    "norm": "norm of W",
    "loss": "loss",
}


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Plotted, Printed):
    """Measures of every trial of a training run against the solution of a margin problem.

    Attributes:
        data: Labeled measures. Over (instance, seed, step), or what else the trajectory runs
            along: ``margin_ratio``, ``correlation``, ``directional_bregman_divergence``,
            ``kkt_residual``, ``selected_probability``,
            ``log_unselected_probability``, ``violated``, ``removed_norm``, ``norm``, ``loss``,
            ``log_time``, and where it follows from head and loss ``log_excess_loss``, the
            logarithm of the loss above that of the selected tokens. Over (instance, seed):
            ``feasible``, ``gap``, ``solution_norm``, ``status``, ``problem``, the kind of problem
            the trial is compared with, ``comparison``, the outcome of that, and where a selection
            is predicted ``selection_agreement`` and ``locally_optimal``. Where runs ended at a
            finite minimum of the loss, or beside one, and have no direction to compare:
            ``minimum``, the matrix, its ``minimum_norm``, ``minimum_distance`` and
            ``optimum_feasible``, whether a matrix selects the tokens of highest score. Over rows:
            ``reached``, ``predicted``. Where a linear head was trained: ``label_margin_ratio`` and
            ``label_correlation`` of the head with the solution of its label problem,
            ``label_separable``, ``label_gap``, ``label_support``, ``head_ratio``,
            ``critical_ratio`` and ``head_lags``. Of several attention heads these are measures of
            the one matrix that holds all of them, and of each by itself there are
            ``margin_ratio_by_head``, ``correlation_by_head``, ``norm_by_head`` and
            ``feasible_by_head``; rows have an axis of heads.
        solution: The solutions the trials are compared with.
        trajectory: The training run.
        reference: The same, in words.
        why: Why it is that problem; where nothing is predicted, what to do next.
        label: Solutions of the label problem, where a linear head was trained.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=1000)
        >>> verdict = at.verify(run)
        >>> verdict.data.correlation[:, 0, -1].values.round(2)
        array([1., 1.])
        >>> verdict.reference
        'the solution for the selection each trial reached'
    """

    width: ClassVar[int] = 80
    data: xr.Dataset
    solution: Solution
    trajectory: Trajectory
    reference: str
    why: str = ""
    label: Solution | None = None

    @property
    def axis(self) -> str:
        """The axis of the measures: that of the trajectory."""
        return self.trajectory.axis

    def sel(self, **values: float) -> Verdict:
        """The verdict of the trials with one value of a hyperparameter that had several.

        Args:
            values: Values that were trained with, by name: ``learning_rate=0.1``.

        Raises:
            InvalidInputError: If there was no such hyperparameter or value.
        """
        run = self.trajectory.sel(**values)
        return replace(self, data=self.data.sel(values, drop=True), trajectory=run)

    @property
    def by_hyperparameters(self) -> dict[str, Verdict]:
        """The verdict of each combination of values of hyperparameters, by its words.

        One, of all trials, where no hyperparameter had several.
        """
        variants = self.trajectory.variants
        if variants == [{}]:
            return {"all trials": self}
        return {
            ", ".join(f"{name} = {value:g}" for name, value in variant.items()): self.sel(**variant)
            for variant in variants
        }

    @property
    def directions(self) -> dict[str, xr.Dataset]:
        """What is drawn apart, by name: hyperparameters, and attention heads together and alone."""
        runs = {words: one.data for words, one in self.by_hyperparameters.items()}
        heads = self.trajectory.attention_heads
        if heads is None:
            return runs
        measured = ("margin_ratio", "correlation")
        found = {}
        for words, data in runs.items():
            before = f"{words}, " if len(runs) > 1 else ""
            found[f"{before}all heads"] = data
            for head in range(heads):
                own = {n: data[f"{n}_by_head"].isel(attention_head=head) for n in measured}
                found[f"{before}attention head {head}"] = data.assign(own)
        return found

    @property
    def margin_ratio(self) -> xr.DataArray:
        """Normalized margin ratio of every trial at its last step; 1 is the attractor."""
        return self._at_end("margin_ratio")

    @property
    def correlation(self) -> xr.DataArray:
        """Correlation with the solution at the last step; NaN unless it is known to be unique."""
        return self._at_end("correlation")

    @property
    def label_margin_ratio(self) -> xr.DataArray:
        """Margin ratio of every trained head with the solution of its label problem."""
        return self._needs("label_margin_ratio", _HEAD).isel({self.axis: -1})

    @property
    def label_correlation(self) -> xr.DataArray:
        """Correlation of every trained head with the solution of its label problem."""
        return self._needs("label_correlation", _HEAD).isel({self.axis: -1})

    @property
    def kkt_residual(self) -> xr.DataArray:
        """KKT residual of every trial's direction at its last step."""
        return self._at_end("kkt_residual")

    @property
    def selected_probability(self) -> xr.DataArray:
        """Softmax mass on the selected tokens at the last step, averaged over rows."""
        return self._at_end("selected_probability")

    @property
    def feasible(self) -> xr.DataArray:
        """Whether the margin problem each trial is compared with has a solution."""
        return self.data["feasible"]

    @property
    def at_minimum(self) -> xr.DataArray:
        """Whether each trial ended at a finite minimum of the loss, or beside one."""
        return self.data["comparison"].isin([AT_REST, BESIDE])

    @property
    def selection_agreement(self) -> xr.DataArray:
        """Fraction of rows with a choice whose reached token is the predicted one."""
        return self._needs("selection_agreement")

    @property
    def locally_optimal(self) -> xr.DataArray:
        """Whether the selection each trial is compared with is locally optimal."""
        return self._needs("locally_optimal")

    @property
    def status(self) -> xr.DataArray:
        """The end of the training of each trial, a ``TrialStatus``."""
        return self.data["status"]

    @property
    def impossible(self) -> Bool[np.ndarray, "instance seed"]:
        """Trials whose margin ratio exceeds 1 by more than the solution's gap: an error.

        A matrix that violates constraints of bound zero may well have one above 1.
        """
        met = self.data["margin_ratio"].where(self.data["violated"] == 0)
        return np.asarray(met.max(self.axis) - 1 > self.data["gap"] + _ROUNDING)

    @property
    def errors(self) -> list[str]:
        """The errors in the verdict itself; empty if there are none."""
        errors = []
        if count := int(self.impossible.sum()):
            errors.append(above_one(count, "margin ratio", self.data["margin_ratio"]))
        if self.label is not None:
            ratio = self.data["label_margin_ratio"]
            excess = ratio.max(self.axis) - 1
            if count := int((excess > self.data["label_gap"] + _ROUNDING).sum()):
                errors.append(above_one(count, "label margin ratio", ratio))
        return errors

    def rate(self, measure: str = "correlation", against: str | None = None) -> Rate:
        """The law by which one measure changes over the last decade; see ``fit_rates``.

        Args:
            measure: ``"correlation"`` and ``"margin_ratio"`` mean one minus themselves.
            against: The abscissa: ``"step"``, ``"norm"`` or ``"log_time"``; default: what the
                measures run along.
        """
        check_kinds(measure=(measure, str), against=(against, str | None))
        against = self.axis if against is None else against
        return fit_rates(self.data, quantities=[measure], against=against)[measure, against]

    def summary(self) -> dict[str, Any]:
        """The verdict in plain numbers, as ``to_json`` writes them."""
        trials = self.feasible.size
        statuses = {
            str(status): int((self.status == status).sum())
            for status in TrialStatus
            if (self.status == status).any()
        }
        summary: dict[str, Any] = {
            "reference": self.reference,
            "problem": counts(self.data["problem"]),
            "why": self.why,
            "comparison": counts(self.data["comparison"]),
            "geometry": self.solution.geometry.name,
            "trials": trials,
            self._axis_words: self._last,
            "feasible": int(self.feasible.sum()),
            "status": statuses,
            "largest_gap": nothing_if_nan(largest(self.data["gap"].values)),
        }
        if "locally_optimal" in self.data:
            summary["locally_optimal"] = int(self.locally_optimal.sum())
        if "selection_agreement" in self.data:
            agreement = self.selection_agreement
            summary["selection_as_predicted"] = int((agreement == 1).sum())
            summary["rows_as_predicted"] = float(agreement.mean())
        for name in ("minimum_norm", "minimum_distance"):
            if name in self.data:
                summary[name] = statistics(self.data[name].values)
        for name in self._measured:
            summary[name] = statistics(self._at_end(name).values)
        if self.label is not None:
            summary |= head_summary(self.data)
        if "margin_ratio_by_head" in self.data:
            ratios = self._at_end("margin_ratio_by_head")
            heads = range(ratios.sizes["attention_head"])
            summary["margin_ratio_by_head"] = [
                statistics(ratios.isel(attention_head=head).values) for head in heads
            ]
        summary["errors"] = self.errors
        return summary

    def table(self) -> Table:
        """The verdict as a rich table."""
        summary = self.summary()
        reached = f"to {self.axis} {self._last:g}"
        if self.axis == "step":
            reached = f"after {self._last} steps"
        title = f"{summary['trials']} trials {reached}, {self.reference}"
        table = Table(
            title=title,
            title_justify="left",
            title_style="bold",
            caption=self._explained(summary),
            caption_justify="left",
        )
        table.add_column(f"at the last {self.axis}", no_wrap=True)
        for column in _COLUMNS if summary["trials"] > 1 else _COLUMNS_OF_ONE:
            table.add_column(column, justify="right", min_width=_NUMBER)
        for name in self._measured:
            words = _MEASURES[name]
            if name == "norm" and "p" in self.trajectory.settings.get("parameterization", ""):
                words = "norm of p"
            table.add_row(words, *_shown_statistics(self._at_end(name)))
        self._add_variants(table)
        self._add_heads(table)
        table.add_section()
        for words, value in self._facts(summary):
            table.add_row(words, value)
        return table

    def _add_variants(self, table: Table) -> None:
        """The margin ratio of each combination of values of hyperparameters."""
        variants = self.trajectory.variants
        if variants == [{}]:
            return
        table.add_section()
        table.add_row("margin ratio by")
        table.add_row(", ".join(variants[0]))
        for variant in variants[:_MOST_VARIANTS]:
            words = ", ".join(f"{value:g}" for value in variant.values())
            table.add_row(f"  {words}", *_shown_statistics(self.sel(**variant).margin_ratio))
        if left := variants[_MOST_VARIANTS:]:
            table.add_row(f"  {len(left)} more: see to_csv")

    def _add_heads(self, table: Table) -> None:
        """The margin ratio of each attention head by itself."""
        if "margin_ratio_by_head" not in self.data:
            return
        ratios = self._at_end("margin_ratio_by_head")
        table.add_section()
        table.add_row("margin ratio by")
        table.add_row("attention head")
        for head in range(ratios.sizes["attention_head"]):
            table.add_row(f"  {head}", *_shown_statistics(ratios.isel(attention_head=head)))

    def to_xarray(self) -> xr.Dataset:
        """The labeled measures."""
        return self.data.copy()

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes the summary as JSON."""
        write_file(path, json.dumps(self.summary(), indent=2) + "\n")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes a line for every trial, with its measures at the last step."""
        last = self.data.isel({self.axis: -1}, drop=True)
        trial = list(last["status"].dims)
        flat = last[[name for name in last if set(last[name].dims) == {*trial}]]
        write_file(path, flat.to_dataframe(dim_order=trial).to_csv())

    def _picture(self) -> tuple[str, dict[str, xr.Dataset]]:
        if self.trajectory.weights_kept == "last":
            raise InvalidInputError(
                "verdict",
                "the matrices of earlier records were not kept, to save memory",
                'Train by train(..., weights="all"), or with fewer recorded steps',
            )
        return "direction_figure", self.directions

    def _print(self, console: Console) -> None:
        console.print(self.table())

    def _explained(self, summary: dict[str, Any]) -> str:
        """The problem and why it was chosen, and what could not be compared."""
        trials = summary["trials"]
        text = f"Problem: {shared(summary['problem'], trials)}. {self.why}"
        if set(summary["comparison"]) != {COMPARED}:
            text += f" Comparison: {shared(summary['comparison'], trials)}."
        return text

    def _facts(self, summary: dict[str, Any]) -> list[tuple[str, str]]:
        trials = summary["trials"]
        which = "reached" if "reached" in self.reference else "given"
        facts = [
            ("geometry", summary["geometry"]),
            (f"feasible ({which})", f"{summary['feasible']} of {trials}"),
        ]
        if self.label is not None:
            facts.append(("labels separable", f"{summary['label_separable']} of {trials}"))
        if "locally_optimal" in summary:
            facts.append(("locally optimal", f"{summary['locally_optimal']} of {trials}"))
        if at_minimum := int(self.at_minimum.sum()):
            facts.append(("at or beside a minimum", f"{at_minimum} of {trials}"))
        if "selection_as_predicted" in summary:
            facts.append(
                ("selection as predicted", f"{summary['selection_as_predicted']} of {trials}")
            )
            facts.append(("rows as predicted", f"{100 * summary['rows_as_predicted']:.1f} %"))
        facts.append(("largest gap", shown(summary["largest_gap"])))
        ended = ", ".join(f"{count} {name}" for name, count in summary["status"].items())
        facts.append(("status", ended))
        facts.extend(("[red]ERROR[/red]", text) for text in self.errors)
        return facts

    @property
    def _measured(self) -> list[str]:
        return [name for name in _MEASURES if name in self.data]

    @property
    def _last(self) -> float:
        return self.data[self.axis][-1].item()

    @property
    def _axis_words(self) -> str:
        return "steps" if self.axis == "step" else f"last_{self.axis}"

    def _at_end(self, name: str) -> xr.DataArray:
        return self.data[name].isel({self.axis: -1})

    def _needs(self, name: str, what: str = _LABELS) -> xr.DataArray:
        if name not in self.data:
            raise AttributeError(f"{name} needs {what}")
        return self.data[name]


def _shown_statistics(values: xr.DataArray) -> list[str]:
    """Mean, median and the two percentiles, for a table; of one trial its number."""
    numbers = statistics(values.values)
    if values.size == 1:
        return [shown(numbers["median"])]
    return [shown(numbers[column]) for column in ("mean", "median", "low", "high")]


def statistics(values: np.ndarray) -> dict[str, float | int | None]:
    """Mean, median and spread over the trials in which the number is defined."""
    values = np.asarray(values, dtype=float).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return dict.fromkeys(("mean", "median", "std", "low", "high")) | {"trials": 0}
    low, median, high = np.quantile(values, (0.05, 0.5, 0.95))
    return {
        "mean": float(values.mean()),
        "median": float(median),
        "std": float(values.std()),
        "low": float(low),
        "high": float(high),
        "trials": len(values),
    }


def head_summary(data: xr.Dataset) -> dict[str, object]:
    """The verdict on a trained head in plain numbers."""
    separable = data["label_separable"]
    return {
        "label_separable": int(separable.sum()),
        "largest_label_gap": nothing_if_nan(largest(data["label_gap"].where(separable).values)),
        "head_ratio": statistics(data["head_ratio"].values),
        "critical_ratio": statistics(data["critical_ratio"].values),
        "head_lags": int(data["head_lags"].sum()),
    }


def counts(words: xr.DataArray) -> dict[str, int]:
    """The number of trials of each text."""
    return dict(Counter(str(one) for one in words.values.flat))


def shared(counts: dict[str, int], trials: int) -> str:
    """Texts with the number of trials, where they differ."""
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{count} of {trials}: {words}" for words, count in counts.items())


def above_one(count: int, measure: str, values: xr.DataArray) -> str:
    """Says that ratios are larger than they can be."""
    return (
        f"{count} trials have a {measure} above 1 by more than their solution's gap "
        f"(the largest is {float(values.max()):.12f}): the solution or the run is wrong"
    )


def largest(values: np.ndarray) -> float:
    """The largest finite number, NaN if there is none."""
    return float(np.nanmax(values)) if np.isfinite(values).any() else np.nan


def nothing_if_nan(value: float) -> float | None:
    """A number as JSON can hold it."""
    return None if np.isnan(value) else value


def shown(value: object) -> str:
    """A number in six digits, or more where it is close to one."""
    if not isinstance(value, float):
        return "-"
    if 0 < abs(1 - value) < 1e-3:
        return f"1 {'-' if value < 1 else '+'} {abs(1 - value):.1e}".replace("e-0", "e-")
    return f"{value:.5g}"

"""Optimizers at several settings: what they reach at the best of them, and the answer over all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attractor.maps.bias.answer import (
    CONFIDENCE,
    ENOUGH,
    MAXIMIZES,
    MORE,
    MOST_STOPPED,
    NONE,
    NOT_SETTLED,
    SATURATED,
    NormAnswer,
    joint_confidence,
    median_interval,
    or_least,
    smallest_sample,
    still_moving,
    unsettled,
    with_tiny_gradients,
)
from attractor.support.checks import check_function, check_items, check_number
from attractor.training import Optimizer, power_decay
from attractor.training.own.method import Method

if TYPE_CHECKING:
    import xarray as xr


DEPENDS = "depends on the step"


@dataclass(frozen=True)
class Cell:
    """What an optimizer reaches in a norm at the best setting tried.

    Attributes:
        norm: Name of the norm.
        row: The setting with the highest median ratio, as a row of the matrix.
        setting: Its step size and decay, in words; empty where they are not known.
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


def setting_text(size: float, decay: float) -> str:
    """A step size with its decay, such as ``1.2 t^-0.5``; empty for a size that is NaN."""
    if math.isnan(size):
        return ""
    digits = f"{size:.3g}" if size < 1000 else f"{size:.0f}"
    return f"{digits} t^-{decay:g}" if decay else digits


def setting_of(run: xr.Dataset) -> str:
    """The step size and decay of a row, in words; empty where they are not known."""
    if "decay" not in run:  # as matrices of earlier versions
        return ""
    return setting_text(run["step_size"].item(), run["decay"].item())


def best_cell(runs: xr.Dataset, norm: str, answers: Mapping[str, NormAnswer]) -> Cell:
    """What an optimizer reaches in a norm at the best of its settings.

    Args:
        runs: The rows of the optimizer, one for each setting.
        norm: Name of the norm.
        answers: The answer at each setting.
    """
    ratios = runs["margin_ratio"].sel(norm=norm)
    sure = joint_confidence(len(answers))
    found = {row: median_interval(ratios.sel(optimizer=row).values, sure) for row in answers}
    best = max(found, key=lambda row: or_least(found[row].median))
    low = max(one.low for one in found.values())
    high = max(one.high for one in found.values())
    if math.isinf(low):
        why = f"{runs.sizes['instance']} data sets are too few for an interval"
    elif answers[best].norm == norm:
        why = ""
    else:
        others = [row for row, one in found.items() if one.high >= low and row != best]
        why = _open(runs, norm, best, others)
    setting = setting_of(runs.sel(optimizer=best))
    return Cell(norm, best, setting, found[best].median, low, high, why)


def _open(runs: xr.Dataset, norm: str, best: str, others: Sequence[str]) -> str:
    """Why a cell is not settled, where others may be the best setting; empty if it is."""
    for row in (best, *others):
        data = runs.sel(optimizer=row, norm=norm)
        at = f"at {setting_of(data)} " if row != best else ""
        usable = data["trained"].values & np.isfinite(data["margin_ratio"].values)
        if usable.sum() < (1 - MOST_STOPPED) * usable.size:
            if row != best:
                continue
            return f"{usable.size - usable.sum()} of {usable.size} runs ended early"
        end, before, movement = (
            data[name].values[usable]
            for name in ("margin_ratio", "margin_ratio_halfway", "movement")
        )
        changes = [median_interval(end - before, CONFIDENCE)]
        if moving := still_moving([norm], end[None], changes, 0, float(np.median(movement))):
            return f"{at}{moving}"
        if "smallest_margin" in data:  # which matrices of earlier versions have not
            margin = float(np.median(data["smallest_margin"].values[usable]))
            if margin < SATURATED:
                return f"{at}attention is not saturated: its smallest margin is {margin:.2g}"
    return _at_an_end(runs, best)


def _at_an_end(runs: xr.Dataset, row: str) -> str:
    """Whether a setting is the first or the last of its decay, in words; empty if neither."""
    if runs.sizes["optimizer"] == 1:
        return ""
    one = runs.sel(optimizer=row)
    sizes = runs["step_size"].values[runs["decay"].values == one["decay"].item()]
    ends = {sizes.max(): "largest", sizes.min(): "smallest"}
    end = ends.get(one["step_size"].item())
    return f"the best step is the {end} that was tried" if end else ""


def answer_over(
    runs: xr.Dataset, cells: Mapping[str, Cell], best: Cell, answers: Mapping[str, NormAnswer]
) -> NormAnswer:
    """The norm whose margin an optimizer maximizes at some setting, or that none is settled.

    Args:
        runs: The rows of the optimizer, one for each setting, in the norms that it is compared in.
        cells: What it reaches in each norm.
        best: The highest of them.
        answers: The answer at each setting, of a confidence that is joint.
    """
    return with_tiny_gradients(
        _answer_over(runs, cells, best, answers), runs.sel(optimizer=best.row)
    )


def _answer_over(
    runs: xr.Dataset, cells: Mapping[str, Cell], best: Cell, answers: Mapping[str, NormAnswer]
) -> NormAnswer:
    names = {row: setting_of(runs.sel(optimizer=row)) or row for row in answers}
    settings: dict[str, list[str]] = {}
    for row, found in answers.items():
        if found.outcome == MAXIMIZES:
            settings.setdefault(found.norm, []).append(names[row])
    count, tried = runs.sizes["instance"], len(answers)
    if len(settings) == 1:
        ((norm, where),) = settings.items()
        cell = cells[norm]
        reason = f"the median ratio is {cell.median:.4f} [{cell.low:.4f}, {cell.high:.4f}]"
        if tried > 1:
            reason += f", at {len(where)} of {tried} settings: {', '.join(where)}"
        if against := [names[row] for row in _stopping_short(runs, answers)]:
            reason = f"{norm}: {reason}; but it stops short of one at {', '.join(against)}"
            return NormAnswer(DEPENDS, "", reason, count, settings=settings)
        return NormAnswer(MAXIMIZES, norm, reason, count, settings=settings)
    if settings:
        reason = "; ".join(f"{norm} at {', '.join(at)}" for norm, at in settings.items())
        return NormAnswer(DEPENDS, "", f"it maximizes {reason}", count, settings=settings)
    which = f"of {tried} settings the best" if tried > 1 else "the"
    reason, at_best = f"{which} median ratio is {best}", answers[best.row]
    if at_best.outcome == NONE and (best.settled or best.median >= ENOUGH):
        reason = f"{reason}, below {ENOUGH}" if best.median < ENOUGH else at_best.reason
        return NormAnswer(NONE, "", reason, count, at_best.remedy)
    enough = smallest_sample(joint_confidence(tried * max(runs.sizes["norm"] - 1, 1)))
    if count < enough:
        return unsettled(reason, count, f"Give {enough} data sets or more", enough)
    if best.open.endswith("that was tried"):
        return unsettled(reason, count, "Try steps beyond it, by --lr")
    if at_best.outcome == NONE:
        return unsettled(reason, count, MORE)
    return replace(at_best, outcome=NOT_SETTLED, reason=reason, data_sets=count, enough_data_sets=0)


def _stopping_short(runs: xr.Dataset, answers: Mapping[str, NormAnswer]) -> list[str]:
    """Settings that stop short of one at smaller steps than some that do not.

    At larger steps they may, as these keep W from the flow.
    """
    size, decay = (
        dict(zip(answers, runs[name].values, strict=True)) for name in ("step_size", "decay")
    )
    outcomes = {row: found.outcome for row, found in answers.items()}
    return [
        row
        for row in answers
        if outcomes[row] == NONE
        and any(
            outcomes[other] == MAXIMIZES and decay[other] == decay[row] and size[other] > size[row]
            for other in answers
        )
    ]


DECAYS = (0.0, 0.5)
"""Powers of the step that step sizes fall with."""
MULTIPLES = {"quick": (0.1, 0.3, 1.0, 3.0), "paper": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)}
"""Mean step sizes that are tried, over that which a row of the matrix has beforehand."""
MEAN_STEPS = {
    "quick": (0.003, 0.03, 0.3, 3.0),
    "paper": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
}
"""Those of an optimizer of one's own, of whose scale nothing is known beforehand."""


def settings_of_all(
    methods: Sequence[Method],
    mean_steps: Callable[[Method], Sequence[float]],
    decays: Sequence[float],
    steps: int,
) -> tuple[Method, ...]:
    """Every method at every setting, a row for each.

    Args:
        methods: The methods.
        mean_steps: Means of step sizes over the run, of a method that has any.
        decays: Powers of the step that they fall with.
        steps: Number of steps, of methods that do not bring their own.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    check_function("mean_steps", mean_steps, "Give a function of a row that returns step sizes")
    decays = [
        check_number("decays", decay, least=0.0, example=0.5)
        for decay in check_items("decays", decays, int | float, 1)
    ]
    return tuple(
        one
        for method in methods
        for one in settings_tried(method, mean_steps, decays, method.steps or steps)
    )


def settings_tried(
    method: Method,
    mean_steps: Callable[[Method], Sequence[float]],
    decays: Sequence[float],
    steps: int,
) -> list[Method]:
    """A method as it is, and with other step sizes, each in a row of its own.

    Args:
        method: The method.
        mean_steps: Means of step sizes over the run, of a method that has any.
        decays: Powers of the step that they fall with.
        steps: The number of steps.
    """
    if method.with_step_size is None or method.step_size is None:
        return [replace(method, setting_of=method.name)]
    known = _setting(method, method.step_size, 0.0)
    found = {} if known is None else {(method.step_size, 0.0): known}
    # A schedule is a function of the step of JAX; PyTorch has none.
    possible = decays if isinstance(method.optimizer, Optimizer) else (0.0,)
    for decay in possible:
        mean = float((np.arange(1.0, steps + 1) ** -decay).mean())
        for mean_step in mean_steps(method):
            # Three digits, so that the setting named is the one that ran.
            size = float(f"{mean_step / mean:.3g}")
            if (size, decay) not in found:
                setting = _setting(method, size, decay)
                if setting is not None:
                    found[size, decay] = setting
    return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))]


def _setting(method: Method, size: float, decay: float) -> Method | None:
    assert method.with_step_size is not None
    made = method.with_step_size(power_decay(size, decay) if decay else size)
    if made is None:
        return None
    return replace(
        made,
        name=f"{method.name}, step {setting_text(size, decay)}",
        step_size=size,
        decay=decay,
        setting_of=method.name,
    )

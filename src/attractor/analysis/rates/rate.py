"""``Rate``: how fast one quantity changes, or that this cannot be said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attractor.analysis.rates.laws import Law
from attractor.analysis.rates.slopes import NO_SLOPE, Slope
from attractor.results import PlainText, Plotted

if TYPE_CHECKING:
    import xarray as xr

SETTLED, NOT_SETTLED, NOT_DEFINED = "settled", "not settled", "not defined"
PARTS = ("whole window", "first half", "second half")


@dataclass(frozen=True, eq=False, repr=False)
class Rate(Plotted, PlainText):
    """The slope of one quantity against another, over trials.

    A slope is quoted only where it has settled: the intervals of the first and of the second half
    of the window overlap. Elsewhere ``slope``, ``low`` and ``high`` are NaN and no text shows a
    number; what was fitted stays in ``parts`` and ``data``, for figures.

    Attributes:
        quantity: What is fitted, in words.
        abscissa: What it is fitted against, in words.
        law: The family of curves.
        abscissa_is_log: Whether logarithms of the abscissa were given.
        values_are_logs: Whether logarithms of the values were given.
        outcome: ``"settled"``, ``"not settled"`` or ``"not defined"``.
        reason: Why it is not settled or not defined; empty if it is settled.
        parts: Slope and interval over ``"whole window"``, ``"first half"``, ``"second half"``.
        confidence: Probability that an interval covers the true slope.
        units: Number of independent units the interval is over.
        unit_name: What they are: ``"instances"``, ``"seeds"`` of one instance, ``"trials"``, or,
            with a single trial, the ``"points"`` of its curve.
        first: The least abscissa in the window of any trial, as given.
        last: The greatest.
        left_out: How many trials could not be fitted, by reason.
        data: Of every trial fitted, over (trial, point), ``abscissa`` and ``values`` as fitted,
            which is after the logarithms of the law, and ``window`` and ``second_half``; over
            (part, trial) the slopes ``trial_slope``; and its ``unit``.
    """

    quantity: str
    abscissa: str
    law: Law
    abscissa_is_log: bool
    values_are_logs: bool
    outcome: str
    reason: str
    parts: Mapping[str, Slope]
    confidence: float
    units: int
    unit_name: str
    first: float
    last: float
    left_out: Mapping[str, int]
    data: xr.Dataset

    @property
    def settled(self) -> bool:
        """Whether there is a slope to quote."""
        return self.outcome == SETTLED

    @property
    def slope(self) -> float:
        """The slope ``a`` of the law; NaN unless it has settled."""
        return self._quoted.mean

    @property
    def exponent(self) -> float:
        """The slope, under the name it has in a power law."""
        return self._quoted.mean

    @property
    def low(self) -> float:
        """Lower end of the confidence interval; NaN unless the slope has settled."""
        return self._quoted.low

    @property
    def high(self) -> float:
        """Upper end of the confidence interval; NaN unless the slope has settled."""
        return self._quoted.high

    @property
    def trials(self) -> int:
        """Number of trials fitted."""
        return self.data.sizes["trial"]

    @property
    def formula(self) -> str:
        """The law with the names of what is fitted, ``1 - correlation ~ step^a``."""
        return f"{self.quantity} ~ {self.law.formula.format(x=self.abscissa)}"

    @property
    def _quoted(self) -> Slope:
        return self.parts[PARTS[0]] if self.settled else NO_SLOPE

    def slope_text(self) -> str:
        """The slope to the digits its interval supports, or the outcome in words."""
        return self._shown(self.slope) if self.settled else self.outcome

    def interval_text(self) -> str:
        """The interval, to the same digits; empty where no slope is quoted."""
        return f"[{self._shown(self.low)}, {self._shown(self.high)}]" if self.settled else ""

    def _shown(self, number: float) -> str:
        """Two digits of the half width of the interval, of three to six digits of the slope."""
        half_width = (self.high - self.low) / 2
        largest = max(abs(self.slope), half_width, 1e-300)
        leading = math.floor(math.log10(largest))
        wanted = 1 - math.floor(math.log10(max(half_width, 1e-300)))
        decimals = min(max(wanted, 2 - leading), 5 - leading)
        if not 0 <= decimals <= 6:
            return f"{number:.{max(decimals + leading, 0)}e}"
        return f"{number:.{decimals}f}"

    def sample_text(self) -> str:
        """The sample of the interval, and the trials left out by reason."""
        sample = f"{self.trials} trials"
        if self.unit_name == "instances" and self.trials > self.units:
            sample += f" of {self.units} instances"
        elif self.unit_name == "seeds":
            sample += " of one instance"
        elif self.unit_name == "points":
            sample = "one trial, interval of its regression"
        left_out = sum(self.left_out.values())
        if left_out:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.left_out.items())
            sample += f"; left out {left_out}: {reasons}"
        return sample

    def _picture(self) -> tuple[str, list[Rate]]:
        return "rates_figure", [self]

    def __str__(self) -> str:
        if self.outcome == NOT_DEFINED:
            return f"{self.formula}: not defined: {self.reason}"
        window = f"{self.abscissa} from {self.first:.6g} to {self.last:.6g}"
        if self.outcome == NOT_SETTLED:
            return f"{self.formula}: not settled: {self.reason} ({window}; {self.sample_text()})"
        interval = f"{100 * self.confidence:g} % interval {self.interval_text()}"
        return (
            f"{self.formula}: a = {self.slope_text()}, {interval} ({window}; {self.sample_text()})"
        )

    def to_xarray(self) -> xr.Dataset:
        """Slope and interval, those of the parts of the window, and those of every trial.

        ``slope``, ``low`` and ``high`` are NaN unless the slope has settled.
        """
        parts = np.array([self.parts[part] for part in PARTS])
        return self.data.assign(
            slope=self.slope,
            low=self.low,
            high=self.high,
            part_slope=("part", parts[:, 0]),
            part_low=("part", parts[:, 1]),
            part_high=("part", parts[:, 2]),
        ).assign_attrs(
            quantity=self.quantity,
            abscissa=self.abscissa,
            law=self.law.name,
            outcome=self.outcome,
            reason=self.reason,
            confidence=self.confidence,
            units=self.units,
            unit_name=self.unit_name,
            first=self.first,
            last=self.last,
            left_out=sum(self.left_out.values()),
        )

"""``fit_rates``: the rates of several quantities of a training run, as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from attractor.analysis.rates.fit import fit_rate
from attractor.analysis.rates.rate import NOT_DEFINED, NOT_SETTLED, PARTS, Rate
from attractor.results import Plotted, Printed, axis_of, plain_table
from attractor.support.checks import check_items, check_kinds, check_share
from attractor.support.errors import InvalidInputError, TrialStatus

if TYPE_CHECKING:
    from attractor.analysis.verdict import Verdict

_TRIAL = ("instance", "seed")
_TIMES = ("time", "logarithmic_time", "log_time")
_ERROR: dict[str, str] = {"step": "power", "norm": "power", "radius": "power"}
_ERROR |= dict.fromkeys(_TIMES, "power of the logarithm")
_NORM: dict[str, str] = {"step": "power"} | dict.fromkeys(_TIMES, "logarithm")
_LOSS: dict[str, str] = {"step": "power", "norm": "exponential", "radius": "exponential"}
_LOSS |= dict.fromkeys(_TIMES, "power")
_SATURATION = _LOSS | {"step": "exponential"}


@dataclass(frozen=True, eq=False, repr=False)
class Rates(Plotted, Printed):
    """Rates of several quantities, each against one or more abscissas.

    ``rates["norm", "log_time"]`` is one of them; iteration goes over all.

    Attributes:
        by_name: The rates by (variable, abscissa).
    """

    width: ClassVar[int] = 80
    by_name: dict[tuple[str, str], Rate]

    def __getitem__(self, name: tuple[str, str]) -> Rate:
        return self.by_name[name]

    def __iter__(self) -> Iterator[Rate]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def table(self) -> Table:
        """The rates as a rich table: a slope with its interval, or that there is none to quote."""
        confidence = 100 * next(iter(self)).confidence
        table = plain_table(collapse_padding=False)
        for column in ("quantity", "law"):
            table.add_column(column, no_wrap=True)
        for column in ("a", f"{confidence:g} % interval", "trials"):
            table.add_column(column, justify="right", no_wrap=True)
        before = ""
        for rate in self:
            law = rate.law.formula.format(x=rate.abscissa)
            texts = rate.slope_text(), rate.interval_text(), str(rate.trials)
            table.add_row("" if rate.quantity == before else rate.quantity, law, *texts)
            before = rate.quantity
        return table

    def notes(self) -> list[str]:
        """The windows fitted, what intervals are over, and why numbers are missing."""
        found: dict[str, list[Rate]] = {}
        for rate in self:
            found.setdefault(_sample(rate), []).append(rate)
        notes = []
        for text, rates in found.items():
            alike = [rate for rate in self if rate.abscissa == rates[0].abscissa]
            names = "" if len(alike) == len(rates) else ", ".join(rate.quantity for rate in rates)
            notes.append(f"{names}: {text}" if names else text)
        if any(rate.outcome == NOT_SETTLED for rate in self):
            notes.append(f"{NOT_SETTLED}: the slopes of the two halves of the window differ")
        return notes

    def to_xarray(self) -> xr.Dataset:
        """Slopes, intervals and outcomes over ``rate``, and those of the halves over ``part``.

        ``slope``, ``low`` and ``high`` are NaN unless the slope has settled.
        """
        rates = list(self)
        parts = np.array([[rate.parts[part] for part in PARTS] for rate in rates])
        columns = ("slope", "low", "high", "outcome", "reason", "trials", "units", "unit_name",
                   "first", "last", "formula")  # fmt: skip
        variables = {name: ("rate", [getattr(rate, name) for rate in rates]) for name in columns}
        variables |= {
            f"part_{name}": (("rate", "part"), parts[..., place])
            for place, name in enumerate(("slope", "low", "high"))
        }
        variables["law"] = ("rate", [rate.law.name for rate in rates])
        variables["left_out"] = ("rate", [sum(rate.left_out.values()) for rate in rates])
        coordinates = {
            "variable": ("rate", [name for name, _ in self.by_name]),
            "against": ("rate", [abscissa for _, abscissa in self.by_name]),
            "part": list(PARTS),
        }
        return xr.Dataset(variables, coordinates)

    def _picture(self) -> tuple[str, list[Rate]]:
        return "rates_figure", [*self]

    def _print(self, console: Console) -> None:
        console.print(self.table())
        for note in self.notes():
            console.print(note, highlight=False, markup=False)


def fit_rates(
    curves: Verdict | xr.Dataset,
    *,
    against: str | Sequence[str] | None = None,
    quantities: Sequence[str] | None = None,
    decades: float | None = None,
    fraction: float | None = None,
    confidence: float = 0.95,
) -> Rates:
    """Fits the rates of direction errors, norm and loss of a training run.

    Each quantity is fitted with the law that the theory of its abscissa expects; ``fit_rate``
    fits any other. Norms against ``log_time`` are divided by the norm of the solution, so that
    the norm law ``||W|| ~ ||W*|| log k`` has the slope 1. Trials that terminated before the end are
    left out, as their curves are flat from there on.

    Args:
        curves: A verdict, or its data: curves over instance, seed and an axis of records.
        against: The abscissa, one or several: the axis of the curves, ``"norm"``, or
            ``"log_time"``. Default: all that the curves have.
        quantities: Names of variables. Default: all that the curves have, the loss above that of
            the selected tokens in place of the loss where it is known.
        decades: Length of the window in factors of ten, back from the last abscissa (of
            ``log_time``: of the logarithm itself). Default: one.
        fraction: In place of that, the part of the recorded points to fit.
        confidence: Probability that an interval covers the true slope.

    Returns:
        The rates, which print as a table.

    Raises:
        InvalidInputError: If a name is not known or there is no such curve.
    """
    confidence = check_share("confidence", confidence, 0.95)
    from attractor.analysis.verdict import Verdict

    check_kinds(curves=(curves, Verdict | xr.Dataset))
    if quantities is not None:
        quantities = check_items("quantities", quantities, str, 1)
    if against is not None and not isinstance(against, str):
        against = check_items("against", against, str, 1)
    data = curves if isinstance(curves, xr.Dataset) else curves.data
    data = data.expand_dims([axis for axis in _TRIAL if axis not in data.dims])
    axis = axis_of(data, "curves")
    chosen = _chosen_quantities(data, quantities)
    excluded = {}
    if "status" in data:
        status = data["status"]
        for name in set(status.dims) - {*_TRIAL}:
            raise InvalidInputError(
                "curves",
                f"they are of {status.sizes[name]} values of {name}",
                f"Take those of one: .sel({name}={status[name].values[0]:g})",
            )
        status = status.transpose(*_TRIAL).values
        excluded = {"terminated before the end": status != TrialStatus.TRAINED}
    rates = {}
    for quantity in chosen:
        for abscissa in _chosen_abscissas(data, axis, against):
            if abscissa not in quantity.laws:
                continue
            y, words = _values(data, axis, quantity, abscissa)
            rates[quantity.variable, abscissa] = fit_rate(
                _abscissa(data, axis, abscissa),
                y,
                law=quantity.laws[abscissa],
                decades=decades,
                fraction=fraction,
                confidence=confidence,
                abscissa_is_log=abscissa in LOGARITHMS,
                values_are_logs=quantity.is_log,
                quantity=words,
                abscissa=ABSCISSA_WORDS[abscissa],
                excluded=excluded,
            )
    if not rates:
        raise InvalidInputError(
            "quantities", "none of them has a law against these abscissas", "Ask for others"
        )
    return Rates(rates)


def _chosen_quantities(data: xr.Dataset, names: Sequence[str] | None) -> list[Quantity]:
    known = {quantity.variable: quantity for quantity in QUANTITIES}
    present = [name for name in known if name in data]
    wanted = list(present if names is None else names)
    if names is None and "log_excess_loss" in present and "loss" in present:
        wanted.remove("loss")  # it stops at its limit, which the excess is measured from
    for name in wanted:
        if name not in present:
            raise InvalidInputError(
                "quantities", f"there is no curve {name!r}", f"Give some of {', '.join(present)}"
            )
    return [known[name] for name in wanted]


def _chosen_abscissas(
    data: xr.Dataset, axis: str, against: str | Sequence[str] | None
) -> list[str]:
    present = [axis, *(name for name in ("norm", "log_time") if name in data)]
    if against is None:
        timed = "log_time" in data and bool(np.isfinite(data["log_time"]).any())
        return present if timed else [name for name in present if name != "log_time"]
    wanted = [against] if isinstance(against, str) else list(against)
    for name in wanted:
        if name not in present:
            raise InvalidInputError(
                "against", f"there is no {name!r} in the curves", f"Give some of {present}"
            )
    return wanted


def _abscissa(data: xr.Dataset, axis: str, name: str) -> np.ndarray:
    if name == axis:
        return data[axis].values.astype(float)
    return data[name].transpose(*_TRIAL, axis).values.astype(float)


def _values(
    data: xr.Dataset, axis: str, quantity: Quantity, abscissa: str
) -> tuple[np.ndarray, str]:
    """The curves to fit and what they are called."""
    values = data[quantity.variable].transpose(*_TRIAL, axis).values.astype(float)
    words = quantity.words
    if quantity.is_shortfall:
        values = 1 - values
    if quantity.relative_to in data and quantity.laws[abscissa] == "logarithm":
        values = values / data[quantity.relative_to].transpose(*_TRIAL).values[..., None]
        words = quantity.relative_words
    return values, words


def _sample(rate: Rate) -> str:
    """The window and the trials of a rate, in words."""
    if rate.outcome == NOT_DEFINED:
        return f"against {rate.abscissa} not defined: {rate.reason}"
    abscissa = f"log {rate.abscissa}" if rate.abscissa_is_log else rate.abscissa
    return f"{abscissa} from {rate.first:.5g} to {rate.last:.5g}: {rate.sample_text()}"


@dataclass(frozen=True)
class Quantity:
    """One curve of a verdict, and the law it follows against each abscissa.

    Attributes:
        variable: Its name in the data.
        words: What it is called.
        laws: Names of the laws by abscissa.
        is_shortfall: Whether one minus the variable is meant.
        is_log: Whether the variable is a logarithm.
        relative_to: Against these abscissas, the variable of the trial it is divided by.
        relative_words: What it is called then.
    """

    variable: str
    words: str
    laws: dict[str, str]
    is_shortfall: bool = False
    is_log: bool = False
    relative_to: str | None = None
    relative_words: str = ""


QUANTITIES = (
    Quantity("margin_ratio", "1 - margin ratio", _ERROR, is_shortfall=True),
    Quantity("correlation", "1 - correlation", _ERROR, is_shortfall=True),
    Quantity("directional_bregman_divergence", "Bregman divergence", _ERROR),
    Quantity(
        "norm", "norm", _NORM, relative_to="solution_norm", relative_words="norm / solution's"
    ),
    Quantity("loss", "loss", _LOSS),
    Quantity("log_excess_loss", "excess loss", _SATURATION, is_log=True),
    Quantity("log_unselected_probability", "attention elsewhere", _SATURATION, is_log=True),
)
"""Direction errors, norm, and what falls with the loss, in the order of a table."""

ABSCISSA_WORDS = {
    "step": "step",
    "time": "t",
    "logarithmic_time": "t",
    "log_time": "k",
    "norm": "norm",
    "radius": "R",
}
"""Names in formulas: ``log_time`` is the logarithm of k, an equivalent number of raw steps."""
LOGARITHMS = ("logarithmic_time", "log_time")
"""The abscissas that are logarithms already."""

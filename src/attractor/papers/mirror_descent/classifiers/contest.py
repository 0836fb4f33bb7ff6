"""Two optimizers beside each other: what is compared, and how it is read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from attractor.papers.claim import Measurement
from attractor.papers.figure import Reading, at_least
from attractor.papers.files.classifiers import ClassifierCase
from attractor.support.errors import TrialStatus

_BY_EXPONENT = ("p = 1.1", "p = 2", "p = 3")
_LEVEL = 0.95


def interval(values: Float[np.ndarray, "seed"]) -> tuple[float, float]:
    """The mean over seeds, and half the width of its 95 % interval by Student's law."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return float(known.mean()) if len(known) else np.nan, np.nan
    spread = known.std(ddof=1) / np.sqrt(len(known))
    return float(known.mean()), float(stdtrit(len(known) - 1, (1 + _LEVEL) / 2) * spread)


def falls_with_the_exponent(what: str, values: xr.DataArray) -> list[Reading]:
    """Readings of a number that must be smaller with every larger p of mirror descent.

    Args:
        what: The number, in words that end before the name of an optimizer.
        values: The number over ``optimizer``.
    """
    ordered = [name for name in _BY_EXPONENT if name in values["optimizer"]]
    last = what.split()[-1]
    return [
        at_least(f"{what} {before} less that {last} {after}",
                 values.sel(optimizer=before) - values.sel(optimizer=after), 0)
        for before, after in itertools.pairwise(ordered)
    ]  # fmt: skip


def rates_inside_the_range(data: xr.Dataset) -> Reading:
    """The reading that no learning rate chosen is at the edge of those tried."""
    count = data["at_edge"].size
    words = f"of {count} learning rates, those chosen inside the range tried"
    return at_least(words, count - int(data["at_edge"].sum()), count)


_ERRORS = 3
"""Standard errors above chance from which on a model has learned; chance gets there in 1 of 700."""


class Quantity(NamedTuple):
    """A number of every trained model.

    Attributes:
        words: The number, in words.
        variable: The variable of results that it is read from.
        matrix: Which matrix, where there are several.
        last: Whether it is that of the last block; else the mean over blocks, where there are any.
        of_all: Whether models that have learned nothing count. In accuracy they do; of anything
            else they say nothing.
    """

    words: str
    variable: str
    matrix: str | None = None
    last: bool = False
    of_all: bool = False

    def missing(self, data: xr.Dataset) -> str | None:
        """Says what results lack to read it; None if nothing."""
        if self.variable not in data:
            return f"there is no {self.variable}"
        if self.matrix is not None and self.matrix not in data["matrix"]:
            return f"{self.variable} is not that of the {self.matrix}"
        return None

    def of(self, data: xr.Dataset) -> xr.DataArray:
        """The number over ``optimizer`` and ``seed``."""
        values = data[self.variable]
        if self.matrix is not None:
            values = values.sel(matrix=self.matrix, drop=True)
        if self.last:
            values = values.isel(block=-1, drop=True)
        elif "block" in values.dims:
            values = values.mean("block", skipna=False)
        return values.transpose("optimizer", "seed")


class Difference(NamedTuple):
    """The difference of two optimizers over seeds.

    Attributes:
        seeds: The seeds that count.
        by_seed: That of each.
        mean: Their mean.
        low: Lower end of its 95 % interval, NaN if there are fewer than two seeds.
        high: Upper end.
    """

    seeds: Int[np.ndarray, "seed"]
    by_seed: Float[np.ndarray, "seed"]
    mean: float
    low: float
    high: float


class Order(NamedTuple):
    """An order of two optimizers.

    Attributes:
        more: The one that is said to have more.
        less: The other.
    """

    more: str
    less: str


@dataclass(frozen=True)
class Contest:
    """A number of optimizers' models, seed by seed: all start from one model in one order.

    Attributes:
        data: What the models classify, "text" or "image".
        quantity: The number.
        order: The optimizer that is said to have more of it than another.
        wrong: A wrong order nearby; None where none of the optimizers makes one.
        further: Other quantities, reported where the results have them.
    """

    data: str
    quantity: Quantity
    order: Order
    wrong: Order | None = None
    further: Sequence[Quantity] = ()

    @property
    def orders(self) -> tuple[Order, ...]:
        """The order and the wrong one, where there is one."""
        return (self.order,) if self.wrong is None else (self.order, self.wrong)

    @property
    def names(self) -> list[str]:
        """All optimizers that it asks for."""
        return list(dict.fromkeys(name for order in self.orders for name in order))

    def words(self, order: Order) -> str:
        """What is measured of an order."""
        return f"{self.quantity.words} of {order.more} less that of {order.less}"

    def difference(
        self, data: xr.Dataset, order: Order, quantity: Quantity | None = None
    ) -> Difference:
        """The excess of the one over the other, by default of the quantity itself."""
        values = _counted(data, order, self.quantity if quantity is None else quantity)
        by_seed = values.sel(optimizer=order.more) - values.sel(optimizer=order.less)
        mean, half = interval(by_seed.to_numpy())
        return Difference(
            values["seed"].to_numpy(), by_seed.to_numpy(), mean, mean - half, mean + half
        )

    def measure(self, case: ClassifierCase, seed: int, order: Order) -> Measurement:
        """The mean difference, with its interval and those of the further numbers."""
        found = self.difference(case.data, order)
        details = {"seeds": len(found.by_seed), "differences": found.by_seed}
        details |= {"models that have learned nothing": stuck_models(case.data, order)}
        for quantity in (self.quantity, *self.further):
            if quantity.missing(case.data) is None:
                details |= self._details(case.data, order, quantity)
        return Measurement(found.mean, len(found.by_seed), details, (found.low, found.high))

    def _details(
        self, data: xr.Dataset, order: Order, quantity: Quantity
    ) -> dict[str, float | list[float]]:
        values, found = _counted(data, order, quantity), self.difference(data, order, quantity)
        means = {
            f"{quantity.words} of {name}": float(values.sel(optimizer=name).mean())
            for name in order
        }
        return means | {
            f"{quantity.words}, 95 % interval of the difference": [found.low, found.high]
        }


def _counted(data: xr.Dataset, order: Order, quantity: Quantity) -> xr.DataArray:
    """The number for the seeds that count."""
    learned = learned_seeds(data, order)
    return quantity.of(data if quantity.of_all else data.isel(seed=learned))


def least_learned(data: xr.Dataset) -> float:
    """The accuracy above which a model has learned: three standard errors above chance.

    Args:
        data: Results, whose attributes say the accuracy of chance and the number of tests.
    """
    chance = float(data.attrs["chance"])
    return chance + _ERRORS * math.sqrt(chance * (1 - chance) / data.attrs["test_examples"])


def stuck_models(data: xr.Dataset, names: Sequence[str]) -> list[str]:
    """The models that have learned nothing, in words.

    Args:
        data: Results.
        names: Of which optimizers.
    """
    found = []
    for name in names:
        one = data.sel(optimizer=name)
        accuracies, lost = one["test_accuracy"].to_numpy(), _diverged(one)
        for place in np.flatnonzero(~learned_seeds(data, [name])):
            seed, accuracy = data["seed"].values[place], accuracies[place]
            if lost[place] or np.isnan(accuracy):
                how = "diverged" if lost[place] else "has no accuracy"
                found.append(f"{name}, seed {seed}, {how}")
            else:
                found.append(f"{name}, seed {seed}, is at {accuracy:.4g}")
    return found


def learned_seeds(data: xr.Dataset, names: Sequence[str]) -> Bool[np.ndarray, "seed"]:
    """The seeds whose models have learned something with each optimizer.

    Args:
        data: Results; where attributes do not say what chance is, all seeds that did not diverge.
        names: The optimizers.
    """
    known = "chance" in data.attrs and "test_examples" in data.attrs
    level = least_learned(data) if known else -np.inf
    each = [data.sel(optimizer=name) for name in names]
    learned = [(one["test_accuracy"].to_numpy() > level) & ~_diverged(one) for one in each]
    return np.all(learned, axis=0)


def _diverged(one: xr.Dataset) -> Bool[np.ndarray, "seed"]:
    if "status" not in one:
        return np.zeros(one.sizes["seed"], bool)
    return one["status"].to_numpy() == TrialStatus.DIVERGED

"""Which trained models know anything: one that is stuck says nothing of what it favors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Bool

from attractor.errors import TrialStatus

_ERRORS = 3
"""Standard errors above chance from which on a model has learned; chance gets there in 1 of 700."""


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

"""Numbers of all trials in a few, and the words for them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


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
    """What a verdict on a trained head comes to."""
    separable = data["label_separable"]
    return {
        "label_separable": int(separable.sum()),
        "largest_label_gap": nothing_if_nan(largest(data["label_gap"].where(separable).values)),
        "head_ratio": statistics(data["head_ratio"].values),
        "critical_ratio": statistics(data["critical_ratio"].values),
        "head_lags": int(data["head_lags"].sum()),
    }


def counts(words: xr.DataArray) -> dict[str, int]:
    """How many trials each text is true of."""
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
        return f"1 {'-' if value < 1 else '+'} {abs(1 - value):.1e}"
    return f"{value:.5g}"

"""The points at which a flow is recorded, and its end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.support.checks import check_number
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for_list
from attractor.support.precision import as_plain

_RECORDS = 60
_DECADES = 6
_NORM_RANGE = 1000


@dataclass(frozen=True, eq=False)
class FlowRecords:
    """The records of a flow.

    Attributes:
        axis: Their axis: ``"time"``, ``"logarithmic_time"`` or ``"radius"``.
        values: Their values on it.
        targets: The values after the beginning, as logarithms of times or as norms.
        norm: The norm to stop at where records run along time; infinite for none.
    """

    axis: str
    values: Float[np.ndarray, "records"]
    targets: Float[np.ndarray, "targets"]
    norm: float

    @property
    def steps(self) -> Int[np.ndarray, "records"]:
        """Numbers of the targets that the records are taken at, zero for the beginning."""
        return np.arange(len(self.targets) + 1 - len(self.values), len(self.targets) + 1)

    @property
    def by_norm(self) -> bool:
        """Whether a norm ends the flow or its records."""
        return self.axis == "radius" or math.isfinite(self.norm)


def flow_records(
    time: float | None, log_time: float | None, norm: float | None, record: Any
) -> FlowRecords:
    """Chooses the axis of the records and their values from the end of the flow.

    Args:
        time: The time to end at.
        log_time: Its logarithm, in place of it.
        norm: The norm to end at.
        record: Where to record; the end is added. Default: the beginning, then 60 evenly spread
            over the logarithm of time or of the norm.

    Raises:
        InvalidInputError: If there is no end, or two times, or a value is out of range.
    """
    if time is not None and log_time is not None:
        raise InvalidInputError("log_time", "time is given as well", "Give the one or the other")
    if norm is not None:
        norm = check_number("norm", norm, above=0, example=10.0)
    if time is not None:
        axis, last = "time", check_number("time", time, above=0, example=100.0)
        spread = np.exp(_even_logarithms(math.log(last)))
    elif log_time is not None:
        axis, last = "logarithmic_time", check_number("log_time", log_time, example=30.0)
        spread = _even_logarithms(last)
    elif norm is not None:
        axis, last = "radius", norm
        spread = np.geomspace(norm / _NORM_RANGE, norm, _RECORDS)
    else:
        raise InvalidInputError(
            "time", "the flow has no end", "Give time, log_time or norm, or a time and a norm"
        )
    first = -np.inf if axis == "logarithmic_time" else 0.0
    spread[-1] = last
    chosen = np.append(first, spread) if record is None else _chosen(record, first, last)
    values = np.unique(np.append(chosen, last))
    after = values[values > first]
    targets = np.log(after) if axis == "time" else after
    limit = np.inf if norm is None or axis == "radius" else norm
    return FlowRecords(axis, values, targets, limit)


def _even_logarithms(last: float) -> Float[np.ndarray, "records"]:
    return np.linspace(min(0.0, last - _DECADES * math.log(10)), last, _RECORDS)


def _chosen(record: Any, first: float, last: float) -> Float[np.ndarray, "records"]:
    require_memory_for_list("record", record, each=48)
    values = np.atleast_1d(as_plain("record", record))
    if values.ndim != 1 or values.dtype.kind not in "fiu" or values.size == 0:
        raise InvalidInputError("record", f"{record!r} is not a list of numbers", "Give numbers")
    if np.isnan(values).any() or values.min() < first or values.max() > last:
        raise InvalidInputError(
            "record",
            f"it asks for values from {values.min():g} to {values.max():g}",
            f"Give values from {first:g} to {last:g}",
        )
    return values.astype(np.float64)

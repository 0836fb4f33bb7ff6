"""Records as labeled arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attractor.geometry import Geometry
from attractor.monitor.record import NUMBERS, HeadRecord

if TYPE_CHECKING:
    import xarray as xr


def as_dataset(records: dict[str, list[HeadRecord]], geometry: Geometry) -> xr.Dataset:
    """The records of all heads over step, head, sequence and query.

    A step at which a head has no record has an empty status; its numbers are NaN.
    """
    import xarray as xr

    steps = sorted({record.step for rows in records.values() for record in rows})
    place = {step: i for i, step in enumerate(steps)}
    seen = [r.selected.shape for rows in records.values() for r in rows if r.selected is not None]
    rows_shape = tuple(max((shape[k] for shape in seen), default=0) for k in (0, 1))
    shape = (len(steps), len(records))
    numbers = {name: np.full(shape, np.nan) for name in NUMBERS}
    words = {name: np.full(shape, "", dtype=object) for name in ("status", "start")}
    due = np.full(shape, -1)
    selected = np.full((*shape, *rows_shape), -1)
    probability = np.full((*shape, *rows_shape), np.nan)
    for j, rows in enumerate(records.values()):
        for record in rows:
            at = place[record.step], j
            words["status"][at], words["start"][at] = str(record.status), record.start
            due[at] = record.due
            for name, number in record.numbers.items():
                numbers[name][at] = number
            if record.selected is not None and record.selected_probability is not None:
                n, k = record.selected.shape
                selected[at][:n, :k] = record.selected
                probability[at][:n, :k] = record.selected_probability
    along, per_query = ("step", "head"), ("step", "head", "sequence", "query")
    data = xr.Dataset(
        {name: (along, values, {"meaning": NUMBERS[name]}) for name, values in numbers.items()}
        | {name: (along, values.astype(str)) for name, values in words.items()}
        | {
            "due": (along, due),
            "selected": (per_query, selected),
            "selected_probability": (per_query, probability),
        },
        coords={"step": np.array(steps, dtype=int), "head": np.array([*records], dtype=str)},
    )
    return data.assign_attrs(geometry=geometry.name)

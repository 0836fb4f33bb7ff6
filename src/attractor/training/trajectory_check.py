"""Whether the records in a file are those of a trajectory on the tokens beside them."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attractor.attention import Head
from attractor.errors import TrialStatus
from attractor.tokens import Tokens
from attractor.training.trajectory import AXES

_TRIAL = ("instance", "seed")
_BY_RECORD = ("loss", "norm", "log_gradient_norm")
_BY_ROW = ("attended", "attended_probability")
_BY_TRIAL = ("status", "steps_taken")


def check_records(data: xr.Dataset, tokens: Tokens, head: Head | None) -> None:
    """Checks that records have the axes and sizes that everything reads them by.

    Raises:
        ValueError: If they do not, or disagree with the tokens or the head.
    """
    axes = [axis for axis in AXES if axis in data.dims]
    if len(axes) != 1:
        raise ValueError(f"the records run along {axes or 'nothing'}")
    record, row = (*_TRIAL, axes[0]), ("sequence", "query")
    expected = {
        **dict.fromkeys(_BY_RECORD, record),
        **dict.fromkeys(_BY_ROW, (*record, *row)),
        **dict.fromkeys(_BY_TRIAL, _TRIAL),
    }
    for name, dimensions in expected.items():
        _check_axes(data, name, (dimensions,))
    last = (*_TRIAL, "row", "column")
    _check_axes(data, "W", (last, (*record, "row", "column")))
    sizes = {
        "instance": len(tokens.instance_numbers),
        **dict(zip(row, tokens.mask.shape[-3:-1], strict=True)),
        "row": tokens.keys.shape[-1],
        "column": tokens.queries.shape[-1],
    }
    for name, size in sizes.items():
        if data.sizes[name] != size:
            raise ValueError(f"the records and the tokens disagree on {name}")
    for name in record:
        labels = data.indexes[name] if name in data.indexes else None
        if not data.sizes[name] or labels is None or labels.dtype.kind not in "iuf":
            raise ValueError(f"{name} is not numbered")
        if not labels.is_unique or labels.hasnans:
            raise ValueError(f"the numbers of {name} are not different")
    if not np.isin(data["status"], [int(status) for status in TrialStatus]).all():
        raise ValueError("status has a number that means nothing")
    attended = data["attended"].to_numpy()
    if ((attended < 0) | (attended >= tokens.mask.shape[-1])).any():
        raise ValueError("attended names a token that is not there")
    if head is not None:
        instances = getattr(head, "instances", None)
        fits = instances in (None, tokens.instances)
        if head.input_dimension != tokens.value_dimension or not fits:
            raise ValueError("the head does not read what attention gives")


def _check_axes(data: xr.Dataset, name: str, allowed: tuple[tuple[str, ...], ...]) -> None:
    if name not in data:
        raise ValueError(f"{name} is missing")
    if data[name].dims not in allowed:
        raise ValueError(f"{name} has the axes {data[name].dims}")
    if data[name].dtype.kind not in "iuf":
        raise ValueError(f"{name} is of {data[name].dtype}")

"""Checks that the records in a file are those of a trajectory on the tokens beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.attention import Head
from attractor.results import axis_of, check_records
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

TRIAL = ("instance", "seed")
ATTENTION_HEAD = "attention_head"
"""The axis of several attention heads."""
_BY_RECORD = ("loss", "norm", "log_gradient_norm")
_BY_ROW = ("attended", "attended_probability")
_BY_TRIAL = ("status", "steps_taken")


def check_trajectory(data: xr.Dataset, tokens: Tokens, head: Head | None) -> None:
    """Checks that records have the axes and sizes that everything reads them by.

    Raises:
        ValueError: If they do not, or disagree with the tokens or the head.
    """
    trial = tuple(map(str, data["status"].dims)) if "status" in data else ()
    if trial[-2:] != TRIAL:
        raise ValueError("status is not given of every instance and seed")
    record, row, matrix = (*trial, axis_of(data)), ("sequence", "query"), ("row", "column")
    heads = (ATTENTION_HEAD,) if ATTENTION_HEAD in data.dims else ()
    check_records(
        data,
        numbered=record,
        arrays={
            **dict.fromkeys(_BY_RECORD, record),
            **dict.fromkeys(_BY_ROW, (*record, *heads, *row)),
            **dict.fromkeys(_BY_TRIAL, trial),
            "W": [(*trial, *heads, *matrix), (*record, *heads, *matrix)],
        },
        sizes={
            "instance": len(tokens.instance_numbers),
            **dict(zip(row, tokens.mask.shape[-3:-1], strict=True)),
            "row": tokens.keys.shape[-1],
            "column": tokens.queries.shape[-1],
        },
    )
    attended = data["attended"].to_numpy()
    if ((attended < 0) | (attended >= tokens.mask.shape[-1])).any():
        raise ValueError("attended names a token that is not there")
    if head is not None:
        instances = getattr(head, "instances", None)
        fits = instances in (None, tokens.instances)
        if head.input_dimension != tokens.value_dimension or not fits:
            raise ValueError("the head does not read what attention gives")

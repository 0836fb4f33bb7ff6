"""The heads of an audit one by one: what is known of each, as plain numbers and words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.audit.captured import CaptureStatus
from attractor.audit.result import VARIABLES, Learnable, Margin

if TYPE_CHECKING:
    import xarray as xr

BEATS_NULLS = (Learnable.LEARNABLE, Learnable.POSITIONAL, Learnable.QUERY_FREE)
"""Verdicts on heads that beat the draws of all heads together."""
UNTESTED = (Learnable.TOO_FEW, Learnable.NOT_ASKED)
"""Verdicts on heads that no accuracy was compared of."""


def of_verdict(data: xr.Dataset, name: str) -> xr.DataArray:
    """A variable of an audit, that of the null that the verdict rests on where there are several.

    Args:
        data: The arrays of an audit.
        name: The variable.
    """
    found = data[name]
    return found.sel(null=data.attrs["null"], drop=True) if "null" in found.dims else found


def deviations_above_null(data: xr.Dataset) -> Float[np.ndarray, "layer head"]:
    """Standard deviations of its own null draws that the accuracy of a head is above their mean.

    Infinite where all draws agree on another accuracy; NaN where there is none.

    Args:
        data: The arrays of an audit.
    """
    draws = of_verdict(data, "accuracy_null").transpose("layer", "head", "draw").to_numpy()
    above = data["accuracy"].transpose("layer", "head").to_numpy() - draws.mean(-1)
    spread = draws.std(-1, ddof=min(1, draws.shape[-1] - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(above) < 1e-12, 0.0, above / spread)


def heads(data: xr.Dataset) -> list[dict[str, Any]]:
    """What is known of every head that was audited, in the order of layers.

    A variable with further axes is an object by their coordinates; of the draws of a null their
    mean, standard deviation and largest remain. NaN and infinity are None.

    Args:
        data: The arrays of an audit.
    """
    above = deviations_above_null(data)
    names = [name for name in VARIABLES if name in data and "query" not in data[name].dims]
    found = []
    for row, layer in enumerate(data["layer"].to_numpy()):
        for column, head in enumerate(data["head"].to_numpy()):
            one = data[names].isel(layer=row, head=column)
            if _left_out(one):
                continue
            entry: dict[str, Any] = {"layer": int(layer), "head": int(head)}
            entry |= {name: _plain(one[name]) for name in names}
            entry["deviations_above_null"] = _number(above[row, column])
            for name in ("accuracy_null", "p", "p_together", "q"):
                entry[name] = _plain(of_verdict(one, name)) if name in one else None
            found.append(entry)
    return found


def by_clearness(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Heads from the clearest pairing to the least clear one; those without a test come last.

    Args:
        found: What ``heads`` returns.
    """

    def key(one: dict[str, Any]) -> tuple[bool, float, float, int, int]:
        untested = one["learnable"] in UNTESTED
        together = 1.0 if one["p_together"] is None else one["p_together"]
        above = one["deviations_above_null"]
        if above is None:
            mean = (one["accuracy_null"] or {}).get("mean") or 0.0
            above = math.inf if (one["accuracy"] or 0.0) > mean else -math.inf
        return untested, together, -above, one["layer"], one["head"]

    return sorted(found, key=key)


def name(one: dict[str, Any]) -> str:
    """A head by its layer and number, as options take it."""
    return f"{one['layer']}.{one['head']}"


def verdict(one: dict[str, Any]) -> str:
    """The verdict on the pairing of a head, with the reason where it was not asked."""
    if one["learnable"] == Learnable.NOT_ASKED and one["capture"] != CaptureStatus.BILINEAR:
        return f"{one['learnable']}: {one['capture']}"
    return one["learnable"]


def selects(one: dict[str, Any]) -> str:
    """What a head selects, with the share of queries it is true of."""
    words = one["selection"]
    shares = {"sink": "sink_share", "self": "self_share", "offset": "offset_share"}
    share = one.get(shares.get(words.split()[0] if words else "", ""))
    return words if share is None else f"{words} {100 * share:.0f} %"


def asked_for_margins(found: list[dict[str, Any]]) -> bool:
    """Whether any head was asked for its margin solution."""
    return any(one.get("margin", Margin.NOT_ASKED) != Margin.NOT_ASKED for one in found)


def _left_out(one: xr.Dataset) -> bool:
    """Whether a head was not audited at all: a hole in the table of layers and heads."""
    return (
        one["learnable"].item() == Learnable.NOT_ASKED
        and one["capture"].item() == CaptureStatus.BILINEAR
    )


def _plain(array: xr.DataArray) -> Any:
    if "draw" in array.dims and "null" not in array.dims:
        draws = array.to_numpy()
        spread = draws.std(ddof=min(1, draws.size - 1))
        kept = {"mean": draws.mean(), "deviation": spread, "largest": draws.max()}
        return {word: _number(value) for word, value in kept.items()}
    if not array.dims:
        value = array.item()
        return _number(value) if isinstance(value, float) else value
    axis = array.dims[0]
    return {str(key): _plain(array.sel({axis: key})) for key in array[axis].to_numpy()}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

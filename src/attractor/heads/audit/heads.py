"""The heads of an audit one by one: what is known of each, as plain numbers and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.heads.audit.result import VARIABLES, Learnable
from attractor.heads.captured.captured import CaptureStatus
from attractor.results import finite_or_none

if TYPE_CHECKING:
    import xarray as xr

NOT_ASKED = str(Learnable.NOT_ASKED)
"""The word for a question that was not asked of a head."""
_PLACE = ("layer", "head")
_ROUNDING = 1e-12

BEATS_NULLS = (Learnable.LEARNABLE, Learnable.POSITIONAL, Learnable.QUERY_FREE)
"""Verdicts on heads that beat the draws of all heads together."""
UNTESTED = (Learnable.TOO_FEW, Learnable.NOT_ASKED)
"""Verdicts on heads that no accuracy was compared of."""
NULLED = ("accuracy_null", "p", "p_together")
"""Variables that every null has its own of."""


ALWAYS = ("accuracy", "accuracy_low", "accuracy_high", *NULLED, "q")
"""Variables that every head has, be it as None."""
_OF_DRAWS = ("mean", "deviation", "largest")
"""What objects say of draws."""


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
    if "accuracy_null" not in data:
        return np.full((data.sizes["layer"], data.sizes["head"]), np.nan)
    draws = _in_order(of_verdict(data, "accuracy_null").transpose(*_PLACE, "draw"))
    above = data["accuracy"].transpose("layer", "head").to_numpy() - draws.mean(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(above) < _ROUNDING, 0.0, above / _spread(draws))


def heads(data: xr.Dataset) -> list[dict[str, Any]]:
    """What is known of every head that was audited, in the order of layers.

    A variable with further axes is an object by their coordinates; of the draws of a null their
    mean, standard deviation and largest remain. What is known for several nulls is that of the
    null that the verdict rests on, and of each under ``nulls``. NaN and infinity are None.

    Args:
        data: The arrays of an audit.
    """
    above = deviations_above_null(data)
    columns = {
        name: column(data, name)
        for name in VARIABLES
        if name in data and "query" not in data[name].dims
    }
    found = []
    for place in np.ndindex(above.shape):
        if not columns["capture"][0][place]:
            continue  # a hole in the table of layers and heads: not audited
        entry: dict[str, Any] = {
            axis: int(data[axis].to_numpy()[at]) for axis, at in zip(_PLACE, place, strict=True)
        }
        entry |= dict.fromkeys(ALWAYS)
        entry |= {name: nested(array[place], axes) for name, (array, axes) in columns.items()}
        by_null = {name: entry[name] for name in NULLED if name in columns}
        entry |= {name: values[data.attrs["null"]] for name, values in by_null.items()}
        nulls = next(iter(by_null.values()), {})
        entry["nulls"] = {
            null: {name: values[null] for name, values in by_null.items()} for null in nulls
        }
        entry["deviations_above_null"] = finite_or_none(above[place])
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
    if one["learnable"] == NOT_ASKED and one["capture"] != CaptureStatus.BILINEAR:
        return f"{one['learnable']}: {one['capture']}"
    return one["learnable"]


def selects(one: dict[str, Any]) -> str:
    """What a head selects, with the share of queries it is true of."""
    words = one["selection"]
    shares = {"sink": "sink_share", "self": "self_share", "offset": "offset_share"}
    share = one.get(shares.get(words.split()[0] if words else "", ""))
    return words if share is None else f"{words} {100 * share:.0f} %"


def asked_for_margins(found: list[dict[str, Any]]) -> bool:
    """Whether any head was asked whether it is at a margin solution."""
    return any(_asked(one.get("margin")) for one in found)


def asked_for_prompts(found: list[dict[str, Any]]) -> bool:
    """Whether any head was asked how long its prompts must be."""
    return any(_asked(one.get("prompt")) for one in found)


def _asked(words: str | None) -> bool:
    return bool(words) and not words.startswith(NOT_ASKED)


def column(
    data: xr.Dataset,
    name: str,
    place: Sequence[str] = _PLACE,
    of_draws: Sequence[str] = _OF_DRAWS,
) -> tuple[np.ndarray, list[Sequence[str]]]:
    """A variable by the place of a head, and the coordinates of what other axes it has.

    Args:
        data: Labeled arrays.
        name: The variable.
        place: The axes that say which head it is.
        of_draws: What is wanted of draws: "mean", "deviation", "smallest", "largest".
    """
    array = data[name]
    drawn = [axis for axis in array.dims if str(axis).endswith("draw")]
    axes = [str(axis) for axis in array.dims if axis not in (*place, *drawn)]
    labels: list[Sequence[str]] = [[str(key) for key in data[axis].to_numpy()] for axis in axes]
    if not drawn:
        return array.transpose(*place, *axes).to_numpy(), labels
    draws = _in_order(array.transpose(*place, *axes, *drawn))
    known = {"mean": draws.mean(-1), "deviation": _spread(draws)}
    known |= {"smallest": draws.min(-1), "largest": draws.max(-1)}
    return np.stack([known[one] for one in of_draws], -1), [*labels, of_draws]


def _in_order(array: xr.DataArray) -> np.ndarray:
    """The numbers, in memory as their axes are: sums depend on it in the last digit."""
    return np.ascontiguousarray(array.to_numpy())


def _spread(draws: Float[np.ndarray, "*axes draw"]) -> Float[np.ndarray, "*axes"]:
    """Standard deviations of draws, of a single one 0."""
    return draws.std(-1, ddof=min(1, draws.shape[-1] - 1))


def nested(value: Any, axes: list[Sequence[str]]) -> Any:
    """A value as JSON takes it: an object by the coordinates of its axes; NaN is None."""
    if axes:
        return {key: nested(one, axes[1:]) for key, one in zip(axes[0], value, strict=True)}
    return str(value) if isinstance(value, str) else finite_or_none(value)

"""The axes that records may run along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.errors import InvalidInputError

if TYPE_CHECKING:
    import xarray as xr

AXES = ("step", "radius", "time", "logarithmic_time", "epoch")
"""Steps of training, radii of a regularization path, time of a flow and its logarithm, epochs."""


def axis_of(data: xr.Dataset | xr.DataArray, argument: str = "data") -> str:
    """The axis that records run along.

    Args:
        data: The records.
        argument: The name to use in the error.

    Raises:
        InvalidInputError: If they run along none, or along several.
    """
    found = [axis for axis in AXES if axis in data.dims]
    if len(found) == 1:
        return found[0]
    known = f"{', '.join(AXES[:-1])} or {AXES[-1]}"
    along = f"{' and '.join(found)}" if found else "nothing"
    raise InvalidInputError(argument, f"they run along {along}", f"Give curves over a {known}")

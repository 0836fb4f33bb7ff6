import numpy as np
import pytest
import xarray as xr

from attractor.results import AXES, axis_of
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("axis", AXES)
def test_the_axis_is_found_among_others(axis):
    assert axis_of(xr.Dataset({"loss": (("seed", axis), np.ones((2, 3)))})) == axis


@pytest.mark.parametrize("dims", [("seed",), ("step", "time")])
def test_none_and_several_are_refused(dims):
    data = xr.DataArray(np.ones((2,) * len(dims)), dims=dims)
    with pytest.raises(InvalidInputError, match=r"curves: they run along .* Give curves over a"):
        axis_of(data, "curves")

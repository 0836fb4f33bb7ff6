"""Norms and dual norms that do not belong together are found."""

import numpy as np
import pytest
from own_geometry import RowSums

from attractor import MarginProblem, solve
from attractor.errors import InvalidInputError
from attractor.geometry import registered_geometries
from attractor.geometry.duality import check_duality


@pytest.mark.parametrize(
    "geometry",
    [one for kind in registered_geometries() for one in kind.examples()],
    ids=lambda geometry: geometry.name,
)
def test_every_geometry_passes(geometry):
    check_duality(geometry)


def dual_of_the_largest_row(self, G):
    return G.__array_namespace__().max(abs(G), axis=(-2, -1))


def norm_of_the_mean_row(self, W):
    return abs(W).sum(-1).mean(-1)


@pytest.mark.parametrize(
    "wrong", [{"dual_norm": dual_of_the_largest_row}, {"norm": norm_of_the_mean_row}]
)
def test_a_dual_norm_that_is_too_small_is_refused_before_anything_is_solved(wrong):
    geometry = type("Wrong", (RowSums,), {"name": "wrong", "__module__": "mine", **wrong})()
    with pytest.raises(InvalidInputError, match=r"geometry: norm and dual_norm of wrong do not"):
        solve(MarginProblem(np.eye(2), np.eye(2)), geometry)

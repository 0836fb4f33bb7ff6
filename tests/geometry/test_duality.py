"""Norms and dual norms that do not belong together are found."""

import numpy as np
import pytest

from attractor import MarginProblem, solve
from attractor.geometry import Geometry, registered_geometries
from attractor.geometry.duality import check_duality
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize(
    "geometry",
    [one for kind in registered_geometries() for one in kind.examples()],
    ids=lambda geometry: geometry.name,
)
def test_every_geometry_passes(geometry):
    check_duality(geometry)


class RowSums(Geometry):
    """The largest sum of absolute values in a row; not registered: other tests do not see it."""

    name = "rows"
    unique = unitarily_invariant = False
    from_name = examples = steepest_descent_direction = dual_norm_constant = norm_rounding = None

    def norm(self, W):
        return abs(W).sum(-1).max(-1)

    def dual_norm(self, G):
        return abs(G).max(-1).sum(-1)


class DualOfTheLargestRow(RowSums):
    def dual_norm(self, G):
        return abs(G).max((-2, -1))


class NormOfTheMeanRow(RowSums):
    def norm(self, W):
        return abs(W).sum(-1).mean(-1)


def test_a_norm_of_ones_own_passes():
    check_duality(RowSums())


@pytest.mark.parametrize("wrong", [DualOfTheLargestRow, NormOfTheMeanRow])
def test_a_dual_norm_that_is_too_small_is_refused_before_anything_is_solved(wrong):
    with pytest.raises(InvalidInputError, match=r"geometry: norm and dual_norm of rows do not"):
        solve(MarginProblem(np.eye(2), np.eye(2)), wrong())

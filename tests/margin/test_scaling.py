import numpy as np
import pytest

from attractor.geometry import Frobenius, Lp, Nuclear, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.scaling import ScaledConstraints

GEOMETRIES = [Frobenius(), Lp(1), Lp(1.5), Lp(3), Lp(np.inf), Nuclear(), Spectral()]


def test_absent_slots_are_zero_whatever_they_held(rng):
    left, right = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3))
    present = np.array([[True, False, True, True], [False, True, True, False]])
    scaled = ScaledConstraints.of(MarginProblem(left, right, present=present))
    for array in (scaled.left, scaled.right, scaled.bounds, scaled.norms):
        assert (array[~present] == 0).all()
        assert (array[present] != 0).any(axis=-1).all()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("equality", [True, False])
def test_what_absent_slots_hold_does_not_matter(rng, geometry, equality):
    left, right = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 4))
    present = np.array([[True, False, True, True, False], [True] * 5])
    held = MarginProblem(left, right, 1.0, equality, present)
    solution = solve(held, geometry)
    for i in range(2):
        kept = present[i]
        alone = solve(MarginProblem(left[i, kept], right[i, kept], 1.0, equality), geometry)
        assert solution.status[i] is alone.status
        np.testing.assert_allclose(solution.norm[i], alone.norm, rtol=3e-9)

"""Grids: every trial lies in exactly one chunk, and what is no grid is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.maps.sweeps import Grid
from attractor.support.errors import InvalidInputError

AXES = st.lists(st.integers(1, 5), min_size=0, max_size=3)


@given(AXES, st.integers(1, 9), st.integers(1, 4), st.integers(1, 60), st.booleans())
def test_every_trial_lies_in_exactly_one_chunk(lengths, instances, seeds, most, compiles):
    axes = {f"axis{k}": list(range(length)) for k, length in enumerate(lengths)}
    grid = Grid(axes, instances, seeds, most, first_instance=7, first_seed=3)
    compiled_by = {"axis0"} if compiles and axes else set()
    shape = grid.chunk_shape(compiled_by)
    assert math.prod(shape) <= most
    covered = np.zeros(grid.shape, dtype=int)
    seen = set()
    for place in np.ndindex(*grid.chunk_counts(shape)):
        chunk = grid.chunk_at(place, shape)
        covered[chunk.region] += 1
        points = chunk.points
        assert chunk.trials == len(points) * len(chunk.instances) * len(chunk.seeds)
        assert all(len({point[name] for point in points}) == 1 for name in compiled_by)
        for point in points:
            for instance in chunk.instances:
                seen |= {(*point.values(), instance, seed) for seed in chunk.seeds}
    assert (covered == 1).all()
    assert len(seen) == grid.trials
    assert {trial[-2] for trial in seen} == set(range(7, 7 + instances))
    assert {trial[-1] for trial in seen} == set(range(3, 3 + seeds))


def test_points_of_a_chunk_are_in_the_order_of_its_arrays():
    grid = Grid({"n": [2, 4], "rate": [0.1, 0.2, 0.3]}, instances=5, chunk=100)
    chunk = grid.chunk_at((0, 0, 0, 0), grid.chunk_shape())
    assert chunk.shape == (2, 3, 5, 1)
    assert chunk.points[1] == {"n": 2, "rate": 0.2} and chunk.points[3] == {"n": 4, "rate": 0.1}


def test_a_chunk_holds_seeds_before_instances_and_these_before_points():
    grid = Grid({"n": [1, 2], "rate": [0.1, 0.2]}, instances=10, seeds=4, chunk=40)
    assert grid.chunk_shape() == (1, 1, 10, 4)
    assert Grid(grid.axes, 10, 4, chunk=8).chunk_shape() == (1, 1, 2, 4)
    assert Grid(grid.axes, 10, 4, chunk=3).chunk_shape() == (1, 1, 1, 3)
    assert Grid(grid.axes, 10, 4, chunk=80).chunk_shape() == (1, 2, 10, 4)
    assert Grid(grid.axes, 10, 4, chunk=80).chunk_shape({"rate"}) == (2, 1, 10, 4)


def test_values_are_plain_ones_of_one_kind():
    grid = Grid({"n": np.array([2, 4]), "rate": [1, 0.5], "rule": ("adam", "muon")}, 1)
    assert grid.axes == {"n": (2, 4), "rate": (1.0, 0.5), "rule": ("adam", "muon")}
    assert all(type(value) is int for value in grid.axes["n"])
    assert (grid.points, grid.trials, Grid({}, 3).points) == (8, 8, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axes": {"n": []}}, r"axes\['n'\]: it has no values"),
        ({"axes": {"n": [2, 4, 2]}}, r"axes\['n'\]: 2 is there twice"),
        ({"axes": {"n": [2, 2.0]}}, r"axes\['n'\]: 2.0 is there twice"),
        ({"axes": {"n": [0.0, -0.0]}}, r"axes\['n'\]: 0.0 is there twice"),
        ({"axes": {"n": ["a", 1]}}, r"axes\['n'\]: \['a', 1\] mixes numbers and texts"),
        ({"axes": {"n": [float("nan")]}}, r"axes\['n'\]: nan is neither"),
        ({"axes": {"n": [True]}}, r"axes\['n'\]: True is neither"),
        ({"axes": {"n": [2**70]}}, r"axes\['n'\]: 1180591620717411303424 is too many"),
        ({"axes": {"n": "adam"}}, r"axes\['n'\]: 'adam' is no list"),
        ({"axes": {"n": 3}}, r"axes\['n'\]: 3 is no list"),
        ({"axes": {"n": range(10**9)}}, r"axes\['n'\]: it has 1,000,000,000 values"),
        ({"axes": {"n-th": [1]}}, "axes: 'n-th' is no name"),
        ({"axes": {"../n": [1]}}, "axes: '../n' is no name"),
        ({"axes": {3: [1]}}, "axes: 3 is no name"),
        ({"axes": {"seed": [1]}}, r"axes\['seed'\]: every grid has this axis"),
        ({"axes": [1, 2]}, r"axes: \[1, 2\] is no mapping"),
        ({"instances": 0}, "instances: 0 is not a count"),
        ({"seeds": 1.5}, "seeds: 1.5 is not a count"),
        ({"chunk": 0}, "chunk: 0 is not a count"),
        ({"first_seed": -1}, "first_seed: -1 is not a count"),
    ],
)
def test_what_is_no_grid_is_refused(arguments, message):
    with pytest.raises(InvalidInputError, match="^" + message):
        Grid(**({"axes": {"n": [2]}, "instances": 1} | arguments))

"""Sizes of data sets in units of each other."""

import numpy as np
import pytest

from attractor.maps.sweeps import Grid, built_in
from attractor.maps.sweeps.experiments import local_optima, margins, train_and_verify
from attractor.maps.sweeps.experiments.parameters import filled_in, token_sizes
from attractor.support.errors import InvalidInputError


def sizes(**point):
    return token_sizes(filled_in(margins.PARAMETERS, point, {}))


def test_sizes_in_units_of_others():
    assert sizes() == (6, 8, 10)
    assert sizes(d=4, n_per_d=0.75, T_per_d=2) == (3, 8, 4)
    assert sizes(d=30, n_per_d=0.1, T_per_d=1.1) == (3, 33, 30)


@pytest.mark.parametrize("experiment", [margins, train_and_verify])
def test_runs_take_them(experiment):
    more = {} if experiment is margins else {"steps": 3}
    found = experiment.run({"n_per_d": 1.5, "d": 2}, np.arange(3), range(1), T_per_d=1, **more)
    told = experiment.run({"n": 3, "d": 2}, np.arange(3), range(1), T=2, **more)
    for name, values in told.items():
        assert np.array_equal(found[name], values, equal_nan=True)


def refused(message, experiment="margins", axes=None, **settings):
    with pytest.raises(InvalidInputError, match=message):
        built_in(experiment, **settings).check_grid(Grid(axes or {"d": [2]}, 1))


@pytest.mark.parametrize("experiment", ["margins", "local_optima", "train_and_verify"])
def test_each_size_is_said_once(experiment):
    refused("n_per_d.*beside n", experiment, {"n_per_d": [1]}, n=3)
    refused("T_per_d.*beside T", experiment, {"T": [4]}, T_per_d=2)


def test_sizes_are_whole_at_every_point():
    refused("0.25 times d = 6 is 1.5", axes={"d": [4, 6]}, n_per_d=0.25)
    refused("at least 2", axes={"d": [2, 4], "T_per_d": [0.5, 1]})
    refused("n_per_d", n_per_d=0)


def test_a_census_knows_how_many_selections_there_are():
    refused("1,048,576 selections", "local_optima", {"d": [10]}, n_per_d=1, T=4)
    assert local_optima.local_optima(n_per_d=1, T=2, d=3).settings["d"] == 3

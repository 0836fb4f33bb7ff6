"""The census of locally optimal selections, beside a plain loop over selections."""

import itertools

import numpy as np
import pytest

import attractor as at
from attractor.maps.sweeps import Grid, built_in
from attractor.maps.sweeps.experiments.local_optima import MEASURES, run
from attractor.margin import check_local_optimality
from attractor.support.errors import InvalidInputError

INSTANCES = np.array([3, 8])
SIZE = {"n": 3, "T": 3, "d": 2}


def test_every_selection_is_tested():
    found = run(SIZE, INSTANCES, range(1))
    tokens, head = at.datasets.unit_tokens(3, 3, 2, seeds=INSTANCES.tolist())
    for place in range(2):
        own, its = tokens[place], at.LinearHead(np.asarray(head.weight)[place])
        feasible, local = {}, {}
        for index in itertools.product(range(3), repeat=3):
            checked = check_local_optimality(own, its, at.Selection.from_index(own, index))
            feasible[index] = bool(np.isfinite(checked.solution.value))
            local[index] = bool(checked.holds)
        best = tuple(int(one) for one in at.optimal_tokens(own, its).index)
        expected = {
            "locally_optimal_selections": sum(local.values()),
            "feasible_selections": sum(feasible.values()),
            "locally_optimal_share": sum(local.values()) / 27,
            "not_certified": 0,
            "optimal_feasible": feasible[best],
            "optimal_locally_optimal": local[best],
            "only_optimal": not any(holds for index, holds in local.items() if index != best),
        }
        assert {name: found[name][place, 0] for name in MEASURES} == expected
        assert 0 < expected["feasible_selections"] < 27


def test_the_norm_decides():
    frobenius = run(SIZE, np.arange(6), range(1))
    other = run(SIZE, np.arange(6), range(1), geometry="l_1")
    assert np.array_equal(frobenius["feasible_selections"], other["feasible_selections"])
    name = "locally_optimal_selections"
    assert not np.array_equal(frobenius[name], other[name])


def test_too_many_selections_are_refused_before_any_work():
    grid = Grid({"n": [3, 6]}, instances=1)
    with pytest.raises(InvalidInputError, match="6 sequences of 8 tokens have 262,144 selections"):
        built_in("local_optima", T=8).check_grid(grid)

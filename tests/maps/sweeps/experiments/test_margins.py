"""Feasibility and margins, beside a plain loop over solve."""

import math
import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

import attractor as at
from attractor.maps.sweeps import Grid, built_in
from attractor.maps.sweeps.experiments.margins import MEASURES, STATUSES, run
from attractor.support.errors import InvalidInputError, Status

CROWDED = {"n": 8, "T": 6, "d": 3}
"""About as many constraints as a matrix of this size can meet: some are feasible, some are not."""
INSTANCES = np.arange(7, 27)


@pytest.mark.parametrize("geometry", ["frobenius", "l_inf"])
def test_margins_are_those_of_solve(geometry):
    found = run(CROWDED, INSTANCES, range(1), geometry=geometry)
    tokens, head = at.datasets.unit_tokens(8, 6, 3, seeds=INSTANCES.tolist())
    problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
    solution = at.solve(problem, geometry)
    solved = np.isfinite(solution.value)
    assert 0 < solved.sum() < len(solved)
    assert np.array_equal(found["feasible"][:, 0] == 1, solved)
    assert np.array_equal(found["margin"][solved, 0], 1 / solution.value[solved])
    assert (found["margin"][~solved] == 0).all()
    assert np.array_equal(found["gap"][solved, 0], solution.gap[solved])
    assert [STATUSES[code] for code in found["status"][:, 0]] == list(solution.status)
    assert set(found) == set(MEASURES)


def test_feasibility_is_that_of_a_linear_program():
    found = run(CROWDED, INSTANCES, range(1))
    tokens, head = at.datasets.unit_tokens(8, 6, 3, seeds=INSTANCES.tolist())
    best = at.optimal_tokens(tokens, head).index
    for place in range(len(INSTANCES)):
        rows = [
            np.outer(tokens.keys[place, i, best[place, i]] - tokens.keys[place, i, t],
                     tokens.queries[place, i, 0]).ravel()
            for i in range(8) for t in range(6) if t != best[place, i]
        ]  # fmt: skip
        answer = linprog(np.zeros(9), -np.array(rows), -np.ones(len(rows)), bounds=(None, None))
        assert found["feasible"][place, 0] == answer.success


def test_the_margin_in_l_inf_is_that_of_a_linear_program():
    found = run(CROWDED, INSTANCES[:4], range(1), geometry="l_inf")
    tokens, head = at.datasets.unit_tokens(8, 6, 3, seeds=INSTANCES[:4].tolist())
    best = at.optimal_tokens(tokens, head).index
    for place in range(4):
        rows = np.array([
            np.outer(tokens.keys[place, i, best[place, i]] - tokens.keys[place, i, t],
                     tokens.queries[place, i, 0]).ravel()
            for i in range(8) for t in range(6) if t != best[place, i]
        ])  # fmt: skip
        largest = linprog(
            np.r_[np.zeros(9), -1.0], np.c_[-rows, np.ones(len(rows))], np.zeros(len(rows)),
            bounds=[*[(-1, 1)] * 9, (0, None)],
        )  # fmt: skip
        assert found["margin"][place, 0] == pytest.approx(-largest.fun, abs=1e-7)


@pytest.mark.long
def test_feasibility_of_pairs_follows_covers_theorem():
    """Of two tokens with random labels every dichotomy of n points in d^2 dimensions is as likely.

    Cover (1965): the share ``2^(1-n) sum_{k < d^2} C(n-1, k)`` of them can be separated.
    """
    draws = 1500
    for n, d in ((6, 2), (8, 2), (11, 2)):
        found = run({"n": n, "T": 2, "d": d}, np.arange(draws), range(1))["feasible"]
        share = sum(math.comb(n - 1, k) for k in range(d * d)) / 2 ** (n - 1)
        error = math.sqrt(share * (1 - share) / draws)
        assert abs(found.mean() - share) < 4 * error, (n, d)


def test_several_seeds_are_refused():
    with pytest.raises(InvalidInputError, match=r"seeds: 2 of them .* margins starts nothing"):
        built_in("margins").check_grid(Grid({"d": [4]}, instances=3, seeds=2))


def test_warnings_stay_within():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(CROWDED, INSTANCES, range(1))


def test_codes_cover_how_problems_end():
    assert set(Status) - set(STATUSES) == {Status.LOCALLY_OPTIMAL}

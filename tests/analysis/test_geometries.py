import numpy as np
import pytest
from margin_examples import random_problem

from attractor.analysis import compare_geometries
from attractor.geometry import Frobenius, Lp, Nuclear, Spectral
from attractor.margin import MarginProblem, solve
from attractor.support.errors import InvalidInputError


def test_every_solution_is_measured_in_every_norm():
    problem = random_problem(1, 4, 4, 5)[0]
    geometries = [Lp(1), Frobenius(), Nuclear(), Spectral()]
    data = compare_geometries(problem, geometries)
    assert data["margin_ratio"].dims == ("geometry", "measured_in")
    ratios = data["margin_ratio"].values
    np.testing.assert_allclose(np.diag(ratios), 1, rtol=1e-8)
    assert (ratios <= 1 + 1e-8).all()
    assert (ratios[~np.eye(4, dtype=bool)] < 0.999).all()
    expected = solve(problem, Nuclear()).value / np.linalg.norm(solve(problem).W, "nuc")
    found = data["margin_ratio"].sel(geometry="frobenius", measured_in="nuclear")
    assert float(found) == pytest.approx(expected)


def test_problems_without_a_solution_are_refused():
    with pytest.raises(InvalidInputError, match="infeasible"):
        compare_geometries(MarginProblem([[1.0], [-1.0]], np.ones((2, 1))), [Frobenius()])
    with pytest.raises(InvalidInputError, match="instances"):
        compare_geometries(random_problem(2, 2, 2, 3), [Frobenius()])


def test_no_geometries_are_refused():
    with pytest.raises(InvalidInputError, match="geometries"):
        compare_geometries(random_problem(1, 2, 2, 3)[0], [])

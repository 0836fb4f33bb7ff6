"""Solutions in every geometry against an independent solver of cone programs."""

import functools

import numpy as np
import pytest
from conic_oracle import (
    conic_value,
    entrywise,
    frobenius,
    nuclear,
    random_small_problem,
    spectral,
    squared_schatten_4,
)
from hypothesis import given, strategies as st

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import solve
from attractor.margin.certificates.certificate import certify
from attractor.support.errors import Status

PROBLEMS = 200
ORACLES = {
    Frobenius(): frobenius,
    Nuclear(): nuclear,
    Spectral(): spectral,
    Schatten(4): squared_schatten_4,
    **{Lp(p): entrywise(p) for p in (1, 1.01, 1.1, 1.5, 1.75, 3, 4, 8, np.inf)},
}
GEOMETRIES = [*ORACLES, *(Schatten(p) for p in (1.01, 1.1, 1.5, 1.75, 3, 8))]


@pytest.fixture(scope="module")
def problems():
    return [random_small_problem(seed) for seed in range(PROBLEMS)]


@pytest.fixture(scope="module")
def solved(problems):
    """Solves the problems of some seeds, once for all tests that ask for them."""

    @functools.cache
    def solutions(geometry, seeds):
        return solve([problems[seed] for seed in seeds], geometry)

    return solutions


first_and_rest = pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(25), id="first"),
        pytest.param(range(25, PROBLEMS), id="rest", marks=pytest.mark.slow),
    ],
)


@first_and_rest
@pytest.mark.parametrize("geometry", ORACLES, ids=lambda g: g.name)
def test_values_agree_with_an_interior_point_solver(geometry, seeds, problems, solved):
    solutions = solved(geometry, seeds)
    for seed, solution in zip(seeds, solutions, strict=True):
        problem = problems[seed]
        assert solution.status is Status.OPTIMAL, seed
        power = 2 if geometry == Schatten(4) else 1
        expected = conic_value(problem, ORACLES[geometry])
        assert solution.value**power == pytest.approx(expected, rel=power * 1e-7, abs=1e-8), seed


@first_and_rest
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_small_problems_are_certified(geometry, seeds, solved):
    solutions = solved(geometry, seeds)
    failed = [
        seed for seed, one in zip(seeds, solutions, strict=True) if one.status is not Status.OPTIMAL
    ]
    assert failed == []
    assert max(solution.gap for solution in solutions) <= 1e-8


@given(st.integers(0, 10**6), st.sampled_from(GEOMETRIES))
def test_no_feasible_matrix_is_smaller_than_any_lower_bound(seed, geometry):
    # Weak duality, whatever W and the multipliers are: a solver has no way around it.
    problem = random_small_problem(seed)
    rng = np.random.default_rng(seed)
    size = len(problem.bounds)
    multipliers = rng.exponential(size=size) * np.where(
        problem.equality & (rng.random(size) < 0.5), -1, 1
    )
    W = rng.normal(size=problem.shape)
    found = certify(problem.batched(), W[None], multipliers[None], geometry)
    optimum = solve(problem, geometry)
    assert found.dual_value[0] <= optimum.value * (1 + 1e-12)
    if np.isfinite(found.gap[0]) and found.value[0] > 0:
        true_gap = (found.value[0] - optimum.value) / found.value[0]
        assert found.gap[0] >= true_gap - 1e-12


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_the_norm_that_is_minimized_is_smaller_than_that_of_any_other_solution(geometry, solved):
    plain = range(0, 96, 8)
    own = solved(geometry, plain)
    for other in (Frobenius(), Lp(1.5), Nuclear()):
        for one, theirs in zip(own, solved(other, plain), strict=True):
            assert one.value <= geometry.norm(theirs.W) * (1 + 1e-8)

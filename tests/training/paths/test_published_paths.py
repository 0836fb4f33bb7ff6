"""Paths at the sizes of the papers, against the numbers published for them."""

import numpy as np
import pytest

from attractor.analysis import verify
from attractor.analysis.measures import directional_bregman_divergence
from attractor.attention import KeyQuery
from attractor.datasets._unit_tokens import unit_tokens as draw_unit_tokens
from attractor.geometry import Lp, Nuclear
from attractor.margin import MarginProblem, solve, solve_factorized
from attractor.margin.selection import optimal_tokens
from attractor.support.errors import TrialStatus
from attractor.training.paths import regularization_path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "parameterization", ("W", "KQ", KeyQuery(2), KeyQuery(1), "p", "(v, p)", "(v, W)"), ids=repr
)
def test_paths_to_radius_ten_thousand_are_stationary_and_fall(parameterization, published_tokens):
    run = regularization_path(*published_tokens(3), parameterization=parameterization)
    assert (run.data["optimality"] < 1e-9).all()
    objective = run.data["log_loss" if "log_loss" in run.data else "log_excess"]
    # Problems of a prompt vector have finite minima here: there the excess stays as it is.
    assert (np.diff(objective, axis=-1) <= 1e-9).all()
    np.testing.assert_array_equal(run.data["status"], TrialStatus.TRAINED)


@pytest.mark.parametrize(
    ("width", "published"), ((10, {316: 7.0e-4, 1000: 7.5e-5}), (2, {316: 7.0e-4, 1000: 7.5e-5}))
)
def test_factors_tend_to_the_nuclear_solution(width, published):
    tokens, head = draw_unit_tokens(6, 8, 10, seeds=[0])
    nuclear = solve(MarginProblem.from_selection(tokens, optimal_tokens(tokens, head)), Nuclear())
    run = regularization_path(
        tokens, head, radii=[30, 100, 316, 1000], parameterization=KeyQuery(width)
    )
    verdict = verify(run, nuclear)
    W, best = run.data["W"].values[0, 0], nuclear.W[0]
    inner = (W * best).sum((-1, -2))
    shortfall = 1 - inner / np.linalg.norm(W, axis=(-1, -2)) / np.linalg.norm(best)
    for radius, value in published.items():
        np.testing.assert_allclose(shortfall[run.steps == radius], value, rtol=0.02)
    K, Q = run.data["K"], run.data["Q"]
    size = (K**2).sum(("row", "width")) + (Q**2).sum(("column", "width"))
    np.testing.assert_allclose(size[0, 0], 2 * run.steps, rtol=1e-9)
    assert float(verdict.margin_ratio[0, 0]) > 0.98


@pytest.mark.parametrize(
    ("shape", "seed", "value"), (((6, 8, 10), 0, 4.93042), ((3, 4, 4), 1, 3.43540))
)
def test_factors_of_one_column_tend_to_their_own_solution(shape, seed, value):
    tokens, head = draw_unit_tokens(*shape, seeds=[seed])
    problem = MarginProblem.from_selection(tokens, optimal_tokens(tokens, head))
    one = solve_factorized(problem, 1)
    np.testing.assert_allclose(one.norm, value, rtol=1e-5)
    run = regularization_path(tokens, head, radii=[100, 1000, 10000], parameterization=KeyQuery(1))
    margin = np.nanmin(problem[0].margins(run.W()[0, 0]))
    assert 1 - 2e-3 < margin / 10000 * value <= 1 + 1e-9
    rate = run.data["log_excess"].values[0, 0, -1] / 10000
    np.testing.assert_allclose(rate, -1 / value, rtol=2e-3)


@pytest.mark.parametrize("p", (1.5, 2, 3))
def test_directions_in_every_power_norm_converge_as_published(p):
    published = {
        1.5: {2: 3.6e-1, 200: 1.6e-3},
        2: {2: 0.37, 5: 0.22, 10: 0.084, 20: 0.031, 50: 6.5e-3, 100: 1.7e-3, 200: 4.6e-4},
        3: {2: 3.1e-1, 200: 1.1e-4},
    }[p]
    tokens, head = draw_unit_tokens(6, 8, 10, seeds=3)
    geometry = Lp(p)
    solution = solve(MarginProblem.from_selection(tokens, optimal_tokens(tokens, head)), geometry)
    radii = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]
    run = regularization_path(tokens, head, geometry, radii=radii)
    assert (run.data["optimality"] < 1e-12).all()
    for instance in range(3):
        W = run.data["W"].values[instance, 0]
        divergence = directional_bregman_divergence(W, solution.W[instance], geometry)
        if instance == 1:
            chosen = [radii.index(radius) for radius in published]
            np.testing.assert_allclose(divergence[chosen], list(published.values()), rtol=0.04)
        slope = np.polyfit(np.log(radii[-4:]), np.log(divergence[-4:]), 1)[0]
        assert -2.15 < slope < -1.65

"""Margin problems of many constraints, solved without a Gram matrix."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conic_oracle import KINDS, random_small_problem
from margin_examples import random_problem, unit

import attractor as at
from attractor.geometry import Frobenius, get_geometry
from attractor.margin import MarginProblem, solve
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import certify
from attractor.margin.large import driver
from attractor.support import memory
from attractor.support.errors import InvalidInputError, Status
from attractor.support.progress import ProgressBar

SILENT = ProgressBar("", None, None)
NORMS = "frobenius nuclear spectral l_1 l_inf l_1.5 l_3 schatten_1.5 schatten_4".split()


def solve_at_large(problem, norm="frobenius", tolerance=1e-9, progress=SILENT):
    """W, multipliers, certificate and status by the methods for many constraints."""
    geometry = get_geometry(norm)
    scaled = ScaledConstraints.of(problem.batched())
    *found, certificate, status = driver.solve_large(scaled, geometry, tolerance, progress, ())
    return tuple(part[0] for part in (*scaled.restore(*found), certificate, status))


def planted_problem(n, T, d, seed=0, apart=None, query_rank=None):
    """The favorite tokens of a random matrix, which that matrix therefore separates."""
    rng = np.random.default_rng(seed)
    keys, queries = rng.normal(size=(n, T, d)), rng.normal(size=(n, d))
    if query_rank is not None:
        queries = rng.normal(size=(n, query_rank)) @ rng.normal(size=(query_rank, d))
    if apart is not None:
        keys[:, 1::4] = keys[:, ::4] + apart * rng.normal(size=keys[:, ::4].shape)
    tokens = at.Tokens(unit(keys), unit(queries))
    index = tokens.scores(rng.normal(size=(d, d)))[:, 0].argmax(-1)
    return MarginProblem.from_selection(tokens, at.Selection.from_index(tokens, index))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", range(KINDS))
def test_every_kind_of_problem_is_certified_in_every_norm(norm, kind):
    for seed in (kind, kind + KINDS):
        W, _, certificate, status = solve_at_large(random_small_problem(seed), norm)
        assert status is Status.OPTIMAL
        assert certificate.gap <= 1e-9
        assert np.isfinite(W).all()


@pytest.mark.parametrize("shape", [(6, 8, 10), (5, 5, 5), (8, 10, 6)])
def test_agrees_with_the_dense_method(shape):
    problem = random_problem(1, *shape, seed=3)[0]
    dense = solve(problem)
    W, multipliers, _, status = solve_at_large(problem, tolerance=1e-12)
    assert status is dense.status
    if status is Status.OPTIMAL:
        np.testing.assert_allclose(W, dense.W, atol=1e-9 * np.abs(dense.W).max())
        np.testing.assert_allclose(multipliers, dense.multipliers, atol=1e-8)


@pytest.mark.long
def test_a_problem_of_medium_size_agrees_with_the_dense_method(monkeypatch):
    problem = planted_problem(32, 64, 40)
    large = solve(problem)
    assert driver.is_large(len(problem.bounds))
    monkeypatch.setattr("attractor.margin.large.driver._MOST_DENSE", 10**9)
    dense = solve(problem)
    assert large.status is dense.status is Status.OPTIMAL
    assert large.value == pytest.approx(dense.value, rel=2e-9)
    np.testing.assert_allclose(large.W, dense.W, atol=1e-4 * np.abs(dense.W).max())
    np.testing.assert_array_equal(large.support, dense.support)


@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-6])
def test_near_duplicate_tokens_and_queries_of_low_rank(apart):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(64, 40, 48))
    keys[:, 1::4] = keys[:, ::4] + apart * rng.normal(size=keys[:, ::4].shape)
    queries = rng.normal(size=(64, 12)) @ rng.normal(size=(12, 48))
    tokens = at.Tokens(unit(keys), unit(queries))
    problem = MarginProblem.from_selection(
        tokens, at.Selection.from_index(tokens, rng.integers(0, 40, size=64))
    )
    solution = solve(problem, tolerance=1e-6)
    if solution.status is Status.INFEASIBLE:
        vanishing = problem.apply_adjoint(solution.multipliers)
        assert np.abs(vanishing).max() < 1e-10 * np.abs(solution.multipliers).sum()
        return
    assert solution.status is Status.OPTIMAL
    margins = problem.margins(solution.W)
    assert margins.min() > 1 - 1e-6


@pytest.mark.parametrize("norm", ["nuclear", "l_1.5", "spectral"])
def test_many_constraints_in_other_norms(norm):
    problem, geometry = planted_problem(40, 60, 12), get_geometry(norm)
    solution = solve(problem, geometry, tolerance=1e-6)
    assert solution.status is Status.OPTIMAL
    # Both bounds again, from the definition alone.
    assert problem.margins(solution.W).min() > 1 - 1e-6
    combined = problem.apply_adjoint(solution.multipliers)
    lower = solution.multipliers.sum() / geometry.dual_norm(combined)
    assert geometry.norm(solution.W) - lower <= 2e-6 * lower
    assert solution.multipliers.min() >= 0


@pytest.mark.parametrize("norm", ["frobenius", "nuclear"])
def test_a_contradiction_among_many_constraints_is_proved(norm):
    problem = random_problem(1, 60, 60, 12, seed=1)[0]
    solution = solve(problem, get_geometry(norm))
    assert solution.status is Status.INFEASIBLE
    assert np.isnan(solution.W).all()
    assert solution.multipliers.min() >= 0
    assert solution.multipliers.sum() == pytest.approx(1)
    assert np.abs(problem.apply_adjoint(solution.multipliers)).max() < 1e-12


def test_constraints_that_are_zero_or_repeated():
    problem = planted_problem(10, 20, 8)
    left, right = np.vstack([problem.left] * 2), np.vstack([problem.right] * 2)
    left, right = np.vstack([left, np.zeros((2, 8))]), np.vstack([right, right[:2]])
    bounds = np.append(np.ones(len(left) - 2), [0.0, -1.0])
    twice = MarginProblem(left, right, bounds)
    assert solve_at_large(twice)[2].value == pytest.approx(solve(problem).value, rel=1e-8)
    impossible = MarginProblem(left, right, np.ones(len(left)))
    _, multipliers, _, status = solve_at_large(impossible)
    assert status is Status.INFEASIBLE
    assert np.flatnonzero(multipliers).tolist() == [len(left) - 2]


def test_nothing_asked_gives_zero():
    a = np.random.default_rng(0).normal(size=(5, 3))
    for norm in ("frobenius", "nuclear"):
        W, multipliers, _, status = solve_at_large(MarginProblem(a, a, -1.0), norm)
        assert status is Status.OPTIMAL
        assert not W.any() and not multipliers.any()


def test_scales_do_not_matter():
    problem = planted_problem(10, 20, 8)
    scaled = MarginProblem(1e90 * problem.left, 1e-40 * problem.right, 1e30)
    value = solve_at_large(problem)[2].value
    assert solve_at_large(scaled)[2].value == pytest.approx(value * 1e-20, rel=1e-8)


def test_batches_and_lists_with_large_instances(monkeypatch):
    monkeypatch.setattr("attractor.margin.large.driver._MOST_DENSE", 10)
    problems = random_problem(3, 4, 5, 6)
    batch = solve(problems)
    alone = solve(list(problems))
    for i, one in enumerate(alone):
        np.testing.assert_array_equal(batch.W[i], one.W)
        assert one.status is Status.OPTIMAL


def test_rounding_is_bounded_in_portions(monkeypatch):
    problem = planted_problem(40, 60, 12).batched()
    solution = solve(problem)
    whole = certify(problem, solution.W, solution.multipliers, Frobenius())
    monkeypatch.setattr("attractor.margin.certificates.certificate._MOST_EXTENDED", 0)
    coarse = certify(problem, solution.W, solution.multipliers, Frobenius())
    assert 0 <= coarse.gap[0] - whole.gap[0] < 1e-10
    assert coarse.value[0] == pytest.approx(whole.value[0], rel=1e-10)


def test_too_much_for_the_memory_is_refused(monkeypatch):
    problem = planted_problem(40, 60, 12)
    monkeypatch.setattr(memory, "_TRIFLE", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 1e6)
    with pytest.raises(InvalidInputError, match=r"2,360 constraints on a 12 x 12 matrix") as error:
        solve(problem)
    assert error.value.argument == "problem"
    fitting = int(error.value.remedy.split("about ")[1].split(" ")[0].replace(",", ""))
    assert 0 < fitting < 2360
    solve(MarginProblem(problem.left[:fitting], problem.right[:fitting]))


def test_too_many_constraints_to_write_down_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "_TRIFLE", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 6e3)
    with pytest.raises(InvalidInputError, match=r"42 constraints .* would take") as error:
        random_problem(1, 6, 8, 10)
    assert error.value.argument == "tokens"


class Recorder(ProgressBar):
    """Keeps what it is told."""

    def __init__(self):
        super().__init__("", None, None)
        self.amounts, self.notes = [], []

    def __call__(self, amount):
        self.amounts.append(amount)

    def note(self, text):
        self.notes.append(text)


@pytest.mark.parametrize("norm", ["frobenius", "nuclear"])
def test_progress_moves_on_as_the_gap_falls(norm):
    told = Recorder()
    solve_at_large(planted_problem(10, 20, 8), norm, progress=told)
    assert sum(told.amounts) == pytest.approx(1)
    assert min(told.amounts) >= 0
    assert len(told.amounts) > 3
    assert told.notes[0].startswith("stage 1, gap ")


@pytest.mark.slow
@pytest.mark.parametrize("case", range(3))
def test_full_size(case):
    from benchmarks.large_problems import CASES, TOLERANCE, Measured

    chosen = list(CASES.values())[case]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.large_problems", json.dumps(chosen._asdict())],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    measured = Measured(*map(float, done.stdout.split()))
    assert measured.constraints == 32256
    assert measured.gap <= TOLERANCE
    assert measured.gigabytes < 2

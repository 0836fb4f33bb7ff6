"""Margin problems in norms of blocks, against cone programs and against single blocks."""

import functools

import cvxpy as cp
import numpy as np
import pytest
from certificate_examples import load_checker, through_json
from conic_oracle import KINDS, conic_value, of_kind

from attractor.geometry import get_geometry
from attractor.margin import MarginProblem, solve
from attractor.margin.certificates.certificate_file import contents
from attractor.support.errors import Status

SEVERAL = [
    "max(spectral[: by 2])",
    "max(frobenius[: by 2])",
    "max(3 spectral[0:2], l_inf[2:])",
    "max(nuclear[0:4], 0.5 l_1[4:])",
    "max(l_3[: by 2])",
    "sum(frobenius[: by 2])",
    "sum(spectral[0:2], 2 l_1.5[2:4], l_inf[4:])",
]
checker = load_checker()
in_each = pytest.mark.parametrize("name", SEVERAL)


def block_problem(seed, d=6):
    """A feasible problem whose constraints lie in blocks of two rows, in none, or some in blocks.

    Kinds take turns as in ``random_small_problem``.
    """
    rng, kind = np.random.default_rng(seed), seed % KINDS
    e, m = int(rng.integers(1, 5)), int(rng.integers(1, 13))
    a, b, target = rng.normal(size=(m, d)), rng.normal(size=(m, e)), rng.normal(size=(d, e))
    if seed % 3 < 2:
        place = rng.integers(0, 3 if seed % 3 else 5, size=(m, 1))
        a = np.where((np.arange(d) // 2 == place) | (place > 2), a, 0.0)
    a, b = of_kind(kind, a, b, rng)
    equality = rng.random(m) < (0.3 if kind in (5, 6) else 0)
    margins = np.einsum("jd,de,je->j", a, target, b)
    if kind in (4, 5, 6):
        slack = np.where(equality, 0, rng.exponential(size=m))
        return MarginProblem(a, b, margins - slack, equality)
    a = a * (rng.uniform(1, 3, size=m) / margins)[:, None]
    return MarginProblem(a, b, np.where(rng.random(m) < (0.4 if kind == 7 else 0), 0.0, 1.0))


def objective(geometry, W):
    """The norm as a convex program has it."""

    def of_block(V, norm):
        named = {"spectral": cp.sigma_max, "nuclear": cp.normNuc}
        of_entries = functools.partial(cp.pnorm, p=getattr(norm, "p", 2))
        return named.get(norm.name, lambda V: of_entries(cp.vec(V, order="C")))(V)

    sizes = [
        piece.weight * of_block(W[piece.rows, piece.columns], piece.geometry)
        for piece in geometry.pieces(W.shape)
    ]
    return cp.maximum(*sizes) if geometry.word == "max" else sum(sizes), []


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(4), id="first"),
        pytest.param(range(4, 200), id="rest", marks=pytest.mark.slow),
    ],
)
@in_each
def test_values_agree_with_an_interior_point_solver(name, seeds):
    geometry = get_geometry(name)
    for seed in seeds:
        problem = block_problem(seed)
        solution = solve(problem, geometry)
        assert solution.status is Status.OPTIMAL, seed
        expected = conic_value(problem, functools.partial(objective, geometry))
        assert solution.value == pytest.approx(expected, rel=1e-7, abs=1e-8), seed
        assert solution.dual_value <= expected * (1 + 1e-7) + 1e-8, seed
        proved = checker.verify(through_json(contents(solution)))
        assert proved.startswith("optimal to "), seed


def heads(count=3, m=9, d=3, e=4):
    """Problems of heads that never meet, and that of the heads stacked along rows."""
    rng = np.random.default_rng(0)
    alone, left = [], np.zeros((count * m, count * d))
    for h in range(count):
        a, b, W = rng.normal(size=(m, d)), rng.normal(size=(m, e)), rng.normal(size=(d, e))
        a *= np.sign(np.einsum("md,de,me->m", a, W, b))[:, None]
        alone.append(MarginProblem(a, b))
        left[h * m : (h + 1) * m, h * d : (h + 1) * d] = a
    return alone, MarginProblem(left, np.concatenate([problem.right for problem in alone]))


@pytest.mark.parametrize("norm", ["spectral", "frobenius", "nuclear", "l_inf", "l_1", "l_3"])
def test_heads_that_never_meet_are_solved_as_if_each_stood_alone(norm):
    alone, stacked = heads()
    each = [solve(problem, norm) for problem in alone]
    values = [solution.value for solution in each]
    largest, total = (solve(stacked, f"{word}({norm}[: by 3])") for word in ("max", "sum"))
    for solution, value in ((largest, max(values)), (total, sum(values))):
        assert solution.status is Status.OPTIMAL
        assert solution.value == pytest.approx(value, rel=1e-12)
        np.testing.assert_array_equal(solution.W, np.concatenate([one.W for one in each]))
    carried = largest.multipliers.reshape(3, -1).any(-1)
    assert carried.tolist() == [value == max(values) for value in values]
    assert str(largest.uniqueness) == "not unique"  # heads below the largest are free
    assert largest.norm == pytest.approx(largest.geometry.norm(largest.other_solution), rel=1e-9)


@pytest.mark.parametrize("norm", ["spectral", "frobenius", "l_inf", "l_1.5"])
def test_one_block_is_the_plain_norm_bit_for_bit(norm):
    problem = heads()[0][0]
    plain = solve(problem, norm)
    for word in ("max", "sum"):
        found = solve(problem, f"{word}({norm}[:])")
        np.testing.assert_array_equal(found.W, plain.W)
        assert (found.value, str(found.uniqueness)) == (plain.value, str(plain.uniqueness))


def test_an_instance_is_the_same_alone_and_in_any_batch():
    problems = [block_problem(seed) for seed in (0, 24, 2)]  # apart, apart, joined
    e = max(problem.shape[1] for problem in problems)
    wide = [
        MarginProblem(p.left, np.pad(p.right, ((0, 0), (0, e - p.shape[1]))), p.bounds, p.equality)
        for p in problems
    ]
    m = max(len(p.bounds) for p in wide)
    slots = [np.pad(np.ones(len(p.bounds), bool), (0, m - len(p.bounds))) for p in wide]
    padded = [
        [
            np.pad(array, ((0, m - len(array)), *[(0, 0)] * (array.ndim - 1)))
            for array in (p.left, p.right, p.bounds, p.equality)
        ]
        for p in wide
    ]
    batch = MarginProblem(*(np.stack(arrays) for arrays in zip(*padded, strict=True)), slots)
    together = solve(batch, "max(frobenius[: by 2])")
    for i, problem in enumerate(wide):
        alone = solve(problem, "max(frobenius[: by 2])")
        np.testing.assert_array_equal(together.W[i], alone.W)
        np.testing.assert_array_equal(together.multipliers[i][slots[i]], alone.multipliers)


@in_each
def test_a_contradiction_in_one_block_is_one_in_all(name):
    left = np.zeros((3, 6))
    left[0, 0], left[1, 0], left[2, 4] = 1, -2, 1
    solution = solve(MarginProblem(left, np.ones((3, 1))), name)
    assert solution.status is Status.INFEASIBLE
    assert np.flatnonzero(solution.multipliers).tolist() == [0, 1]
    assert checker.verify(through_json(contents(solution))).startswith("infeasible, 2 ")


@pytest.mark.parametrize("word", ["max", "sum"])
def test_weights_and_bounds_of_all_sizes(word):
    # Blocks that never meet, and one constraint on both by hand.
    name = f"{word}(1e-8 l_inf[0:1], 1e8 l_inf[1:2])"
    apart = MarginProblem(np.eye(2), np.ones((2, 1)), [1e5, 1e-5])
    solution = solve(apart, name)
    assert solution.status is Status.OPTIMAL
    np.testing.assert_allclose(solution.W[:, 0], [1e5, 1e-5], rtol=1e-12)
    assert solution.value == pytest.approx(1e3 if word == "max" else 1000.001, rel=1e-12)
    both = solve(MarginProblem([[1.0, 1.0]], [[1.0]]), name)
    wanted = 1 / (1e8 + 1e-8) if word == "max" else 1e-8
    assert both.status is Status.OPTIMAL
    assert both.value == pytest.approx(wanted, rel=1e-9)


def test_feasible_problems_that_need_a_block_of_large_weight_are_never_called_infeasible():
    # Without the second block they contradict each other; with it, its sum of constraints counts
    # for nearly nothing in the dual norm.
    problem = MarginProblem([[1.0, 1.0], [-1.0, 1.0]], [[1.0], [1.0]])
    for name in ("max(1e-8 l_1[0:1], 1e8 l_1[1:2])", "sum(1e-8 l_1[0:1], 1e8 l_1[1:2])"):
        solution = solve(problem, name)
        assert solution.status is Status.OPTIMAL
        assert solution.value == pytest.approx(1e8, rel=1e-9)


@in_each
def test_hostile_problems(name):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(1, 6)), rng.normal(size=(1, 3))
    one = solve(MarginProblem(a, b), name)
    dual = one.geometry.dual_norm(a.T @ b)
    assert one.value == pytest.approx(1 / dual, rel=1e-9)
    copies = solve(MarginProblem(np.repeat(a, 4, 0), np.repeat(b, 4, 0)), name)
    assert copies.value == pytest.approx(1 / dual, rel=1e-9)
    for scale in (1e-150, 1e150):
        scaled = solve(MarginProblem(scale * a, b), name)
        assert scaled.value * scale == pytest.approx(1 / dual, rel=1e-9)
    idle = solve(MarginProblem(np.vstack([a, 0 * a]), np.vstack([b, b]), [1.0, 0.0]), name)
    assert idle.value == pytest.approx(1 / dual, rel=1e-9)
    assert solve(MarginProblem(a, b, -1.0), name).value == 0

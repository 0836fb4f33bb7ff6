import numpy as np
import pytest

import attractor as at
from attractor import plots
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    equality = np.arange(7) == 6
    return at.MarginProblem(rng.normal(size=(7, 4)), rng.normal(size=(7, 3)), equality=equality)


def test_margins_are_those_of_the_inequalities_and_support_is_marked(problem):
    solution = at.solve(problem, at.Nuclear())
    matrix, values, margins, bar = solution.plot().axes
    largest = np.abs(solution.W).max()
    np.testing.assert_allclose(matrix.images[0].get_array(), solution.W / largest)
    assert bar.get_ylabel() == f"entry over the largest,\n{largest:.3g}"
    heights = [bar.get_height() for bar in values.patches]
    np.testing.assert_allclose(heights, np.linalg.svd(solution.W, compute_uv=False))
    assert values.get_title(loc="left") == f"rank {solution.rank}"
    others, support = (points.get_offsets().data for points in margins.collections)
    wanted = np.einsum("md,de,me->m", problem.left, solution.W, problem.right)[:6]
    np.testing.assert_allclose(np.sort(np.r_[others[:, 1], support[:, 1]]), np.sort(wanted))
    assert len(support) == solution.support[:6].sum() > 0
    np.testing.assert_allclose(support[:, 1], 1, atol=1e-6)


def test_a_rank_that_is_not_proven_is_a_bound(problem):
    solution = at.solve(problem)
    rank = int(solution.rank)
    title = plots.solution_figure(solution).axes[1].get_title(loc="left")
    assert title == (f"rank {rank}" if rank == 3 else f"rank at least {rank}")


def test_several_solutions_and_none_are_refused():
    opposite = at.solve(at.MarginProblem([[1.0, 0], [-1, 0]], [[1.0], [1]]))
    with pytest.raises(InvalidInputError, match="it is infeasible and has no matrix"):
        opposite.plot()
    several = at.solve(at.MarginProblem(np.ones((2, 1, 2)), np.ones((2, 1, 2))))
    with pytest.raises(InvalidInputError, match=r"it holds 2 instances. Take one .*solution\[0\]"):
        several.plot()
    assert several[0].plot().axes


def test_a_legend_covers_no_margin(problem):
    for given in (problem, at.MarginProblem(np.eye(3), np.eye(3))):
        figure = at.solve(given).plot()
        figure.draw_without_rendering()
        axes = figure.axes[2]
        legend = axes.get_legend().get_window_extent()
        for points in axes.collections:
            places = points.get_offsets().data
            assert not any(legend.contains(*axes.transData.transform(place)) for place in places)

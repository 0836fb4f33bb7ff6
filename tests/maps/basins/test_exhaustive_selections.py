"""Every selection of small data sets, started along its own margin solution.

*Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), local convergence of
gradient descent: locally optimal selections are kept from a radius on that can be computed, and
no other selection is.
"""

import numpy as np
import pytest

import attractor as at

STEPS = 6000
RADIUS = 300.0


def kept_and_left(tokens, head, step):
    """Locally optimal selections and others, whether each is kept, and its correlation."""
    census = at.locally_optimal_selections(tokens, head)
    assert census.feasible.all() and len(census) == 64
    copies = at.Tokens(
        *(np.broadcast_to(a, (64, *a.shape)) for a in (tokens.keys, tokens.queries, tokens.labels))
    )
    solution = at.solve(at.MarginProblem.from_selection(copies, census.selections))
    unit = solution.W / solution.norm[:, None, None]
    radius = np.full(64, RADIUS)
    for number in np.flatnonzero(census.locally_optimal):
        radius[number] = at.margin.attracting_cone(tokens, head, census.selections[number]).radius
    starts = (radius[:, None, None] * unit)[..., 0]
    run = at.train(
        tokens, head, step, steps=STEPS, seeds=64, initial=starts[None],
        parameterization="p", record=[STEPS],
    )  # fmt: skip
    W = run.W()[0]
    end = at.attended_tokens(tokens, W)
    kept = (end.mask == census.selections.mask).all((1, 2, 3))
    correlation = (W * unit).sum((1, 2)) / np.linalg.norm(W, axis=(1, 2))
    return census.locally_optimal, kept, correlation


def check(data, step, count):
    optimal, kept, correlation = kept_and_left(*data, step)
    assert int(optimal.sum()) == count
    np.testing.assert_array_equal(kept, optimal)
    assert correlation[optimal].min() > 0.9999
    assert correlation[~optimal].max() < 0.95


def test_exactly_the_locally_optimal_selections_are_kept(unit_data_set, step):
    check(unit_data_set(1), step, 6)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count"), list(enumerate([3, 6, 1, 1, 2, 1, 1, 4, 1, 3])))
def test_in_ten_data_sets(seed, count, unit_data_set, step):
    check(unit_data_set(seed), step, count)


@pytest.mark.slow
def test_a_radius_of_300_is_not_always_enough(unit_data_set, step):
    tokens, head = unit_data_set(7)
    selection = at.Selection.from_index(tokens, [1, 3, 2])
    cone = at.margin.attracting_cone(tokens, head, selection)
    assert cone.radius == pytest.approx(1819, rel=0.01)
    unit = cone.solution.W / cone.solution.norm
    for radius, kept in ((300, False), (1000, True)):
        start = (radius * unit)[:, 0]
        run = at.train(tokens, head, step, steps=STEPS, initial=start, parameterization="p")
        assert (at.attended_tokens(tokens, run.W()[0, 0]) == selection) == kept

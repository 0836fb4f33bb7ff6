"""Training keeps a selection it starts at if and only if that is locally optimal."""

import numpy as np
import pytest

import attractor as at
from attractor.margin import attracting_cone, locally_optimal_selections
from attractor.papers import Outcome, examine, get_claim
from attractor.papers.max_margin.claims.descent import every_locally_optimal
from attractor.papers.max_margin.data import random_prompt_data

pytestmark = pytest.mark.usefixtures("optimized")  # they train for long

CAP = 300.0


@pytest.mark.parametrize(
    ("seed", "count", "kept_cosine", "lost_cosine"),
    [(0, 3, 0.999986, 0.875), (1, 6, 0.999997, 0.902), (2, 1, 0.99998, 0.687)],
)
def test_all_selections_of_a_data_set(seed, count, kept_cosine, lost_cosine):
    case = random_prompt_data(seed, 3, 4, 8)
    census = locally_optimal_selections(case.tokens, case.head)
    assert census.feasible.all() and census.locally_optimal.sum() == count
    solutions = [case.solution(selection=census.selections[k]) for k in range(64)]
    directions = np.stack([solution.W[:, 0] / solution.value for solution in solutions])
    starts = CAP * directions
    for k in np.flatnonzero(census.locally_optimal):
        cone = attracting_cone(case.tokens, case.head, census.selections[k], solutions[k])
        starts[k] = min(CAP, float(cone.radius)) * directions[k]
    run = at.train(
        case.tokens, case.head, at.normalized_gradient_descent(0.1), steps=6000, record=[6000],
        seeds=64, initial=starts[None], parameterization="p",
    )  # fmt: skip
    W = run.W()[0]
    reached = case.tokens.scores(W).argmax(-1)[..., None] == np.arange(4)
    kept = (reached == census.selections.mask).all((-1, -2, -3))
    np.testing.assert_array_equal(kept, census.locally_optimal)
    cosine = (W[..., 0] * directions).sum(-1) / np.linalg.norm(W, axis=(-1, -2))
    assert cosine[kept].min() >= kept_cosine
    assert cosine[~kept].max() <= lost_cosine


def test_a_radius_shorter_than_that_of_the_cone_would_lose_one():
    claim = get_claim("max-margin/local-convergence")
    case = next(
        case
        for case in every_locally_optimal(random_prompt_data(7, 3, 4, 8))
        if case.chosen.index.tolist() == [1, 3, 2]
    )
    cone = attracting_cone(case.tokens, case.head, case.selection)
    assert float(cone.radius) == pytest.approx(1819, abs=1)
    found = examine(claim, case)
    assert found.outcome is Outcome.HOLDS, found.reason
    assert found.measured.details["starts that keep the selection"] == 5
    direction = case.solution().W[:, 0] / float(case.solution().value)
    outside = examine(claim, case.replace(initial=CAP * direction))
    assert outside.outcome is Outcome.VACUOUS
    inside = examine(claim, case.replace(initial=1820 * direction))
    assert inside.outcome is Outcome.HOLDS

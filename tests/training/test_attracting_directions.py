"""Which directions attract: the locally optimal ones, and no others."""

import numpy as np
import pytest

from attractor.attention import LinearHead
from attractor.geometry import Frobenius
from attractor.margin import MarginProblem, check_local_optimality, solve
from attractor.margin.selection import Selection
from attractor.training import normalized_gradient_descent, train


@pytest.mark.long
def test_training_leaves_every_direction_that_is_not_locally_optimal(published_tokens):
    """Started exactly on the ray of a feasible selection, at two distances from zero."""
    tokens, head = published_tokens(100)
    alpha = np.random.default_rng(0).integers(8, size=(100, 6))
    selection = Selection.from_index(tokens, alpha)
    solution = solve(MarginProblem.from_selection(tokens, selection), Frobenius())
    optimal = check_local_optimality(tokens, head, selection, solution).holds
    use = np.isfinite(solution.W).all((-1, -2)) & ~optimal
    assert use.sum() >= 90
    ray = solution.W[use] / np.linalg.norm(solution.W[use], axis=(-2, -1), keepdims=True)
    run = train(
        tokens[use],
        LinearHead(head.weight[use]),
        normalized_gradient_descent(0.1),
        steps=600,
        seeds=2,
        initial=np.stack([30 * ray, 100 * ray], axis=1),
        record=[0],
    )
    attended = run.data["attended"].to_numpy()[..., 0]
    kept = (attended == alpha[use][:, None, None]).all(-1)
    assert kept[..., 0].all()
    assert not kept[..., -1].any()

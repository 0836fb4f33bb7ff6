"""The loss as claims measure it, against the loss that training descends."""

import jax.numpy as jnp
import numpy as np
import pytest

import attractor as at
from attractor.attention import AttentionMatrix, get_loss, mean_loss
from attractor.attention.rows import attention_rows
from attractor.papers import Case
from attractor.papers.max_margin.claims.objective import (
    log_excess,
    loss_of_keeping,
    losses,
)
from attractor.papers.max_margin.data import one_sequence, three_sequences
from attractor.papers.measurements.gradients import along, descent_directions, random_matrices
from attractor.support.precision import double_precision


@pytest.fixture
def several_queries():
    """Two sequences, two queries each with masks of their own, and a head of two numbers."""
    random = np.random.default_rng(1)
    mask = np.ones((2, 2, 4), dtype=bool)
    mask[0, 1, 2:] = False
    labels = np.array([[1.0, -1], [-1, 1]])
    tokens = at.Tokens(
        random.standard_normal((2, 4, 3)), random.standard_normal((2, 2, 3)), labels, mask,
        random.standard_normal((2, 4, 2)),
    )  # fmt: skip
    return Case(tokens, at.LinearHead(random.standard_normal(2)))


def test_losses_and_their_excess(several_queries):
    case = several_queries
    matrices = np.random.default_rng(2).standard_normal((5, 3, 3))
    with double_precision():
        rows = attention_rows(case.tokens)
        expected = [
            float(
                mean_loss(AttentionMatrix(), get_loss("logistic"), jnp.asarray(W), case.head, rows)
            )
            for W in matrices
        ]
    found = losses(case, matrices)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    least = loss_of_keeping(case, case.optimal)
    np.testing.assert_allclose(
        log_excess(case, matrices, case.optimal), np.log(found - least), rtol=1e-9
    )


def test_the_gradient_points_down(several_queries):
    matrices = random_matrices(several_queries, 0, each=3)
    directions = descent_directions(several_queries, matrices)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=(-1, -2)), 1)
    moderate = matrices[:6]
    ahead = losses(several_queries, moderate + 1e-6 * directions[:6])
    behind = losses(several_queries, moderate - 1e-6 * directions[:6])
    assert (ahead < behind).all()


def test_lengths_are_those_of_the_solution():
    case = three_sequences()
    norm = float(case.solution().value)
    found = np.linalg.norm(random_matrices(case, 0, each=2), axis=(-1, -2)) / norm
    np.testing.assert_allclose(found, np.repeat([0.1, 1, 5, 30], 2))
    np.testing.assert_allclose(along(case.solution().W, (2.0,))[0], 2 * case.solution().W)


def test_far_out_only_the_logarithm_tells():
    case = one_sequence(equal_scores=True)
    far = along(case.solution().W, (50.0, 1000.0))
    assert losses(case, far)[1] == loss_of_keeping(case, case.optimal)
    logs = log_excess(case, far, case.optimal)
    np.testing.assert_allclose(np.diff(logs), -950, atol=1e-2)

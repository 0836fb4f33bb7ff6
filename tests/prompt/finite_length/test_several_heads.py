"""The error of several heads whose outputs add up."""

import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt import AttentionHead, finite_length_error, multi_head_output_error

LENGTHS = np.array([1, 2, 9, 300])


def some_heads(count: int, seed: int = 0, size: float = 0.5) -> list[AttentionHead]:
    rng = np.random.default_rng(seed)
    return [
        AttentionHead(size * rng.standard_normal((3, 2)), rng.standard_normal((4, 3)))
        for _ in range(count)
    ]


def test_one_head_has_its_own_error():
    (head,), query = some_heads(1), np.random.default_rng(1).standard_normal((5, 1, 2))
    covariance = np.diag([1.0, 0.5, 0.0])
    known = finite_length_error(covariance, head.score_matrix, head.value_matrix, query, LENGTHS)
    found = multi_head_output_error(covariance, [head], query, LENGTHS)
    assert found.shape == (5, 4)
    np.testing.assert_allclose(found, known.output, rtol=1e-9)


def test_a_head_split_in_two_is_that_head():
    (head,), query = some_heads(1), np.array([1.0, -0.5])
    parts = [AttentionHead(head.score_matrix, share * head.value_matrix) for share in (1.5, -0.5)]
    whole = multi_head_output_error(np.eye(3), [head], query, LENGTHS)
    np.testing.assert_allclose(
        multi_head_output_error(np.eye(3), parts, query, LENGTHS), whole, rtol=1e-9
    )


def test_sampled_prompts_agree():
    heads, query, length = some_heads(3), np.array([0.8, -1.0]), 7
    factor = np.array([[1.0, 0.0, 0.0], [0.5, 0.8, 0.0], [0.0, -0.3, 0.6]])
    gamma = factor @ factor.T
    tokens = 2.0 + np.random.default_rng(2).standard_normal((60_000, length, 3)) @ factor.T
    off = 0.0
    for head in heads:
        a = np.asarray(head.score_matrix) @ query
        p = np.exp((tokens - 2.0) @ a)
        mean = np.einsum("nl,nld->nd", p / p.sum(1, keepdims=True), tokens)
        off = off + (mean - 2.0 - gamma @ a) @ np.asarray(head.value_matrix).T
    squares = (off**2).sum(-1)
    found = multi_head_output_error(gamma, heads, query, length)
    assert abs(squares.mean() - found) < 4 * squares.std() / np.sqrt(len(squares))


def test_opposite_heads_cancel_the_mean_of_the_prompt():
    matrix, value, query = 0.3 * np.eye(3), np.eye(3), np.array([1.0, 0.5, 0.0])
    one = AttentionHead(matrix, value)
    pair = [AttentionHead(sign * matrix, sign * value / 2) for sign in (1.0, -1.0)]
    errors = [multi_head_output_error(np.eye(3), heads, query, 1000) for heads in ([one], pair)]
    # To leading order exp(s^2) becomes sinh(s^2) for what is shared, whose trace is 3.
    assert errors[1] < 0.35 * errors[0]


def test_heads_of_different_sizes_are_refused():
    heads = [*some_heads(1), AttentionHead(np.eye(3), np.eye(3))]
    with pytest.raises(InvalidInputError, match="heads: their tokens"):
        multi_head_output_error(np.eye(3), heads, np.ones(2), 10)


def test_nothing_is_no_head():
    with pytest.raises(InvalidInputError, match="heads"):
        multi_head_output_error(np.eye(3), [], np.ones(2), 10)

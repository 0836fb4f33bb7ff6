import jax
import numpy as np
import pytest

from attractor.prompts.head import AttentionHead
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision


@pytest.mark.parametrize("divide", [True, False])
def test_scores_are_keys_times_queries(rng, divide):
    keys, queries = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    values, token, query = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=2)
    head = AttentionHead.from_factors(
        keys=keys, queries=queries, values=values, divide_by_sqrt_head_dimension=divide
    )
    score = (keys @ token) @ (queries @ query) / (2 if divide else 1)
    np.testing.assert_allclose(token @ head.score_matrix @ query, score)
    assert head.value_matrix is not values and (head.value_matrix == values).all()
    assert (head.token_dimension, head.query_dimension) == (3, 2)


def test_whether_to_divide_is_never_guessed(rng):
    matrix = rng.normal(size=(2, 2))
    with pytest.raises(TypeError, match="divide_by_sqrt_head_dimension"):
        AttentionHead.from_factors(keys=matrix, queries=matrix, values=matrix)  # pyright: ignore
    with pytest.raises(InvalidInputError, match="divide_by_sqrt_head_dimension"):
        AttentionHead.from_factors(
            keys=matrix, queries=matrix, values=matrix, divide_by_sqrt_head_dimension=None
        )


def test_heads_are_made_inside_vmap(rng):
    scores, values = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 5, 3))
    with double_precision():
        heads = jax.vmap(AttentionHead)(scores, values)
    np.testing.assert_array_equal(heads.score_matrix, scores)


@pytest.mark.parametrize(
    ("score", "value", "message"),
    [
        (np.ones(3), np.ones((2, 3)), "score_matrix: the shape"),
        (np.ones((3, 2)), np.ones((2, 2)), r"value_matrix: the shape is \(2, 2\). Give \(v, 3\)"),
        (np.full((3, 2), np.inf), np.ones((2, 3)), "score_matrix: the entry"),
        ([["a"]], np.ones((2, 3)), "score_matrix: the data type"),
    ],
)
def test_bad_matrices_are_refused(score, value, message):
    with pytest.raises(InvalidInputError, match=message):
        AttentionHead(score, value)


def test_factors_have_one_inner_dimension():
    with pytest.raises(InvalidInputError, match=r"queries: the shape is \(3, 2\). Give \(4, e\)"):
        AttentionHead.from_factors(
            keys=np.ones((4, 3)),
            queries=np.ones((3, 2)),
            values=np.ones((1, 3)),
            divide_by_sqrt_head_dimension=False,
        )

import numpy as np
import pytest

from attractor.prompts.regression import Blocks
from attractor.support.errors import InvalidInputError


def test_blocks_of_matrices_and_back(rng):
    score, value = rng.standard_normal((2, 3, 4, 4))
    blocks = Blocks.of(score, value)
    np.testing.assert_array_equal(blocks.key_query, score[:, :3, :3])
    np.testing.assert_array_equal(blocks.label_row, score[:, 3, :3])
    np.testing.assert_array_equal(blocks.value_inputs, value[:, 3, :3])
    np.testing.assert_array_equal(blocks.value_label, value[:, 3, 3])
    again = Blocks.of(*blocks.matrices())
    for block, same in zip(blocks, again, strict=True):
        np.testing.assert_array_equal(block, same)


def test_the_other_entries_do_not_matter(rng):
    score, value = rng.standard_normal((2, 4, 4))
    tokens, query = rng.standard_normal((7, 4)), np.append(rng.standard_normal(3), 0.0)

    def prediction(score, value):
        weights = np.exp(tokens @ score @ query)
        return (value @ (weights @ tokens / weights.sum()))[-1]

    expected = prediction(score, value)
    assert prediction(*Blocks.of(score, value).matrices()) == pytest.approx(expected, rel=1e-12)


def test_balance_of_each_head():
    blocks = Blocks(np.full((2, 1, 1), 3.0), np.full((2, 1), 2.0), np.ones((2, 1)), np.arange(2.0))
    np.testing.assert_array_equal(blocks.balance, [9 + 4 - 1, 9 + 4 - 1 - 1])


def test_shapes_must_fit():
    with pytest.raises(InvalidInputError, match="score_matrix"):
        Blocks.of(np.ones((3, 4)), np.ones((4, 4)))
    with pytest.raises(InvalidInputError, match="value_matrix"):
        Blocks.of(np.ones((2, 4, 4)), np.ones((4, 4)))
    blocks = Blocks(np.ones((2, 2)), np.ones(2), np.ones(3), np.array(1.0))
    with pytest.raises(InvalidInputError, match="value_inputs"):
        blocks.flat_heads(2)

from pathlib import Path

import numpy as np
import pytest

from attractor.datasets import unit_tokens
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.margin.selection import optimal_tokens
from attractor.support.errors import InvalidInputError

STORED = Path(__file__).parents[1] / "data" / "unit_tokens_6_8_10.npz"


@pytest.fixture(scope="module")
def stored():
    with np.load(STORED, allow_pickle=False) as file:
        return dict(file)


def test_equals_the_arrays_that_torch_drew(stored):
    tokens, head = unit_tokens(6, 8, 10, seeds=101)
    np.testing.assert_allclose(head.weight, stored["v"], atol=1e-6, rtol=0)
    np.testing.assert_array_equal(tokens.labels[..., 0], stored["labels"])
    np.testing.assert_allclose(tokens.keys, stored["keys"], atol=1e-6, rtol=0)
    np.testing.assert_allclose(tokens.queries[..., 0, :], stored["queries"], atol=1e-6, rtol=0)


def test_golden_optimal_tokens():
    tokens, head = unit_tokens(6, 8, 10, seeds=2)
    np.testing.assert_array_equal(
        optimal_tokens(tokens, head).index, [[7, 4, 6, 1, 3, 2], [3, 2, 6, 2, 6, 2]]
    )


def test_stream_of_every_kind_of_size():
    """Small arrays keep the second number of a pair; the last sixteen of a large one are redrawn.

    Expected: torch 2.13.0, ``torch.randn(size, generator=torch.Generator().manual_seed(5))``.
    """
    stream = TorchNormalStream(5)
    np.testing.assert_allclose(stream.normal(3), [-0.4867808, -0.6038216, -0.5580962], atol=1e-6)
    first, *_, last = stream.normal(17)
    np.testing.assert_allclose([first, last], [0.2582516, -0.1478936], atol=1e-6)
    np.testing.assert_allclose(stream.normal(2), [0.6675243, 1.3790466], atol=1e-6)
    np.testing.assert_allclose(stream.normal(16)[[0, 15]], [-0.0196697, 0.9906442], atol=1e-6)
    np.testing.assert_allclose(stream.normal(1), [-1.4318626], atol=1e-6)


def test_seeds_name_the_instances():
    every, heads = unit_tokens(2, 3, 5, seeds=4)
    some, head = unit_tokens(2, 3, 5, seeds=[3, 1])
    np.testing.assert_array_equal(some.instance_numbers, [3, 1])
    np.testing.assert_array_equal(some.keys, every.keys[[3, 1]])
    np.testing.assert_array_equal(head.weight, heads.weight[np.array([3, 1])])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (dict(n=0, T=8, d=10, seeds=1), "n"),
        (dict(n=6, T=2.5, d=10, seeds=1), "T"),
        (dict(n=6, T=8, d=10, seeds=0), "seeds"),
        (dict(n=6, T=8, d=10, seeds=[-1]), "seeds"),
        (dict(n=6, T=8, d=10, seeds=[2**32]), "seeds"),
    ],
)
def test_refuses_bad_arguments(arguments, named):
    with pytest.raises(InvalidInputError, match=f"^{named}:"):
        unit_tokens(**arguments)


def test_a_data_set_is_the_same_alone_and_after_others():
    """Odd sizes leave half of a pair of normal numbers over, which the next must not get."""
    several, heads = unit_tokens(3, 4, 5, seeds=[7, 8])
    alone, head = unit_tokens(3, 4, 5, seeds=[8])
    assert np.array_equal(several.keys[1], alone.keys[0])
    assert np.array_equal(several.queries[1], alone.queries[0])
    assert np.array_equal(heads.weight[1], head.weight[0])

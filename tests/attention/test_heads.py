import jax
import numpy as np
import pytest

from attractor.attention import LinearHead
from attractor.attention.heads import head_from_arrays
from attractor.errors import InvalidInputError
from attractor.precision import double_precision


def test_a_linear_head_is_a_dot_product(rng):
    v, outputs = rng.normal(size=3), rng.normal(size=(2, 4, 3))
    np.testing.assert_allclose(LinearHead(v)(outputs), outputs @ v)
    with double_precision():
        np.testing.assert_allclose(jax.jit(lambda o: LinearHead(v)(o))(outputs), outputs @ v)


def test_an_axis_of_instances_pairs_heads_with_data_sets(rng):
    v, outputs = rng.normal(size=(2, 3)), rng.normal(size=(2, 4, 5, 3))
    head = LinearHead(v)
    assert head.instances == 2 and head.input_dimension == 3
    np.testing.assert_allclose(head(outputs), np.einsum("intv,iv->int", outputs, v))
    np.testing.assert_array_equal(head.for_instances(np.array([1, 1, 0])).weight, v[[1, 1, 0]])
    shared = LinearHead(v[0]).for_instances(np.array([4, 0]))
    np.testing.assert_array_equal(shared.weight, v[[0, 0]])


def test_a_head_survives_the_way_through_its_arrays(rng):
    head = LinearHead(rng.normal(size=3))
    again = head_from_arrays(head.name, head.arrays())
    np.testing.assert_array_equal(again.weight, head.weight)


def test_bad_heads_are_refused():
    for bad in (np.zeros((1, 2, 3)), [1.0, np.nan], np.float64(1)):
        with pytest.raises(InvalidInputError, match="head"):
            LinearHead(bad)
    with pytest.raises(InvalidInputError, match="Known heads: linear"):
        head_from_arrays("cubic", {})
    with pytest.raises(InvalidInputError, match="do not define 'linear'"):
        head_from_arrays("linear", {"slope": np.ones(2)})

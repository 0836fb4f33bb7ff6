import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from attractor.support.errors import InvalidInputError
from attractor.support.precision import (
    LARGEST,
    as_arrays,
    as_float64,
    as_integers,
    as_real,
    as_shaped,
    double_precision,
)


def test_double_precision_ends_with_its_block():
    before = jnp.ones(2).dtype
    with double_precision():
        assert jnp.ones(2).dtype == jnp.float64
    assert jnp.ones(2).dtype == before
    assert not jax.config.read("jax_enable_x64")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ones(2, complex), "complex128"),
        (["a", "b"], "not real numbers"),
        ([[1.0, 2.0], [3.0]], "one array"),
        ([1.0, np.nan], r"\(1,\) is nan"),
        ([[1.0, np.inf]], r"\(0, 1\) is inf"),
    ],
)
def test_what_is_not_a_real_array_is_refused_by_name(value, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        as_float64("keys", value)
    assert error.value.argument == "keys"


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_half_precision_is_taken_as_it_is(dtype):
    given = np.array([[1 / 3, -65.1], [0.0, 2.0**-9]]).astype(dtype)
    exact = [[float(entry) for entry in row] for row in given]
    assert as_float64("keys", given).tolist() == exact
    with pytest.raises(InvalidInputError, match=r"\(1,\) is nan"):
        as_float64("keys", np.array([1, np.nan]).astype(dtype))


def test_a_copy_is_kept_that_nobody_can_change():
    given = np.ones(3, np.float32)
    kept = as_float64("keys", given)
    given[0] = 5
    assert kept.dtype == np.float64
    assert kept[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 2


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2, 3), r"W: the shape is \(4, 2\). Give \(2, 3\)"),
        (("...", 4, 3), r"Give \(\.\.\., 4, 3\)"),
        (("d",), r"Give \(d,\)"),
    ],
)
def test_axes_that_do_not_fit_are_named(shape, said):
    with pytest.raises(InvalidInputError, match=said):
        as_shaped("W", np.ones((4, 2)), shape)
    with pytest.raises(InvalidInputError, match=said):
        as_real("W", np.ones((4, 2)), shape)


def test_axes_of_one_name_have_one_size():
    W, V = as_arrays(W=(np.ones((7, 2, 3)), "*batch d e"), V=(np.ones((5, 2)), "v d"))
    assert W.shape == (7, 2, 3) and V.shape == (5, 2)
    with pytest.raises(InvalidInputError, match=r"V: the shape is \(5, 4\). Give \(5, 2\)"):
        as_arrays(W=(np.ones((2, 3)), "*batch d e"), V=(np.ones((5, 4)), "v d"))
    with pytest.raises(InvalidInputError, match=r"C: the shape is \(2, 3\). Give \(2, 2\)"):
        as_arrays(C=(np.ones((2, 3)), "d d"))


@pytest.mark.parametrize("wrong", [[0.5], [[1], [2, 3]], ["a"], [True], [-1], [2**70], []])
def test_what_is_no_array_of_integers_is_named(wrong):
    with pytest.raises(InvalidInputError, match=r"^rows: "):
        as_integers("rows", wrong, ("m",))


def test_entries_beyond_a_limit_and_views_beyond_memory_are_refused():
    with pytest.raises(InvalidInputError, match=r"C: the entry at \(1,\) is 1e\+51"):
        as_float64("C", [1.0, 1e51], largest=LARGEST)
    with pytest.raises(InvalidInputError, match=r"W: .* (GB|memory)"):
        as_real("W", np.broadcast_to(0.0, (10**9, 100, 100)), ("...", "d", "e"))


def test_numbers_that_diverged_can_be_measured():
    W = np.array([[np.nan, np.inf]])
    assert as_real("W", W, (1, 2)) is W
    with pytest.raises(InvalidInputError, match="W: the data type is complex128"):
        as_real("W", W + 1j, (1, 2))

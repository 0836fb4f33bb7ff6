import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.precision import as_float64, double_precision


def test_double_precision_ends_with_its_block():
    before = jnp.ones(2).dtype
    with double_precision():
        assert jnp.ones(2).dtype == jnp.float64
    assert jnp.ones(2).dtype == before
    assert not jax.config.read("jax_enable_x64")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ones(2, np.float16), "float16"),
        (np.ones(2, ml_dtypes.bfloat16), "bfloat16"),
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


def test_a_copy_is_kept_that_nobody_can_change():
    given = np.ones(3, np.float32)
    kept = as_float64("keys", given)
    given[0] = 5
    assert kept.dtype == np.float64
    assert kept[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 2

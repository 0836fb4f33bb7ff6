"""Hoyer's measure of sparsity."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from attractor.analysis.sparsity import hoyer_sparsity

entries = arrays(float, st.integers(2, 30), elements=st.floats(-1, 1, allow_subnormal=False))


def test_is_zero_for_equal_magnitudes_and_one_for_a_single_entry():
    assert hoyer_sparsity([[0.3, -0.3], [0.3, 0.3]]) == pytest.approx(0, abs=1e-15)
    assert hoyer_sparsity(np.eye(1, 7)) == pytest.approx(1, abs=1e-15)


@given(entries, st.sampled_from([1e-200, 3.0, 1e200]))
def test_lies_between_and_knows_no_scale_sign_or_order(w, scale):
    if not w.any():
        assert math.isnan(hoyer_sparsity(w))
        return
    found = hoyer_sparsity(w)
    assert -1e-12 <= found <= 1 + 1e-12
    assert hoyer_sparsity(-scale * w[::-1]) == pytest.approx(found, abs=1e-9)


def test_of_gaussian_and_laplacian_entries():
    # E|w| / sqrt(E w^2) is sqrt(2 / pi) and 1 / sqrt(2) in the limit of many entries.
    rng = np.random.default_rng(0)
    assert hoyer_sparsity(rng.normal(size=(700, 700))) == pytest.approx(0.2021, abs=3e-3)
    assert hoyer_sparsity(rng.laplace(size=(700, 700))) == pytest.approx(0.2929, abs=3e-3)


def test_of_nothing_to_compare_is_not_a_number():
    assert math.isnan(hoyer_sparsity([2.0]))
    assert math.isnan(hoyer_sparsity([]))

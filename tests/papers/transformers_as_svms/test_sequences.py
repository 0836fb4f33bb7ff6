"""Sequences with a label for every token."""

import numpy as np
import pytest
import xarray as xr

from attractor.margin import MarginProblem, solve
from attractor.papers.transformers_as_svms.descent import GEOMETRIES
from attractor.papers.transformers_as_svms.figures.sequences import (
    compared_with_own_tokens,
    labeled_sequences,
)
from attractor.papers.transformers_as_svms.side_by_side import DataSets
from attractor.selection import optimal_tokens

SIZE = (2, 4, 6)


def test_both_kinds_have_the_same_tokens_and_labels():
    (full, head), (causal, other) = (
        labeled_sequences(SIZE, k, range(3)) for k in ("full", "causal")
    )
    np.testing.assert_array_equal(full.keys, causal.keys)
    np.testing.assert_array_equal(full.queries, full.keys)
    np.testing.assert_array_equal(full.labels, causal.labels)
    np.testing.assert_array_equal(head.weight, other.weight)
    assert set(np.unique(full.labels)) == {-1.0, 1.0} and full.labels.shape == (3, 2, 4)
    assert full.mask.all()
    np.testing.assert_array_equal(causal.mask[0, 0], np.tri(4, dtype=bool))


def test_a_data_set_does_not_depend_on_those_beside_it():
    several, alone = (
        labeled_sequences(SIZE, "full", range(3))[0],
        labeled_sequences(SIZE, "full", range(2, 3))[0],
    )
    np.testing.assert_array_equal(several.labels[2:], alone.labels)


@pytest.mark.parametrize("name", ["W", "KQ"])
@pytest.mark.parametrize("kind", ["full", "causal"])
def test_the_solution_of_the_own_tokens_has_the_whole_margin(kind, name):
    tokens, head = labeled_sequences(SIZE, kind, range(4))
    best = optimal_tokens(tokens, head)
    solution = solve(MarginProblem.from_selection(tokens, best), GEOMETRIES[name])
    assert np.isfinite(solution.value).all()
    steps = np.stack([-solution.W, 30 * solution.W], 1)
    end = xr.Dataset(
        {
            "W": (("instance", "step", "row", "column"), steps),
            "attended": (("instance", "step", "sequence", "query"), np.stack([best.index] * 2, 1)),
            "attended_probability": (
                ("instance", "step", "sequence", "query"),
                np.full((4, 2, 2, 4), 0.995),
            ),
        }
    )
    found = compared_with_own_tokens(DataSets(tokens, head, {}), end, name)
    np.testing.assert_allclose(found["margin_ratio"].isel(step=-1), 1, atol=1e-8)
    np.testing.assert_allclose(found["correlation"].isel(step=-1), 1, atol=1e-9)
    assert (found["margin_ratio"].isel(step=0) < -0.99).all()
    assert found["optimal"].all() and found["settled"].all()
    # Optimal tokens have the highest score of their row, so that no support token beats them.
    assert found["locally_optimal"].all()

"""Trained matrices held against nuclear solutions."""

import numpy as np
import xarray as xr

from attractor.datasets import unit_tokens
from attractor.geometry import Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import attended_tokens, optimal_tokens
from attractor.papers.transformers_as_svms.figures.key_query_width import compared_with_nuclear
from attractor.papers.transformers_as_svms.side_by_side import DataSets


def _held(tokens, head, W):
    attended = attended_tokens(tokens, W).index[:, None, :, None]
    end = xr.Dataset(
        {
            "W": (("instance", "step", "row", "column"), W[:, None]),
            "attended": (("instance", "step", "sequence", "query"), attended),
        }
    )
    return compared_with_nuclear(DataSets(tokens, head, {}), end)


def test_the_solution_itself_has_the_whole_margin():
    tokens, head = unit_tokens(3, 4, 4, seeds=[1, 2, 3, 4])
    solution = solve(MarginProblem.from_selection(tokens, optimal_tokens(tokens, head)), Nuclear())
    found = _held(tokens, head, 7 * solution.W)
    np.testing.assert_allclose(found["correlation"], 1, atol=1e-9)
    np.testing.assert_allclose(found["margin_ratio"], 1, atol=1e-8)
    singular = np.linalg.svd(solution.W)[1]
    np.testing.assert_array_equal(found["rank"], (singular > 1e-5 * singular[:, :1]).sum(1))
    np.testing.assert_allclose(found["norm"], 7 * np.linalg.norm(solution.W, axis=(1, 2)))


def test_tokens_that_nothing_separates_have_no_measures():
    tokens, head = unit_tokens(5, 5, 2, seeds=8)
    solution = solve(MarginProblem.from_selection(tokens, optimal_tokens(tokens, head)), Nuclear())
    infeasible = ~np.isfinite(solution.value)
    assert infeasible.any()
    end = xr.Dataset(
        {
            "W": (("instance", "step", "row", "column"), np.ones((8, 1, 2, 2))),
            "attended": (
                ("instance", "step", "sequence", "query"),
                optimal_tokens(tokens, head).index[:, None, :, None],
            ),
        }
    )
    found = compared_with_nuclear(DataSets(tokens, head, {}), end)
    for name in ("correlation", "margin_ratio"):
        np.testing.assert_array_equal(np.isnan(found[name]), infeasible)
    np.testing.assert_array_equal(found["rank"] == -1, infeasible)

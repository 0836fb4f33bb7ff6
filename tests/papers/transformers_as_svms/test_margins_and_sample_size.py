"""Attention fitted to planted data, on inputs seen and unseen."""

import numpy as np
import pytest
import xarray as xr

from attractor.attention import LinearHead
from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.papers import get_figure
from attractor.papers.figure import Request
from attractor.papers.transformers_as_svms.planted import (
    MARGIN,
    planted_inputs,
    planted_matrices,
)
from attractor.selection import Selection, optimal_tokens

FIGURE = get_figure("transformers-as-svms/margins-and-sample-size")


@pytest.fixture(scope="module", params=[1, 10])
def planted(request):
    matrices = planted_matrices(request.param, range(3))
    return matrices, planted_inputs(matrices, 12, range(3), "training"), request.param


def test_matrices_have_norm_one_and_their_rank(planted):
    matrices, _, rank = planted
    np.testing.assert_allclose(np.linalg.norm(matrices, axis=(1, 2)), 1)
    assert (np.linalg.matrix_rank(matrices) == rank).all()


def test_the_best_token_leads_by_the_margin_in_every_input(planted):
    matrices, inputs, _ = planted
    for W, keys, queries, best in zip(matrices, *inputs, strict=True):
        for x, z, token in zip(keys, queries, best, strict=True):
            scores = x @ W @ z
            assert (scores[token] - np.delete(scores, token) >= MARGIN).all()


@pytest.mark.parametrize("geometry", [Frobenius(), Nuclear()])
def test_margins_are_those_of_the_margin_problem(planted, geometry):
    matrices, inputs, _ = planted
    tokens = inputs.tokens()
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, inputs.best))
    smallest = inputs.margins(matrices, geometry).min(1)
    np.testing.assert_allclose(smallest, problem.margins(matrices).min(1) / geometry.norm(matrices))
    largest = 1 / solve(problem, geometry).value
    assert (largest >= smallest).all()


def test_scores_put_the_planted_token_first_in_what_is_learned(planted):
    _, inputs, _ = planted
    tokens = inputs.tokens(5)
    chosen = optimal_tokens(tokens, LinearHead(np.ones(1))).index
    np.testing.assert_array_equal(chosen[:, :5], inputs.best[:, :5])
    assert (tokens.mask[:, 5:].sum(-1) == 1).all()


def test_a_seed_alone_draws_what_it_draws_among_others(planted):
    matrices, inputs, rank = planted
    alone = planted_inputs(planted_matrices(rank, range(2, 3)), 12, range(2, 3), "training")
    np.testing.assert_array_equal(alone.keys[0], inputs.keys[2])
    unseen = planted_inputs(matrices, 12, range(3), "test")
    assert not np.isin(unseen.keys, inputs.keys).any()


def test_more_inputs_bring_seen_and_unseen_margins_together():
    data = FIGURE.compute(Request("quick", {"seeds": 2, "counts": [5, 20], "steps": 300}))
    few, many = (data.sel(n=n).mean("instance") for n in (5, 20))
    assert (many["error"] < few["error"]).all()
    solutions = {"kind": "solution"}
    assert (few["training_margin"] > many["training_margin"]).sel(solutions).all()
    assert (many["training_margin"].sel(solutions) >= 1).all()
    assert (many["test_margin"] > few["test_margin"]).sel(solutions).all()
    assert (data["training_error"].sel(solutions) == 0).all()
    low = data["error"].sel(kind="solution", planted_rank=1, n=20).mean("instance")
    assert low.sel(parameterization="KQ") < low.sel(parameterization="W") - 0.05


def test_a_data_set_alone_ends_as_among_others():
    settings = {"counts": [5, 20], "steps": 20}
    both = FIGURE.compute(Request("quick", settings | {"seeds": 2}))
    alone = FIGURE.compute(Request("quick", settings | {"seeds": 1}, seed=1))
    # Products of matrices may round by where in memory these lie.
    one = both["test_margin"].sel(instance=[1])
    xr.testing.assert_allclose(alone["test_margin"], one, rtol=1e-9, atol=0)

"""Trials verified beside others have the numbers that they have alone."""

import dataclasses
import warnings

import numpy as np
import pytest
from runs import STEP
from sizes import MANY, USUAL, drawn

import attractor as at
from attractor.analysis import curves
from attractor.margin import MarginProblem, Solution, solve
from attractor.tokens import Tokens

MEASURES = (
    "margin_ratio",
    "correlation",
    "directional_bregman_divergence",
    "kkt_residual",
    "violated",
    "removed_norm",
    "log_unselected_probability",
    "selected_probability",
    "log_excess_loss",
)


def ragged():
    """Data sets whose rows have tokens of different numbers, copies, and a hopeless one."""
    rng = np.random.default_rng(3)
    keys = rng.standard_normal((5, 3, 4, 5))
    keys[1, 0, 1] = keys[1, 0, 0]
    keys[2, :, 1:] = -keys[2, :, :1]
    mask = np.ones((5, 3, 4), bool)
    mask[0, 0, 3] = mask[3, 1, 2] = mask[3, 2, 1] = False
    queries = rng.standard_normal((5, 3, 5))
    queries[2] = queries[2, 0] * np.sign([[1.0], [1.0], [-1.0]])
    return at.Tokens(keys, queries, np.where(rng.random((5, 3)) < 0.5, 1.0, -1.0), mask)


def run_of(tokens, steps=(0, 3, 20)):
    """A run whose matrices are made up: some turn to a solution, some are zero, huge or NaN."""
    head = at.LinearHead(np.random.default_rng(4).standard_normal((5, 5)))
    run = at.train(tokens, head, STEP, steps=20, seeds=2, record=list(steps))
    W = run.data["W"].copy(deep=True)
    W[0, 0, 1] = 0
    W[1, 0, 2] *= 1e200
    W[1, 1] *= 1e-200
    W[4, 1, 2, 0, 0] = np.nan
    W[4, 0, 0, 0, 0] = np.inf
    return dataclasses.replace(run, data=run.data.assign(W=W))


@pytest.fixture(scope="module")
def run():
    return run_of(ragged())


def alone(run, instance):
    tokens = run.tokens[[instance]]
    head = at.LinearHead(run.head.weight[[instance]])
    return dataclasses.replace(
        run, data=run.data.isel(instance=[instance]), tokens=tokens, head=head
    )


@pytest.mark.parametrize("geometry", ["frobenius", "l_3", "l_inf"])
@pytest.mark.parametrize("selection", ["reached at end", "reached at step"])
def test_every_trial_measures_what_it_measures_alone(run, selection, geometry):
    run = dataclasses.replace(run, geometry=geometry)
    whole = at.verify(run, selection=selection).data
    assert np.isfinite(whole["margin_ratio"]).any()
    for instance in range(5):
        if not np.isfinite(run.W()[instance]).all((-1, -2)).any():
            continue
        own = at.verify(alone(run, instance), selection=selection).data
        for name in MEASURES:
            expected = own[name].values[0]
            np.testing.assert_allclose(
                whole[name].values[instance], expected, rtol=1e-9, atol=1e-12, err_msg=name
            )
        for name in ("feasible", "comparison", "problem", "reached", "locally_optimal"):
            np.testing.assert_array_equal(whole[name][instance], own[name][0])


@pytest.mark.parametrize("size", [1, 2000])
def test_blocks_of_any_size_give_the_same_bits(run, size, monkeypatch):
    expected = at.verify(run, selection="reached at step").data
    monkeypatch.setattr(curves, "_BLOCK", size)
    assert at.verify(run, selection="reached at step").data.identical(expected)


@pytest.mark.long
def test_trained_heads_in_blocks_give_the_same_bits(monkeypatch):
    run = at.train(*drawn(USUAL), STEP, steps=20, parameterization="(v, W)")
    expected = at.verify(run).data
    assert np.isfinite(expected["label_margin_ratio"]).any()
    monkeypatch.setattr(curves, "_BLOCK", 1)
    assert at.verify(run).data.identical(expected)


def test_no_object_is_made_for_each_data_set(monkeypatch):
    data = drawn(USUAL._replace(instances=60))
    run = at.train(*data, STEP, steps=5, record=[5])
    given = solve(MarginProblem.from_selection(data[0], at.optimal_tokens(*data)))
    made = []
    for kind in (Tokens, Solution, MarginProblem):
        new = kind.__getitem__
        monkeypatch.setattr(
            kind, "__getitem__", lambda self, i, new=new: made.append(1) or new(self, i)
        )
    at.verify(run)
    at.verify(run, given)
    assert 0 < len(made) < 60


def test_one_solution_for_all_is_the_same_as_one_for_each():
    tokens, head = drawn(USUAL._replace(instances=1))
    assert tokens.labels is not None
    arrays = (tokens.keys, tokens.queries, tokens.labels)
    several = at.Tokens(*(np.repeat(array, 3, 0) for array in arrays))
    run = at.train(several, at.LinearHead(np.repeat(head.weight, 3, 0)), STEP, steps=20)
    problem = MarginProblem.from_selection(
        several, at.Selection.from_index(several, np.zeros((3, 3), int))
    )
    for geometry in (at.Frobenius(), at.Lp(np.inf)):
        each = solve(problem, geometry)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one, all_three = at.verify(run, each[0]).data, at.verify(run, each).data
        for name in MEASURES:
            np.testing.assert_allclose(one[name], all_three[name], rtol=1e-9, err_msg=name)


def test_a_wrong_row_of_one_data_set_among_many_is_found():
    data = drawn(MANY)
    run = at.train(*data, STEP, steps=5)
    keys = data[0].keys.copy()
    keys[4, 1] *= 2
    other = at.Tokens(keys, data[0].queries, data[0].labels)
    solution = solve(MarginProblem.from_selection(other, at.optimal_tokens(*data)))
    with pytest.raises(at.InvalidInputError, match="other vectors at sequence 1, query 0"):
        at.verify(run, solution)

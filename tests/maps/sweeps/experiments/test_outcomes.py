"""What is measured of a run: agreement with its start, with a first gradient, and what stays."""

import dataclasses

import numpy as np
import pytest

import attractor as at
from attractor.maps.sweeps.experiments.runs import MEASURES, SETTLED, outcomes
from attractor.support.errors import TrialStatus

STEPS = [1, 30, 100, 300]
LOST = (TrialStatus.DIVERGED, TrialStatus.OUT_OF_STEPS)


@pytest.fixture(scope="module")
def trained():
    """Selections move from those of a large start to others; of two data sets, from two seeds."""
    tokens, head = at.datasets.unit_tokens(3, 4, 5, seeds=[2, 5])
    return at.train(
        tokens, head, at.normalized_gradient_descent(0.2), steps=300, seeds=2, initial=8.0,
        record=[0, *STEPS], weights="all",
    )  # fmt: skip


@pytest.fixture(scope="module")
def found(trained):
    return outcomes(trained, "own", {step: np.full((2, 2), True) for step in STEPS})


def test_every_measure_has_an_axis_of_records(found):
    assert set(found) == set(MEASURES | SETTLED)
    assert {array.shape for array in found.values()} == {(2, 2, 4)}


def test_agreement_with_the_start_counts_sequences(trained, found):
    attended = trained.data["attended"].transpose("instance", "seed", "step", ...).to_numpy()
    same = (attended[:, :, 1:] == attended[:, :, :1]).mean((-1, -2))
    assert np.array_equal(found["initial_agreement"], same)
    assert np.array_equal(found["as_initial"], same == 1)
    assert (same[..., 0] == 1).all() and (same[..., -1] < 1).any()  # it says both


def test_the_selection_is_settled_from_its_last_change_on(trained, found):
    attended = trained.data["attended"].sel(step=STEPS).transpose("instance", "seed", "step", ...)
    attended = attended.to_numpy()
    for place in np.ndindex(2, 2):
        own = attended[place]
        changes = [k for k in range(3) if (own[k] != own[k + 1]).any()]
        first = changes[-1] + 1 if changes else 0
        assert found["settled"][place].tolist() == [int(k >= first) for k in range(4)]


def test_a_selection_that_comes_back_was_not_settled(trained):
    """Of records that select as A B A A, the last two are."""
    parts = [trained.data.sel(step=step) for step in (0, 1, 300, 1, 1)]
    W = np.stack([part["W"].transpose("instance", "seed", ...).to_numpy() for part in parts], 2)
    dims = ("instance", "seed", "step", "row", "column")
    mixed = dataclasses.replace(trained, data=trained.data.assign(W=(dims, W)))
    found = outcomes(mixed, "own", {step: np.full((2, 2), True) for step in STEPS})
    moved = found["initial_agreement"][..., 1] < found["initial_agreement"][..., 0]
    assert moved.any() and (found["settled"][moved] == [0, 0, 1, 1]).all()


def test_the_gradient_step_is_one_of_training_from_zero(trained, found):
    step = at.train(trained.tokens, trained.head, at.gradient_descent(1e-3), steps=1, initial=0.0,
                    record=[1])  # fmt: skip
    favored = step.data["attended"].isel(step=-1).transpose("instance", "seed", ...).to_numpy()
    attended = trained.data["attended"].transpose("instance", "seed", "step", ...).to_numpy()
    same = (attended[:, :, 1:] == favored[:, :, None]).mean((-1, -2))
    assert np.array_equal(found["gradient_agreement"], same)
    assert 0 < same.mean() < 1


def test_lead_and_norm_are_those_of_the_start(trained, found):
    tokens, first = trained.tokens, trained.data["W"].sel(step=0).transpose("instance", "seed", ...)
    for (i, j), lead in np.ndenumerate(found["initial_lead"][..., -1]):
        W = first.to_numpy()[i, j]
        scores = np.sort(np.einsum("ntd,de,nke->nt", tokens.keys[i], W, tokens.queries[i]))
        assert lead == pytest.approx((scores[:, -1] - scores[:, -2]).mean(), rel=1e-12)
        assert found["initial_norm"][i, j, 0] == pytest.approx(np.sqrt((W**2).sum()), rel=1e-14)


def test_a_start_at_zero_has_no_selection_to_agree_with(trained):
    rule = at.normalized_gradient_descent(0.2)
    run = at.train(trained.tokens, trained.head, rule, steps=9, initial=0.0, record=[0, 9],
                   weights="all")  # fmt: skip
    found = outcomes(run, "own", {9: np.full((2, 1), True)})
    assert np.isnan(found["initial_agreement"]).all() and (found["as_initial"] == -1).all()
    assert (found["initial_norm"] == 0).all() and (found["initial_lead"] == 0).all()
    assert np.isfinite(found["selection_agreement"]).all() and not found["ties"].any()


def test_what_ended_before_a_record_is_measured_there_or_lost(trained):
    """A trial whose end says nothing of what comes after has its status alone from then on."""
    status = np.array([[TrialStatus.OUT_OF_STEPS, 0], [TrialStatus.STATIONARY, 0]])
    data = trained.data.assign(status=(("instance", "seed"), status))
    run = dataclasses.replace(trained, data=data)
    going = {step: (status == 0) | (step < 100) for step in STEPS}
    found = outcomes(run, "own", going, LOST)
    assert found["status"][0, 0].tolist() == [0, 0, 5, 5]
    assert found["status"][1, 0].tolist() == [0, 0, 1, 1]
    for name, (dtype, _) in (MEASURES | SETTLED).items():
        missing = np.isnan(found[name]) if dtype == "f8" else found[name] == -1
        lost = [True] * 4 if name == "settled" else [False, False, True, True]
        expected = [False] * 4 if name == "status" else lost
        assert missing[0, 0].tolist() == expected, name
        assert not missing[1].any() and not missing[0, 1].any(), name

"""Heads of known place, audited."""

import numpy as np
import pytest
from made_heads import gaussian_heads

import attractor as at
from attractor.heads import ControlSizes, positive_control
from attractor.heads.audit import control
from attractor.heads.audit.columns import control_table
from attractor.heads.audit.words import control_sentence


@pytest.mark.long
def test_trained_heads_are_found_in_their_norm_and_no_others(monkeypatch):
    monkeypatch.setattr(control, "DATA_SETS", 1)
    found = positive_control(ControlSizes(8, 6, 8))
    assert found["right"].all()
    ratios = found["margin_ratio"].min("control_head")
    in_norm = ratios.to_numpy()[[0, 1], [0, 1]]
    assert (in_norm > 0.95).all() and (found["margin_ratio"] < 1 + 1e-6).all()
    assert (found["margin_ratio"].isel(arm=slice(2, None)) < 0.9).all()
    assert control_sentence(found).startswith(
        "Positive control: 3 of 3 heads (W, trained to the end) are found"
    )
    assert "0 of 15 that are not there" in control_sentence(found)
    header, rows = control_table(found)
    assert len(rows) == 7 and {len(row) for row in rows} == {len(header)}


def test_an_arm_is_right_if_its_heads_are_where_they_should_be():
    trained, other = control.ARMS[0], control.ARMS[2]
    assert trained.right("at the margin solution (frobenius)")
    assert not trained.right("at the margin solution (nuclear)")
    assert not trained.right("on the way (frobenius)")
    assert other.right("elsewhere") and other.right("on the way (nuclear)")
    assert not other.right("at the margin solution (nuclear)")


def test_factors_give_the_matrix_back(rng):
    W = rng.normal(size=(2, 6, 3)) @ rng.normal(size=(2, 3, 6))
    K, Q = control._factors(W, 3)
    np.testing.assert_allclose(np.swapaxes(K, 1, 2) @ Q, W / 6, atol=1e-12)


def test_sizes_are_those_of_captured_heads():
    assert ControlSizes.of(gaussian_heads(0)) == ControlSizes(width=4, tokens=6, sequences=4)


@pytest.mark.parametrize(
    "sizes, message",
    [
        ((1, 4, 1), "width"),
        ((4, 3, 2), "tokens"),
        ((4, 4, 5), "sequences"),
    ],
)
def test_sizes_that_cannot_be_had_are_refused(sizes, message):
    with pytest.raises(at.InvalidInputError, match=message):
        ControlSizes(*sizes)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"draws": 3}, "draws: of 3 no p-value"),
        ({"load": 1}, "load"),
        ({"sizes": (4, 4, 4)}, "sizes"),
    ],
)
def test_bad_input_is_refused(given, message):
    with pytest.raises(at.InvalidInputError, match=message):
        positive_control(**({"sizes": ControlSizes(4, 4, 4)} | given))


@pytest.mark.slow
def test_power_and_false_alarms():
    found = positive_control(ControlSizes(16, 8, 16))
    assert found["right"].all() and found.sizes["control_head"] == 24

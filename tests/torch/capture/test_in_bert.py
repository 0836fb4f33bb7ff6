"""Heads of known place, in a BERT."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from attractor.heads import ControlSizes, positive_control
from attractor.heads.audit import control
from attractor.heads.capture._capture_heads import captured_in_bert


def test_scores_and_matrices_are_those_that_were_loaded(rng):
    states = control._states(ControlSizes(4, 6, 4), 0, "any")[0]
    K, Q = rng.normal(size=(2, 3, 4, 12))
    captured = captured_in_bert(states, K, Q)
    layer = captured.layer(0)
    queries = states[np.arange(4), captured.position]
    expected = np.einsum("qtd,hwd,hwe,qe->qht", states, K, Q, queries)
    scores = np.einsum("qhtw,qhw->qht", layer.keys, layer.queries)
    np.testing.assert_allclose(scores, expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(layer.projections.key, K, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(layer.projections.query, Q, rtol=1e-12, atol=1e-14)
    assert layer.projections.bias is None and layer.self_check.max() < 1e-12


@pytest.mark.slow
def test_heads_are_found_through_a_model():
    found = positive_control(ControlSizes(16, 8, 16), load=captured_in_bert)
    assert found["right"].all()

"""Learned sinks, from none of the attention to nearly all of it."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from scipy.special import logsumexp  # noqa: E402 - after the skips
from tiny_models import Letters, letters, small  # noqa: E402

from attractor.heads import CaptureStatus, audit_heads  # noqa: E402
from attractor.heads.capture import capture_heads  # noqa: E402

SINKS = (-10, -2, 0, 2, 5, 10, 20, 30)
TEXTS = letters(count=40, least=8)


def with_sinks(sink):
    model = small("GptOss")
    for layer in model.layers:
        layer.self_attn.sinks.data.fill_(sink)
    return model


def computed(layer, content, sink):
    """The mean of what is not on content, from scores in double precision."""
    keys = np.repeat(layer.keys.astype(float), layer.heads // layer.keys.shape[1], 1)
    scores = np.einsum("qhtw,qhw->qht", keys, layer.queries.astype(float))
    scores = np.where(layer.allowed[:, None], scores, -np.inf)
    everything = np.logaddexp(logsumexp(scores, axis=-1), sink)
    inside = logsumexp(np.where(content[:, None], scores, -np.inf), axis=-1)
    return -np.expm1(inside - everything).mean(0)


def test_the_mass_of_sinks_is_that_of_scores_and_rises():
    found = {}
    for sink in SINKS:
        captured = capture_heads(with_sinks(sink), Letters(), TEXTS, layers=[0])
        layer = captured.layer(0)
        assert set(layer.status) == {CaptureStatus.BILINEAR} and layer.self_check.max() < 1e-5
        data = audit_heads(captured, draws=19).data
        content = layer.allowed & ~captured.special
        found[sink] = data["sink_mass"].to_numpy()[0]
        np.testing.assert_allclose(found[sink], computed(layer, content, sink), atol=1e-6)
        assert (
            (data["sink_share"] == 1).all() and (data["selection"] == "sink").all()
        ) or sink < 20
    masses = np.stack([*found.values()])
    assert (np.diff(masses, axis=0) >= -1e-7).all()
    assert (masses[-1] > 1 - 1e-6).all() and (masses[0] < 0.9).all()


@pytest.mark.parametrize("sink", SINKS)
def test_heads_that_are_not_bilinear_are_told_beside_any_sink(sink, monkeypatch):
    """One head of four has a bias by position."""
    model = with_sinks(sink)
    file = sys.modules[type(model).__module__]
    eager = file.eager_attention_forward

    def biased(module, query, key, value, attention_mask, **arguments):
        bias = torch.zeros(1, 4, 1, key.shape[2], dtype=query.dtype)
        bias[0, 1] = 0.2 * (torch.arange(key.shape[2]) % 2)
        return eager(module, query, key, value, attention_mask + bias, **arguments)

    monkeypatch.setattr(file, "eager_attention_forward", biased)
    status = [CaptureStatus.BILINEAR] * 4
    status[1] = CaptureStatus.NOT_BILINEAR
    for _, layer in capture_heads(model, Letters(), TEXTS):
        assert list(layer.status) == status
        assert layer.self_check[1] > 1e-2


def test_where_nothing_is_left_nothing_is_said():
    for _, layer in capture_heads(with_sinks(300), Letters(), TEXTS):
        assert set(layer.status) == {CaptureStatus.NOT_DETERMINED}
        assert np.isnan(layer.self_check).all()

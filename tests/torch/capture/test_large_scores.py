"""Scores that share a constant far larger than they differ, in single precision."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import Letters, letters, small  # noqa: E402 - after the skips

from attractor.heads import CaptureStatus, WatchedHead  # noqa: E402
from attractor.heads.capture import capture_heads  # noqa: E402
from attractor.support.errors import InvalidInputError  # noqa: E402

CONSTANTS = (0.0, -10.0, -1e3, -3e3, -1e5)
BILINEAR, NOT, OPEN = (
    CaptureStatus.BILINEAR,
    CaptureStatus.NOT_BILINEAR,
    CaptureStatus.NOT_DETERMINED,
)
TEXTS = letters(count=20)
PLANTED = 1
"""The head that gets a bias by position."""


def with_constant(constant, family="GPTNeoX"):
    """Biases of queries and keys at a coordinate that is not rotated give scores a constant."""
    model = small(family)
    for layer in model.layers:
        fused = layer.attention.query_key_value
        weight, bias = (one.data.view(4, 3, 8, -1) for one in (fused.weight, fused.bias))
        weight[:, :2, -1] = 0.0
        size = (abs(constant) * 8**0.5) ** 0.5
        bias[:, 0, -1], bias[:, 1, -1] = size, np.sign(constant) * size
    return model


def plant(model, monkeypatch, size=0.1, refuses_double=False):
    """A bias of the scores of one head: an attention weight of 1/2 changes by a quarter of it."""
    file = sys.modules[type(model).__module__]
    eager = file.eager_attention_forward

    def biased(module, query, key, value, attention_mask, **arguments):
        if refuses_double and query.dtype == torch.float64:
            raise RuntimeError("single precision alone")
        weights = eager(module, query, key, value, attention_mask, **arguments)[1].double()
        bias = torch.zeros(1, 4, 1, key.shape[2], dtype=torch.float64)
        bias[0, PLANTED] = size * (torch.arange(key.shape[2]) % 2)
        weights = weights * bias.exp()
        weights = (weights / weights.sum(-1, keepdim=True)).to(query.dtype)
        return (weights @ value).transpose(1, 2), weights

    monkeypatch.setattr(file, "eager_attention_forward", biased)


def scores(layer):
    return np.einsum("qhtw,qhw->qht", layer.keys.astype(float), layer.queries.astype(float))


@pytest.mark.parametrize("constant", CONSTANTS)
def test_heads_are_told_from_those_that_are_not_bilinear(constant, monkeypatch):
    model = with_constant(constant)
    captured = capture_heads(model, Letters(), TEXTS)
    for _, layer in captured:
        middle = np.median(scores(layer)[:, :, :6])
        assert abs(middle - constant) < 20
        assert set(layer.status) == {BILINEAR} and layer.self_check.max() < 1e-4
    plant(model, monkeypatch)
    for _, layer in capture_heads(model, Letters(), TEXTS):
        assert layer.status == (BILINEAR, NOT, BILINEAR, BILINEAR)
        assert 1e-2 < layer.self_check[PLANTED] < 4e-2


@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants_in_coordinates_that_positions_rotate(constant):
    """Keys turned back in single precision would be off by more than heads may differ."""
    model = small("GPTNeoX")
    for layer in model.layers:
        bias = layer.attention.query_key_value.bias.data.view(4, 3, 8)
        size = (abs(constant) * 8**0.5) ** 0.5
        bias[:, 0, 1], bias[:, 1, 1] = size, np.sign(constant) * size
    for _, layer in capture_heads(model, Letters(), TEXTS):
        assert set(layer.status) == {BILINEAR} and layer.self_check.max() < 1e-4


@pytest.mark.parametrize("constant", CONSTANTS)
def test_where_double_precision_is_refused_rounding_is_allowed_for(constant, monkeypatch):
    """A difference of 0.02 is told up to scores of 3,000; at 100,000 single precision cannot."""
    model = with_constant(constant)
    plant(model, monkeypatch, refuses_double=True)
    for _, layer in capture_heads(model, Letters(), TEXTS):
        others = {*layer.status[:PLANTED], *layer.status[PLANTED + 1 :]}
        assert others <= ({BILINEAR} if constant >= -10 else {BILINEAR, OPEN})
        assert layer.status[PLANTED] == (OPEN if constant == -1e5 else NOT)


@pytest.mark.parametrize("constant", CONSTANTS)
def test_single_modules(constant, monkeypatch):
    model = with_constant(constant)
    ids = torch.randint(3, 50, (3, 12), generator=torch.Generator().manual_seed(0))
    heads = [
        WatchedHead.from_module(f"{number}", model.layers[1].attention, number, lambda m: m(ids))
        for number in range(4)
    ]
    for head in heads:
        head.tokens(head.reading(model))
    plant(model, monkeypatch)
    again = WatchedHead.from_module("0", model.layers[1].attention, PLANTED, lambda m: m(ids))
    with pytest.raises(InvalidInputError, match="head 1 is not bilinear"):
        again.tokens(again.reading(model))

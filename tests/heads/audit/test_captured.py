"""Heads of plain arrays, without a model."""

import numpy as np
import pytest

from attractor.heads import Captured, CapturedLayer, CaptureStatus, Projections
from attractor.heads.captured.captured import of_all, worst
from attractor.support.errors import InvalidInputError


@pytest.fixture
def arrays(rng):
    return {"keys": rng.normal(size=(5, 2, 6, 3)), "queries": rng.normal(size=(5, 4, 3))}


def test_attention_of_grouped_heads_is_the_softmax_of_their_scores(arrays, rng):
    mask = rng.random((5, 6)) < 0.7
    mask[:, 0] = True
    layer = Captured.from_arrays(**arrays, mask=mask).layer(0)
    for query in range(5):
        for head in range(4):
            keys = arrays["keys"][query, layer.key_head(head)]
            powers = np.where(mask[query], np.exp(keys @ arrays["queries"][query, head]), 0)
            expected = powers / powers.sum()
            np.testing.assert_allclose(layer.attention[query, head], expected, rtol=1e-12)
    assert [layer.key_head(head) for head in range(4)] == [0, 0, 1, 1]
    assert layer.status == (CaptureStatus.BILINEAR,) * 4 and (layer.self_check == 0).all()


def test_one_head(rng):
    keys, queries = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2))
    captured = Captured.from_arrays(keys, queries, values=rng.normal(size=(3, 4, 5)))
    layer = captured.layer(0)
    assert layer.keys.shape == (3, 1, 4, 2) and layer.values.shape == (3, 1, 4, 5)
    assert captured.layers == [0] and captured.document.tolist() == [0, 1, 2]
    assert captured.position.tolist() == [3, 3, 3] and not captured.special.any()
    assert captured.token[1].tolist() == ["0", "1", "2", "3"]


def test_pieces_make_a_layer_whose_heads_are_as_bad_as_the_worst(arrays):
    layer = Captured.from_arrays(**arrays).layer(0)
    bad = list(layer.status)
    bad[2] = CaptureStatus.NOT_BILINEAR
    check = np.array([0.0, 0.0, 0.3, 0.0])
    other = CapturedLayer(
        layer.queries, layer.keys, layer.allowed, layer.attention, None, check, tuple(bad)
    )
    whole = of_all([layer, other, layer])
    assert whole.queries.shape == (15, 4, 3)
    assert whole.self_check.tolist() == check.tolist() and whole.status == tuple(bad)


@pytest.mark.parametrize(
    "pieces, found",
    [
        (("bilinear", "not determined", "not bilinear"), "not bilinear"),
        (("not determined", "frame unknown"), "frame unknown"),
        (("bilinear", "not determined"), "not determined"),
        (("bilinear", "bilinear"), "bilinear"),
    ],
)
def test_the_worst_that_any_piece_says_is_said(pieces, found):
    for order in (pieces, pieces[::-1]):
        given = [(np.zeros(1), (CaptureStatus(one),)) for one in order]
        assert worst(given)[1] == (CaptureStatus(found),)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"keys": np.zeros((5, 3, 6, 3))}, "keys: 3 key heads do not divide 4 heads"),
        ({"keys": np.zeros((5, 2, 6, 2))}, "keys: the shape is"),
        ({"keys": np.full((5, 2, 6, 3), np.nan)}, "keys: the entry at"),
        ({"mask": np.zeros((5, 6), bool)}, "mask: some query may attend to nothing"),
        ({"mask": np.ones((5, 6))}, "mask: it holds float64"),
        ({"values": np.zeros((5, 3, 6, 3))}, "values: the shape is"),
        ({"document": [0, 1]}, r"position: the shape is \(5,\)"),
        ({"position": [0.5] * 5}, "position: not all are integers"),
        ({"token": [["a"] * 6] * 4}, "token: the shape is"),
        ({"token": [["a"] * 6] * 4 + [["a"]]}, "token: its rows differ in length"),
        ({"special": np.zeros((5, 5), bool)}, "special: the shape is"),
    ],
)
def test_what_does_not_fit_is_refused(arrays, change, words):
    with pytest.raises(InvalidInputError, match=f"^{words}"):
        Captured.from_arrays(**arrays | change)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"query": np.zeros((4, 3))}, "query: the shape is"),
        ({"query": np.zeros((3, 3, 7))}, "projections.query: the shape is"),
        ({"query": np.full((4, 3, 7), np.inf)}, r"query: the entry at \(0, 0, 0\) is inf"),
        ({"bias": np.zeros((4, 2))}, "bias: the shape is"),
        ({"key": np.zeros((3, 3, 7))}, "projections.key: the shape is"),
        ({"key": np.zeros((2, 4, 7))}, "key: the shape is"),
        ({"key": np.zeros((2, 3, 7), int)}, "key: it holds int64"),
    ],
)
def test_matrices_of_another_layer_are_refused(arrays, change, words):
    with pytest.raises(InvalidInputError, match=f"^{words}"):
        Captured.from_arrays(
            **arrays, projections=Projections(**{"query": np.zeros((4, 3, 7))} | change)
        )


def test_layers_are_read_when_they_are_asked_for(arrays):
    layer, asked = Captured.from_arrays(**arrays).layer(0), []

    def read():
        asked.append(1)
        return layer

    captured = Captured(
        {3: read, 1: layer},
        document=range(5),
        position=[5] * 5,
        token=np.full((5, 6), "a"),
        special=np.zeros((5, 6), dtype=bool),
    )
    assert captured.layers == [1, 3] and not asked
    assert [number for number, _ in captured] == [1, 3] and asked == [1]
    with pytest.raises(InvalidInputError, match=r"layer: 0 was not captured. Give one of \[1, 3\]"):
        captured.layer(0)

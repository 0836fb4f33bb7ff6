"""Calls of what captured heads are made of, read from and written to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor import heads
from attractor.heads import Captured, CapturedLayer, Projections
from fuzzing.arguments import example_files as given
from fuzzing.arguments.calls.files import FILE
from fuzzing.arguments.table import Call, Lazy

_KEYS = np.arange(24.0).reshape(2, 1, 4, 3) / 24
_QUERIES = np.arange(12.0).reshape(2, 2, 3) / 12
CAPTURED = Lazy(lambda: Captured.from_arrays(_KEYS, _QUERIES))
LAYER = Lazy(lambda: CAPTURED.value.layer(0))


def calls() -> Iterator[Call]:
    """One call of each."""
    layer = CAPTURED.value.layer(0)
    yield Call(
        CapturedLayer,
        queries=layer.queries, keys=layer.keys, allowed=layer.allowed, attention=layer.attention,
        values=None, self_check=layer.self_check, status=layer.status,
        blames={"queries": "keys"}, skip={"self_check": "NaN says that there was no check"},
    )  # fmt: skip
    yield Call(
        Projections, query=np.zeros((2, 3, 4)), bias=np.zeros((2, 3)), key=np.zeros((1, 3, 4)),
        blames={"query": "bias", "bias": "query", "key": "query"},
    )  # fmt: skip
    yield Call(CapturedLayer.key_head, self=LAYER, head=1)
    yield Call(
        Captured, layers={0: layer}, document=np.arange(2), position=np.arange(2),
        token=np.full((2, 4), "a"), special=np.zeros((2, 4), bool),
        takes={
            "document": "array", "position": "array", "special": "array mask none",
            "token": "array",
        },
        blames={"document": "position token", "token": "special"},
    )  # fmt: skip
    yield Call(
        Captured.from_arrays, keys=_KEYS, queries=_QUERIES,
        takes={
            "keys": "array", "queries": "array", "mask": "array mask none", "values": "array none",
            "document": "array none", "position": "array none", "special": "array mask none",
        },
        blames={"queries": "keys", "keys": "queries", "token": "special"},
    )  # fmt: skip
    yield Call(Captured.layer, self=CAPTURED, number=0, blames={"number": "layer"})
    yield Call(Captured.save, self=CAPTURED, path="heads.nc")
    yield Call(heads.load_captured, path=CAPTURED_FILE, blames=FILE)


def _saved() -> object:
    place = given._place("heads.nc")
    CAPTURED.value.save(place)
    return place


CAPTURED_FILE = Lazy(_saved)

"""Calls of ``attractor.heads.monitor``."""

from __future__ import annotations

from collections.abc import Iterator

from attractor import heads
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call


def calls() -> Iterator[Call]:
    """One call of each."""
    yield Call(
        heads.WatchedHead, name="head", matrix=ex.IDENTITY, tokens=ex.TOKENS,
        blames={"tokens": "keys queries"},
    )  # fmt: skip
    yield Call(
        heads.WatchedHead.read_matrix, self=ex.WATCHED, state=ex.W, tokens=ex.TOKENS,
        takes={"state": "array nan"}, nan=True, blames={"state": "matrix", "tokens": "matrix"},
    )  # fmt: skip
    yield Call(heads.HeadMonitor, heads=ex.WATCHED)
    watching = {"self": ex.MONITOR}
    state = {"state": "array nan"}
    yield Call(
        heads.HeadMonitor.hook, **watching, state=ex.W, takes=state,
        blames={"state": "matrix"},
    )  # fmt: skip
    yield Call(
        heads.HeadMonitor.check, **watching, state=ex.W, takes=state, blames={"state": "matrix"}
    )
    yield Call(
        heads.HeadMonitor.record, **watching, step=1, state=ex.W, takes=state,
        skip={"state": "what is wrong with it is in the records"},
    )  # fmt: skip
    yield Call(heads.HeadMonitor.compare_with_random, self=ex.MONITORED, draws=2)
    yield Call(heads.HeadMonitor.save, self=ex.MONITORED, path="records.nc")
    yield Call(heads.load_records, path=given.RECORD_FILE)

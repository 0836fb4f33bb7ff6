"""Calls of ``attractor.heads.monitor``."""

from __future__ import annotations

from collections.abc import Iterator

from attractor.heads import monitor
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call


def calls() -> Iterator[Call]:
    """One call of each."""
    yield Call(
        monitor.WatchedHead, name="head", matrix=ex.IDENTITY, tokens=ex.TOKENS,
        blames={"tokens": "keys queries"},
    )  # fmt: skip
    yield Call(
        monitor.WatchedHead.read_matrix, self=ex.WATCHED, state=ex.W, tokens=ex.TOKENS,
        takes={"state": "array nan"}, nan=True, blames={"state": "matrix", "tokens": "matrix"},
    )  # fmt: skip
    yield Call(monitor.HeadMonitor, heads=ex.WATCHED)
    watching = {"self": ex.MONITOR}
    state = {"state": "array nan"}
    yield Call(
        monitor.HeadMonitor.hook, **watching, state=ex.W, takes=state,
        blames={"state": "matrix"},
    )  # fmt: skip
    yield Call(
        monitor.HeadMonitor.check, **watching, state=ex.W, takes=state, blames={"state": "matrix"}
    )
    yield Call(
        monitor.HeadMonitor.record, **watching, step=1, state=ex.W, takes=state,
        skip={"state": "what is wrong with it is in the records"},
    )  # fmt: skip
    yield Call(monitor.HeadMonitor.compare_with_random, self=ex.MONITORED, draws=2)
    yield Call(monitor.HeadMonitor.save, self=ex.MONITORED, path="records.nc")
    yield Call(monitor.load_records, path=given.RECORD_FILE)

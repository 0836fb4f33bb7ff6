"""The latest record of every head, as a table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from attractor.geometry import Geometry
from attractor.monitor.record import HeadRecord, RecordStatus

_COLUMNS: dict[str, Callable[[float], str]] = {
    "margin_ratio": lambda x: f"{x:.4f}",
    "gap": lambda x: f"{x:.1e}",
    "norm": lambda x: f"{x:.4g}",
    "selection_changes": lambda x: f"{x:.0f}",
    "ties": lambda x: f"{x:.0f}",
    "constraints": lambda x: f"{x:.0f}",
}


def latest_record(records: list[HeadRecord]) -> HeadRecord | None:
    """The last record that was not postponed, or the last where all were; None without any."""
    held = [record for record in records if record.status is not RecordStatus.POSTPONED]
    return next(reversed(held or records), None)


def latest_table(latest: dict[str, HeadRecord | None], geometry: Geometry) -> Table:
    """One record of each head by its name."""
    table = Table(
        title=f"Heads at their latest record, held against solutions in the {geometry.name} norm",
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("head", no_wrap=True)
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for name in ("selected", *_COLUMNS):
        table.add_column(name.removeprefix("selection_").replace("_", " "), justify="right")
    for name, record in latest.items():
        if record is None:
            table.add_row(name, *["-"] * (3 + len(_COLUMNS)))
            continue
        chosen = record.selected_probability
        share = "-" if chosen is None else f"{100 * float(np.mean(chosen)):.2f} %"
        numbers = [
            show(record.numbers[key]) if key in record.numbers else "-"
            for key, show in _COLUMNS.items()
        ]
        table.add_row(name, str(record.step), str(record.status), share, *numbers)
    return table

"""What a run of the fuzzer found, as numbers and as a page of text."""

from __future__ import annotations

import collections
from typing import Any

KINDS = {
    "status": "Status",
    "stopped": "Stopped early, and whether rounding of W is worth more than the tolerance",
    "uniqueness": "Uniqueness of optimal answers",
    "probed": "Unique answers probed for others",
    "not known": "Uniqueness not known, and what could be shown",
    "file": "Certificate files",
    "gap": "Whether the gap of a matrix is known",
}


def summarize(records: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    """Adds up the records of blocks."""
    counts: dict[str, dict[str, dict[str, int]]] = {kind: {} for kind in KINDS}
    cells: dict[str, dict[str, dict[str, int]]] = {}
    for record in records:
        for key, number in record["counts"].items():
            kind, geometry, what = key.split("|")
            _add(counts[kind], geometry, what, number)
            if kind == "status":
                _add(counts[kind], "all", what, number)
                _add(cells.setdefault(record["family"], {}), geometry, what, number)
                _add(cells[record["family"]], "all", what, number)
    faults = [fault for record in records for fault in record["faults"]]
    worst = [tuple(r["worst_gap"]) for r in records if r["worst_gap"]]
    times = [r["time"] for r in records]
    slowest = [t["slowest"] for t in times if t["slowest"]]
    kinds = collections.Counter(fault["fault"].split(":")[0] for fault in faults)
    return {
        "settings": settings,
        "problems": sum(counts["status"].get("all", {}).values()),
        "counts": counts,
        "by_family": cells,
        "worst_gap": max(worst, default=None),
        "faults_by_check": dict(kinds),
        "faults": faults,
        "open": [answer for record in records for answer in record["open"]],
        "time": {
            "solving": sum(t["solving"] for t in times),
            "slowest": sorted(slowest, key=lambda c: -c[0] / c[1])[:10],
        },
    }


def _add(counts: dict[str, dict[str, int]], row: str, column: str, number: int) -> None:
    cell = counts.setdefault(row, {})
    cell[column] = cell.get(column, 0) + number


def table(report: dict[str, Any]) -> str:
    """The report as text."""
    parts = [f"{report['problems']} problems, {len(report['faults'])} faults"]
    for kind, title in KINDS.items():
        if report["counts"][kind]:
            parts.append(_grid(title, report["counts"][kind]))
    families = {name: rows["all"] for name, rows in report["by_family"].items()}
    parts.append(_grid("Status by family", families))
    if report["worst_gap"]:
        gap, name = report["worst_gap"]
        parts.append(f"Worst gap of an optimal answer: {gap:.3g} ({name})")
    lines = [f"  {s / n:8.3f} s  {name}" for s, n, name in report["time"]["slowest"]]
    parts.append("\n".join(["Slowest calls, seconds of the processor a problem:", *lines]))
    lines = [f"  {number:6d}  {check}" for check, number in report["faults_by_check"].items()]
    lines += [f"  {f['problem']}  {f['fault']}" for f in report["faults"][:200]]
    parts.append("\n".join(["Faults (run one again with --only FAMILY:SEED:GEOMETRY):", *lines]))
    return "\n\n".join(parts) + "\n"


def _grid(title: str, rows: dict[str, dict[str, int]]) -> str:
    columns = sorted({what for row in rows.values() for what in row})
    width = max(len(name) for name in [title, *rows])
    lines = [f"{title:{width}}" + "".join(f"  {c:>14}" for c in columns)]
    for name, row in rows.items():
        lines.append(f"{name:{width}}" + "".join(f"  {row.get(c, 0):14d}" for c in columns))
    return "\n".join(lines)

"""Runs the table of hostile arguments: ``python -m fuzzing.arguments [package ...]``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from fuzzing.arguments.calls import CALLS
from fuzzing.arguments.judge import GOOD
from fuzzing.arguments.run import pairs_of, run


def main() -> int:
    """Runs every call with every hostile value, and prints what came of them."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.arguments", description=__doc__)
    parser.add_argument("packages", nargs="*", help="rooms, such as next_token; all by default")
    parser.add_argument("--only", default="", help="callables whose name holds this text")
    parser.add_argument("--values", default="", help="values whose names match, such as 'JAX|half'")
    parser.add_argument("--sample", type=int, help="values for each parameter; all by default")
    parser.add_argument("--out", type=Path, help="a file for the counts and findings, as JSON")
    given = parser.parse_args()
    chosen = [
        name
        for name, call in CALLS.items()
        if given.only in name and (not given.packages or call.package in given.packages)
    ]
    pairs = [one for one in pairs_of(chosen, given.sample) if re.search(given.values, one[2])]
    found = run(pairs)
    report = _report(found)
    print(_text(report))
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
    return bool(report["findings"])


def _report(found: list[list[str]]) -> dict[str, Any]:
    """Counts by package and outcome, and the findings."""
    counts: dict[str, Counter[str]] = {}
    findings = []
    for name, parameter, value, kind, seen in found:
        counts.setdefault(CALLS[name].package, Counter())[kind] += 1
        if kind not in GOOD:
            findings.append(
                {"callable": name, "parameter": parameter, "value": value, "outcome": kind,
                 "seen": seen}
            )  # fmt: skip
    return {
        "callables": len({row[0] for row in found}),
        "calls": sum(sum(counter.values()) for counter in counts.values()),
        "counts": {package: dict(counter.most_common()) for package, counter in counts.items()},
        "findings": findings,
    }


def _text(report: dict[str, Any]) -> str:
    lines = [
        f"{one['callable']}({one['parameter']}={one['value']}): {one['outcome']}; {one['seen']}"
        for one in report["findings"]
    ]
    lines.append(f"{report['callables']} callables, {report['calls']} calls")
    for package, counts in report["counts"].items():
        lines.append(f"  {package}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

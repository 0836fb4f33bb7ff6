"""Checks the browser's bounds without rounding, after `node --test test/margin.test.mjs`.

    python explorer/test/check_certificates.py

A lower bound has to be no higher than what the multipliers prove, a value no lower than the norm of
a matrix that meets all constraints, and a contradiction has to vanish exactly for some multipliers
on the same constraints. Norms are computed to 60 digits.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath as mp
from exact_feasibility import constraint_rows, contradiction

BUILD = Path(__file__).parent.parent / "build"


def norm(name: str, entries: list[Fraction]) -> mp.mpf:
    """A norm of a prompt of two entries, or of a 2 x 2 matrix."""
    x = [mp.mpf(v.numerator) / v.denominator for v in entries]
    if name in ("spectral", "nuclear"):
        turn = mp.hypot(x[0] + x[3], x[2] - x[1]) / 2
        flip = mp.hypot(x[0] - x[3], x[1] + x[2]) / 2
        return turn + flip if name == "spectral" else 2 * max(turn, flip)
    p = 2.0 if name == "frobenius" else float(name.removeprefix("l_"))
    if math.isinf(p):
        return max(abs(v) for v in x)
    power = mp.mpf(p)
    return mp.fsum(abs(v) ** power for v in x) ** (1 / power)


def dual_norm(name: str, entries: list[Fraction]) -> mp.mpf:
    """The dual norm."""
    if name in ("spectral", "nuclear"):
        return norm("nuclear" if name == "spectral" else "spectral", entries)
    p = 2.0 if name == "frobenius" else float(name.removeprefix("l_"))
    if p == 1:
        return norm("l_inf", entries)
    if math.isinf(p):
        return norm("l_1", entries)
    power = mp.mpf(p) / (mp.mpf(p) - 1)
    return mp.fsum(abs(mp.mpf(v.numerator) / v.denominator) ** power for v in entries) ** (
        1 / power
    )


def main() -> None:
    """Counts what holds."""
    mp.mp.dps = 60
    problems = json.loads((BUILD / "reference" / "margin.json").read_text())
    answers = json.loads((BUILD / "answers.json").read_text(), parse_int=float)
    counts = {"lower bounds": 0, "values": 0, "contradictions": 0}
    tightest = mp.mpf(1)
    for answer in answers:
        one = problems[int(answer["number"])]
        name, problem = one["norm"], one["problem"]
        if answer["status"] in ("tied", "empty"):
            continue
        selection = [max(range(len(row)), key=row.__getitem__) for row in problem["scores"]]
        rows, bounds = constraint_rows(problem, selection)
        if answer["status"] == "infeasible":
            held = [j for j, x in enumerate(answer["multipliers"]) if x > 0]
            found = contradiction([rows[j] for j in held], [bounds[j] for j in held])
            assert found is not None, answer["number"]
            counts["contradictions"] += 1
            continue
        evidence = answer["evidence"]
        if not evidence:
            continue
        weights = [
            Fraction(float(a)) + Fraction(float(b))
            for a, b in zip(evidence["multipliers"], evidence["multipliersLow"], strict=True)
        ]
        assert min(weights) >= 0
        combined = [
            sum(w * row[k] for w, row in zip(weights, rows, strict=True))
            for k in range(len(rows[0]))
        ]
        total = sum(w * b for w, b in zip(weights, bounds, strict=True))
        if total:
            proved = mp.mpf(total.numerator) / total.denominator / dual_norm(name, combined)
            assert mp.mpf(answer["lower"]) <= proved, answer["number"]
            tightest = min(tightest, 1 - mp.mpf(answer["lower"]) / proved)
            counts["lower bounds"] += 1
        if answer["value"] is None or not answer["value"]:
            continue
        w = [
            Fraction(float(a)) + Fraction(float(b))
            for a, b in zip(evidence["w"], evidence["wl"], strict=True)
        ]
        margins = [sum(a * b for a, b in zip(row, w, strict=True)) for row in rows]
        least = min(m for m, b in zip(margins, bounds, strict=True) if b)
        assert least > 0
        size = norm(name, w) / (mp.mpf(least.numerator) / least.denominator)
        assert mp.mpf(answer["value"]) >= size, answer["number"]
        counts["values"] += 1
    print(", ".join(f"{count} {what}" for what, count in counts.items()), "hold;", end=" ")
    print(f"the closest bound is {mp.nstr(tightest, 2)} below what is proved")


if __name__ == "__main__":
    main()

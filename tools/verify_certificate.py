"""Checks a certificate of a margin problem in exact arithmetic: `verify_certificate.py FILE`.

The problem is to minimize ||W|| subject to a_j^T W b_j >= c_j, or = c_j for equalities. Numbers
are the float64 nearest to what is written. Multipliers x, not negative on inequalities, prove that
whatever meets the constraints has ||W|| >= sum_j c_j x_j / ||M||_dual, M = sum_j x_j a_j b_j^T.
- optimal: W, scaled up where that cures shortfalls, meets each constraint to a shortfall v_j of
  at most 2^-46 (d + e) max(|c_j|, ||a_j|| ||b_j|| ||W||_F), mostly none. Whatever does as well has
  a norm of at least (sum_j c_j x_j - |x_j| v_j) / ||M||_dual. The norm of the scaled W exceeds
  that, and W falls short of the scaled one, by at most the fraction `gap`.
- infeasible: no matrix meets the constraints: M = 0 and sum_j c_j x_j > 0. Here x are integers.
- lower bound: no matrix of norm below `norm_at_least` meets the constraints.

Sums and products are exact; roots and powers are bounded from above. Schatten norms need no
singular values: for any U, s, V and E = X - U^T diag(s) V, ||X||_p is at most
sqrt((1 + ||U U^T - I||_F) (1 + ||V V^T - I||_F)) ||s||_p + min(d, e)^max(0, 1/p - 1/2) ||E||_F.
A norm may be the maximum, or the sum, of such norms of blocks with weights. Its dual is the sum, or
the maximum, of the dual norms of the blocks over the weights.
Prints one line. Exit status: 0 accepted, 1 refused, 2 if there is no such file, or no JSON in it.
"""
# ruff: noqa: B905 - where lengths can differ, zip is strict

import json
import math
import sys
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from operator import mul
from pathlib import Path
from typing import Any

UP = Context(prec=60, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)


def require(condition: Any, problem: str) -> None:
    """Refuses what does not hold."""
    if not condition:
        raise ValueError(problem)


def integers(data: Any, rows: int, columns: int, unit: int) -> list[list[int]]:
    """A matrix of integers over `unit`, a power of two."""
    require(len(data) == rows and all(len(r) == columns for r in data), "sizes do not fit")
    return [[n * (unit // q) for n, q in map(float.as_integer_ratio, r)] for r in data]


def product(left: Any, right: Any) -> list[list[int]]:
    """Inner products of the rows of one matrix with those of another."""
    right = [*right]
    return [[sum(map(mul, a, b)) for b in right] for a in left]


def power(x: Fraction, p: Fraction) -> Fraction:
    """An upper bound on x^p; `ln` and `exp` are right to half a unit in the last place."""
    base = UP.divide(Decimal(x.numerator), Decimal(x.denominator))
    log = UP.next_plus(UP.ln(base)) if base != 1 else Decimal(0)
    log = UP.divide(UP.multiply(log, Decimal(p.numerator)), Decimal(p.denominator))
    return Fraction(UP.next_plus(UP.exp(max(log, Decimal(-300))))) if log else Fraction(1)


def vector_norm(entries: list, p: Any) -> Fraction:
    """An upper bound on the l_p norm of integers."""
    sizes = [abs(x) for x in entries if x]
    if p in (1, math.inf) or not sizes:
        return Fraction(sum(sizes) if p == 1 else max(sizes, default=0))
    if p == 2:
        return Fraction(math.isqrt(sum(map(mul, sizes, sizes)) << 256) + 1, 1 << 128)
    most = max(sizes)
    return most * power(sum((power(Fraction(x, most), p) for x in sizes), Fraction(0)), 1 / p)


def norm(X: list, unit: int, entrywise: int, p: Any, factors: Any) -> Fraction:
    """An upper bound on the norm of X / unit^3."""
    if entrywise or p == 2:
        return vector_norm([x for row in X for x in row], p) / unit**3
    k, d, e, stretch = len(factors[1]), len(X), len(X[0]), Fraction(1)
    U, V = integers(factors[0], k, d, unit), integers(factors[2], k, e, unit)
    for gram in (product(U, U), product(V, V)):
        defect = [g - unit**2 * (i == j) for i, r in enumerate(gram) for j, g in enumerate(r)]
        stretch *= 1 + vector_norm(defect, 2) / unit**2
    (s,) = integers([factors[1]], 1, k, unit)
    fit = product(zip(*U, strict=True), zip(*([x * y for y in r] for x, r in zip(s, V))))
    rest = vector_norm([x - y for r, t in zip(X, fit, strict=True) for x, y in zip(r, t)], 2)
    constant = power(Fraction(min(d, e)), max(Fraction(0), 1 / p - Fraction(1, 2)))
    return power(stretch, Fraction(1, 2)) * vector_norm(s, p) / unit + constant * rest / unit**3


def size(X: list, unit: int, kind: dict, factors: Any, dual: bool = False) -> Fraction:
    """The same for a norm as files name it, or for its dual."""
    if "blocks" not in kind:
        entrywise, p = {"schatten": 0, "entrywise": 1}[kind["family"]], kind["p"]
        p = math.inf if p == "inf" else Fraction(*float.as_integer_ratio(p))
        require(p >= 1, "p is below 1")
        q = math.inf if p == 1 else Fraction(1) if p == math.inf else p / (p - 1)
        return norm(X, unit, entrywise, q if dual else p, factors)
    sizes, covered = [], []
    for block, own in zip(kind["blocks"], factors or [None] * len(kind["blocks"]), strict=True):
        rows, columns = (range(*map(int, block[side])) for side in ("rows", "columns"))
        covered += [(i, j) for i in rows for j in columns]
        weight = Fraction(*float.as_integer_ratio(block["weight"]))
        require(weight > 0, "a weight is not positive")
        part = size([[X[i][j] for j in columns] for i in rows], unit, block, own, dual)
        sizes.append(part / weight if dual else part * weight)
    whole = [(i, j) for i in range(len(X)) for j in range(len(X[0]))]
    require(sorted(covered) == whole, "the blocks do not cover the matrix once")
    summed = {"maximum": dual, "sum": not dual}[kind["family"]]
    return sum(sizes, Fraction(0)) if summed else max(sizes)


def verify(file: dict) -> str:
    """What a certificate proves, in words; raises an exception if not what it claims."""
    require(file["format"] == "margin certificate 1", "unknown format")
    claim, bounds, held, factors = (file[k] for k in ("claim", "bounds", "equality", "factors"))
    kind, m, d, e = claim["kind"], len(bounds), len(file["left"][0]), len(file["right"][0])
    exact = kind == "infeasible"
    weights = [0.0] * m if exact else file["multipliers"]
    parts = [[bounds, weights], file["left"], file["right"], file["W"] or []]
    known = [f for own in factors.values() for f in ([own] if "p" in file["norm"] else own)]
    parts += [part for U, s, V in filter(None, known) for part in (U, [s], V)]
    unit = max(float.as_integer_ratio(x)[1] for part in parts for row in part for x in row)
    A, B = integers(file["left"], m, d, unit), integers(file["right"], m, e, unit)
    c, x = integers([bounds, weights], 2, m, unit)
    x = [int(digits, 16) for digits in file["multipliers"]] if exact else x
    require(len(x) == len(held) == m and all(type(h) is bool for h in held), "sizes do not fit")
    require(all(y >= 0 or h for y, h in zip(x, held)), "an inequality has a negative multiplier")
    M = product(zip(*A), zip(*([y * b for b in row] for y, row in zip(x, B))))
    total = sum(map(mul, c, x))
    if exact:
        require(total > 0 and not any(map(any, M)), "the multipliers show no contradiction")
        return f"infeasible, {m - x.count(0)} constraints contradict each other"
    dual_norm = size(M, unit, file["norm"], factors.get("M"), dual=True) * unit**2
    if kind == "lower bound":
        least = Fraction(*float.as_integer_ratio(claim["norm_at_least"]))
        require(0 < total >= least * dual_norm, "the bound is not proved")
        return f"no matrix of norm below {float(least)} meets the constraints"
    require(kind == "optimal", "unknown claim")
    W = integers(file["W"], d, e, unit**3)
    margins = [Fraction(sum(map(mul, r, b)), unit**4) for r, b in zip(product(A, zip(*W)), B)]
    asked = [y > 0 and not h for y, h in zip(c, held)]
    scalable = all(a or not y for a, y in zip(asked, c))
    scale = min([Fraction(1), *(g / y for g, y, a in zip(margins, c, asked) if a and scalable)])
    require(scale > 0, "a margin that should be positive is not")
    square, moved = sum(y * y for r in W for y in r), Fraction(0)
    for a, b, y, w, h, g in zip(A, B, c, x, held, margins):
        v = abs(y * scale - g) if h else max(y * scale - g, 0)
        reach = Fraction(sum(map(mul, a, a)) * sum(map(mul, b, b)) * square, unit**8)
        require(v * v * 2**92 <= (d + e) ** 2 * max((y * scale) ** 2, reach), "a margin is short")
        moved += abs(w) * v / scale
    value = size(W, unit, file["norm"], factors.get("W")) / scale
    lower = max(Fraction(0), total - moved) / dual_norm if dual_norm else Fraction(0)
    gap = max(1 - lower / value if value else Fraction(0), 1 - scale)
    require(gap <= Fraction(*float.as_integer_ratio(claim["gap"])) < 1, f"the gap is {float(gap)}")
    return f"optimal to {float(gap):.2e}, of norm {float(value)}, none as good below {float(lower)}"


def main() -> int:
    """Reads a file and says what it proves."""
    try:
        file = json.loads(Path(*sys.argv[1:]).read_text("utf-8"), parse_int=float)
        print(f"ACCEPTED: {verify(file)}")
        return 0
    except (OSError, UnicodeError, json.JSONDecodeError, RecursionError) as error:
        print(f"REFUSED: unreadable, {error}")
        return 2
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        print(f"REFUSED: {error if type(error) is ValueError else f'malformed, {error!r}'}")
        return 1


if __name__ == "__main__":
    sys.exit(main())

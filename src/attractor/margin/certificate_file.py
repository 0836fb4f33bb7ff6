"""Certificate files: all that anyone needs to check a solution without this library.

A file is JSON. Its numbers are float64 written so that reading gives the same bits, and
``tools/verify_certificate.py`` says what they prove, in exact arithmetic, with nothing but the
standard library.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from jaxtyping import Float

from attractor.errors import InvalidInputError, Status
from attractor.geometry import (
    BlockMaximum,
    BlockSum,
    Frobenius,
    Geometry,
    Lp,
    Schatten,
    has_norm_of,
    singular_value_decomposition,
)
from attractor.margin import extended
from attractor.margin.problem import MarginProblem
from attractor.margin.scaling import ScaledConstraints
from attractor.storage import write_file

if TYPE_CHECKING:
    from attractor.margin.solution import Solution

FORMAT = "margin certificate 1"
_MOST_CONSTRAINTS = 160
"""So many are combined in five seconds; the time grows faster than the cube of their number."""
_PRIME = 134217689
"""The largest below 2^27: products of residues can be added 512 times in 64 bits."""


def save_certificate(solution: Solution, path: str | os.PathLike[str]) -> None:
    """Writes the strongest claim that a solution proves, with its proof.

    The claim is *optimal* with a relative gap; or *infeasible*, if integers near the multipliers
    combine the constraints into an exact contradiction; or a *lower bound* on the norm of every
    matrix that meets the constraints. The last is also what multipliers prove whose contradiction
    holds to working precision alone, as for constraints that were rounded.

    Args:
        solution: Of one problem, not of a batch.
        path: Where to write; the file appears whole or not at all.

    Raises:
        InvalidInputError: If the solution is of a batch, or proves nothing.
    """
    write_file(path, json.dumps(contents(solution), allow_nan=False) + "\n")


def contents(solution: Solution) -> dict[str, Any]:
    """What ``save_certificate`` writes.

    Raises:
        InvalidInputError: If the solution is of a batch, or proves nothing.
    """
    if solution.problem.instances is not None:
        raise InvalidInputError(
            "solution",
            f"it holds {len(solution)} instances, and a certificate is of one",
            "Save solution[i] for each i",
        )
    present = solution.problem.present
    problem = solution.problem.batched()[0]  # without empty slots
    if not present.any():
        raise InvalidInputError(
            "solution", "its problem has no constraints", "There is nothing to certify: W is zero"
        )
    x = solution.multipliers[present]
    x = np.where(problem.equality, x, np.maximum(x, 0.0))
    claim, exact = _claim(solution, problem, x)
    optimal = claim["kind"] == "optimal"
    matrices = {"M": _sum(problem, x)} | ({"W": solution.W} if optimal else {})
    if exact or _entries_tell(solution.geometry, problem.shape):
        matrices = {}
    factors = {name: _factors(matrix, solution.geometry) for name, matrix in matrices.items()}
    return {
        "format": FORMAT,
        "claim": claim,
        "norm": _norm(solution.geometry, problem.shape),
        "left": problem.left.tolist(),
        "right": problem.right.tolist(),
        "bounds": problem.bounds.tolist(),
        "equality": problem.equality.tolist(),
        "W": solution.W.tolist() if optimal else None,
        "multipliers": [hex(value) for value in exact] if exact else x.tolist(),
        "factors": factors,
    }


def _claim(
    solution: Solution, problem: MarginProblem, x: np.ndarray
) -> tuple[dict[str, Any], list[int] | None]:
    """The claim, and the integers that prove it if it is infeasibility."""
    if solution.status is Status.INFEASIBLE:
        exact = exact_multipliers(problem, x)
        if exact is not None:
            return {"kind": "infeasible"}, exact
    # What is proved exactly differs from what the certificate proves by the rounding in both.
    rounding = sum(problem.shape) * 2.0**-46
    # Below the normal numbers singular values are written to a few digits alone.
    steps = 2 * min(problem.shape) * np.finfo(np.float64).smallest_subnormal
    coarse = steps / solution.norm if solution.norm > 0 else 0.0
    met = solution.certificate.loose_violation[0] <= rounding / 2
    gap = solution.gap + rounding + coarse
    if np.isfinite(solution.W).all() and met and gap < 1:
        return {"kind": "optimal", "gap": gap}, None
    least = min(solution.dual_value * (1 - rounding), np.finfo(np.float64).max)
    if not least > 0:
        raise InvalidInputError(
            "solution",
            "it proves nothing about the problem",
            "Save solutions that are optimal, infeasible, or have a lower bound above zero",
        )
    return {"kind": "lower bound", "norm_at_least": float(least)}, None


def _norm(geometry: Geometry, shape: tuple[int, int]) -> dict[str, Any]:
    """The norm in words that name no class."""
    if _is_in_blocks(geometry):
        blocks = [
            {
                "rows": [piece.rows.start, piece.rows.stop],
                "columns": [piece.columns.start, piece.columns.stop],
                "weight": piece.weight,
                **_norm(piece.geometry, piece.shape),
            }
            for piece in geometry.pieces(shape)
        ]
        family = "maximum" if isinstance(geometry, BlockMaximum) else "sum"
        return {"family": family, "blocks": blocks}
    if has_norm_of(geometry, Frobenius):
        return {"family": "entrywise", "p": 2.0}
    if has_norm_of(geometry, Lp) or has_norm_of(geometry, Schatten):
        family = "entrywise" if isinstance(geometry, Lp) else "schatten"
        return {"family": family, "p": "inf" if math.isinf(geometry.p) else float(geometry.p)}
    raise InvalidInputError(
        "solution",
        f"no certificate is defined in the geometry {geometry!r}",
        "Solve in an entrywise or a Schatten norm, or in blocks of such norms",
    )


def _is_in_blocks(geometry: Geometry) -> TypeGuard[BlockMaximum | BlockSum]:
    return has_norm_of(geometry, BlockMaximum) or has_norm_of(geometry, BlockSum)


def _entries_tell(geometry: Geometry, shape: tuple[int, int]) -> bool:
    """Whether the norm follows from the entries without singular values."""
    if _is_in_blocks(geometry):
        return all(_entries_tell(piece.geometry, shape) for piece in geometry.pieces(shape))
    return not isinstance(geometry, Schatten) or geometry.p == 2


def _sum(problem: MarginProblem, x: np.ndarray) -> np.ndarray:
    """``sum_j x_j a_j b_j^T``, rounded once: cancellation would spoil a plain sum."""
    scaled = ScaledConstraints.of(problem.batched())
    weights = np.ldexp(x, scaled.shift)
    shift = int(np.frexp(np.abs(weights).max())[1])
    pair = extended.weighted_outer_sum(scaled.left, np.ldexp(weights, -shift), scaled.right)
    return np.ldexp(pair[0] + pair[1], shift)[0]


def _factors(matrix: np.ndarray, geometry: Geometry) -> list[Any]:
    """Singular vectors as rows, singular values, singular vectors as rows; or those of blocks."""
    if _is_in_blocks(geometry):
        return [
            _factors(matrix[piece.rows, piece.columns], piece.geometry)
            if not _entries_tell(piece.geometry, piece.shape)
            else None
            for piece in geometry.pieces(matrix.shape)
        ]
    U, s, V = singular_value_decomposition(matrix)
    return [U.T.tolist(), s.tolist(), V.tolist()]


def exact_multipliers(
    problem: MarginProblem, multipliers: Float[np.ndarray, "m"]
) -> list[int] | None:
    """Integers with ``sum x_j a_j b_j^T = 0`` and ``sum c_j x_j > 0``, both exactly.

    Rounded multipliers leave a matrix sum of the size of rounding. If the constraints that carry
    a multiplier do contradict each other as they are stored, the equation has solutions close by;
    unknowns that it leaves free keep their value.

    Args:
        problem: The constraints, without an axis of instances.
        multipliers: Farkas multipliers of working precision.

    Returns:
        One integer a constraint, not negative on inequalities; None where there is no such
        contradiction near the multipliers, or where more than 160 constraints carry one.
    """
    used = np.flatnonzero((multipliers != 0) & problem.present)
    if not 0 < used.size <= _MOST_CONSTRAINTS:
        return None
    left, left_shift = _integers(problem.left[used])
    right, right_shift = _integers(problem.right[used])
    bounds, bound_shift = _integers(problem.bounds[used, None])
    x, x_shift = _integers(multipliers[used, None])
    shift = left_shift + right_shift  # rows are 2^shift times the constraints
    rows = (left[:, :, None] * right[:, None, :]).reshape(used.size, -1)
    found = _null_vector(rows, _common(x[:, 0], -(x_shift + shift)))
    if found is None:
        return None
    exact = _common(found, shift)
    if (rows.T @ found).any() or ((exact < 0) & ~problem.equality[used]).any():
        return None
    if not sum(_common(bounds[:, 0], -bound_shift) * exact) > 0:
        return None
    result = [0] * multipliers.size
    for j, value in zip(used, exact, strict=True):
        result[j] = value
    return result


def _integers(rows: Float[np.ndarray, "k n"]) -> tuple[np.ndarray, np.ndarray]:
    """Rows times ``2^shift`` as arrays of Python's integers, and the shifts."""
    ratios = [[x.as_integer_ratio() for x in row] for row in rows.tolist()]
    shifts = [max(q.bit_length() for _, q in row) - 1 for row in ratios]
    whole = [[(n << shift) // q for n, q in row] for row, shift in zip(ratios, shifts, strict=True)]
    return np.array(whole, dtype=object).reshape(rows.shape), np.array(shifts, dtype=object)


def _common(values: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """``values * 2^exponents`` times the power of two that makes all of them integers."""
    least = min(exponents)
    return np.array(
        [v << (e - least) for v, e in zip(values, exponents, strict=True)], dtype=object
    )


def _null_vector(rows: np.ndarray, near: np.ndarray) -> np.ndarray | None:
    """Integers, near some up to a common factor, that combine rows of integers to zero.

    None if only zeros do, or, hardly ever, if the prime hides it: the answer wants checking.
    """
    entries = np.array([entry for entry in rows.T if entry.any()], dtype=object)
    if not len(entries):
        return near
    which, pivots, inverse = _pivots(entries)
    free = np.setdiff1d(np.arange(len(rows)), pivots)
    if not free.size:
        return None
    found = near.copy()
    if pivots.size:
        square = entries[np.ix_(which, pivots)]
        wanted = -(entries[np.ix_(which, free)] @ near[free])
        numerators, denominator = _solve(square, inverse, wanted)
        found[free] *= denominator
        found[pivots] = numerators
    return found // math.gcd(*found)


def _pivots(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of a largest block with an inverse modulo the prime, and that inverse."""
    count = entries.shape[1]
    rest = (entries % _PRIME).astype(np.int64)
    order = np.arange(len(rest))
    pivots: list[int] = []
    for j in range(count):
        i = len(pivots)
        candidates = np.flatnonzero(rest[i:, j])
        if not candidates.size:
            continue
        swap, back = [i, i + candidates[0]], [i + candidates[0], i]
        rest[swap], order[swap] = rest[back], order[back]
        factors = rest[i + 1 :, j] * pow(int(rest[i, j]), -1, _PRIME) % _PRIME
        rest[i + 1 :] = (rest[i + 1 :] - factors[:, None] * rest[i]) % _PRIME
        pivots.append(j)
    which, columns = order[: len(pivots)], np.array(pivots)
    return which, columns, _inverse(entries[np.ix_(which, columns)] % _PRIME)


def _inverse(square: np.ndarray) -> np.ndarray:
    """The inverse modulo the prime of a matrix that has one (Gauss and Jordan)."""
    size = len(square)
    both = np.concatenate([square.astype(np.int64), np.eye(size, dtype=np.int64)], axis=1)
    for i in range(size):
        k = i + np.flatnonzero(both[i:, i])[0]
        both[[i, k]] = both[[k, i]]
        both[i] = both[i] * pow(int(both[i, i]), -1, _PRIME) % _PRIME
        factors = both[:, i].copy()
        factors[i] = 0
        both = (both - factors[:, None] * both[i]) % _PRIME
    return both[:, size:]


def _solve(square: np.ndarray, inverse: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, int]:
    """Numerators, and their denominator, of the exact solution of a system of integers.

    Digits of the solution to the base of the prime, one a step, cost a product with the matrix
    each (Dixon 1982). Hadamard's bound says how many settle the fractions.
    """
    augmented = np.concatenate([square, wanted[:, None]], axis=1)
    bits = sum((sum(v * v for v in row) or 1).bit_length() // 2 + 1 for row in augmented)
    value, modulus = np.zeros(len(wanted), dtype=object), 1
    digits = []
    for _ in range(2 * bits // (_PRIME.bit_length() - 1) + 2):
        digit = inverse @ (wanted % _PRIME).astype(np.int64) % _PRIME
        digits.append(digit.astype(object))
        wanted = (wanted - square @ digits[-1]) // _PRIME
    for digit in reversed(digits):
        value, modulus = value * _PRIME + digit, modulus * _PRIME
    denominator = 1
    for entry in value:
        denominator *= _denominator(entry * denominator % modulus, modulus)
    numerators = value * denominator % modulus
    return np.where(2 * numerators > modulus, numerators - modulus, numerators), denominator


def _denominator(residue: int, modulus: int) -> int:
    """The denominator of the fraction of small terms that has that residue (Wang 1981)."""
    most = math.isqrt(modulus // 2)
    if min(residue, modulus - residue) <= most:
        return 1
    rest, last, factor, before = residue, modulus, 1, 0
    while rest > most:
        quotient = last // rest
        rest, last = last - quotient * rest, rest
        factor, before = before - quotient * factor, factor
    return abs(factor)

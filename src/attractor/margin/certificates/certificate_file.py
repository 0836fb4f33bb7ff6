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
from attractor.margin.batching import extended
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.exact import exact_multipliers
from attractor.margin.certificates.feasible_point import slack_of
from attractor.margin.problem import MarginProblem
from attractor.support.errors import InvalidInputError, Status
from attractor.support.storage import write_file

if TYPE_CHECKING:
    from attractor.margin.solution import Solution

FORMAT = "margin certificate 1"


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
        exact = exact_multipliers(problem.left, problem.right, problem.bounds, problem.equality, x)
        if exact is not None:
            return {"kind": "infeasible"}, exact
    # What is proved exactly differs from what the certificate proves by the rounding in both.
    rounding = sum(problem.shape) * 2.0**-46
    # Below the normal numbers singular values are written to a few digits alone.
    steps = 2 * min(problem.shape) * np.finfo(np.float64).smallest_subnormal
    coarse = steps / solution.norm if solution.norm > 0 else 0.0
    met = solution.certificate.loose_violation[0] <= rounding / 2
    if np.isfinite(solution.W).all() and met:
        gap = _gap_to_rounding(solution, problem, x) + rounding + coarse
        if gap < 1:
            return {"kind": "optimal", "gap": gap}, None
    least = min(solution.dual_value * (1 - rounding), np.finfo(np.float64).max)
    if not least > 0:
        raise InvalidInputError(
            "solution",
            "it proves nothing about the problem",
            "Save solutions that are optimal, infeasible, or have a lower bound above zero",
        )
    return {"kind": "lower bound", "norm_at_least": float(least)}, None


def _gap_to_rounding(solution: Solution, problem: MarginProblem, x: np.ndarray) -> float:
    """How far the norm of W exceeds that of whatever comes as close to meeting the constraints.

    W is scaled up where that cures shortfalls. Of what it does not cure, v_j, each moves the
    smallest norm by up to ``|x_j| v_j``.
    """
    scaled = ScaledConstraints.of(problem.batched())
    W, weights = (one[0] for one in scaled.scale(solution.W[None], x[None]))
    slack, doubt = slack_of(scaled, 0, W)
    curable = (scaled.positive & scaled.scalable[:, None])[0]
    scale = min(1.0, solution.margin) if curable.any() else 1.0
    if not scale > 0:
        return np.inf
    short = np.where(scaled.equality[0], np.abs(slack), np.maximum(-slack, 0.0)) + doubt
    short = np.where(curable | ~np.isfinite(short), 0.0, short)
    total = float((np.abs(weights) * short).sum())
    moved = np.ldexp(total / solution.dual_norm, scaled.unit[0]) / scale if total > 0 else 0.0
    value = solution.norm / scale
    gap = (value - solution.dual_value + moved) / value if value > 0 else 0.0
    return float(max(gap, 1.0 - scale))


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

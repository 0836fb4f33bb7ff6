"""From an interior point of a linear program to an exact solution.

Near the solution every product of an interior point has one factor that vanishes. Which one
tells which entries lie between their bounds and which constraints are slack; linear equations
determine the rest. Where the solution is one vertex they are square and solved for a whole
batch; otherwise the interior point is projected on the solutions of the equations, which moves
it little (Mehrotra and Ye 1993).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float

from attractor.margin.batching.batches import solutions
from attractor.margin.linear.interior_points import EntrywiseProgram

_NEGLIGIBLE = 1e-12
"""Singular values of a system, relative to the largest, that are rounding."""


def separation(program: EntrywiseProgram) -> Float[np.ndarray, "k"]:
    """Ratio that separates the unknowns of the nearest basis from the others."""
    scores, count = _scores(program)
    if count == 0:
        return np.full(len(scores), np.inf)
    first = scores.shape[-1] - count
    ordered = np.partition(scores, (first - 1, first), axis=-1)
    return ordered[:, first] / ordered[:, first - 1]


def nearest_vertex(
    program: EntrywiseProgram,
) -> tuple[Float[np.ndarray, "k D"], Float[np.ndarray, "k m"]]:
    """Entries and multipliers of the basis that an interior point hints at; NaN if it is none.

    A basis has as many unknowns as there are constraints: entries between their bounds, slacks,
    and t in l_inf. Taken are those whose factor is largest relative to its partner.
    """
    k, m, D = program.rows.shape
    scores, count = _scores(program)
    order = np.argpartition(scores, D + m - count - 1, axis=-1)[:, D + m - count :]
    is_entry = order < D
    place = np.minimum(order, D - 1)
    chosen = np.zeros((k, D + m), dtype=bool)
    np.put_along_axis(chosen, order, True, axis=-1)
    signs = program.signs()
    border = program.border(~chosen[:, :D], signs)

    columns = np.take_along_axis(program.rows, place[:, None, :], axis=-1)
    columns *= is_entry[:, None, :]
    instance, column = np.nonzero(~is_entry)
    columns[instance, order[instance, column] - D, column] = -1.0
    basis = np.concatenate([columns, program.rows @ np.swapaxes(border, -1, -2)], axis=-1)
    costs = np.take_along_axis(program.costs(signs), place, axis=-1) * is_entry
    costs = np.hstack([costs, np.ones((k, border.shape[1]))])

    x = solutions(basis, program.padded_bounds())
    w = np.zeros((k, D + m))
    np.put_along_axis(w, order, x[:, :count], axis=-1)
    w = w[:, :D] + (x[:, None, count:] @ border)[:, 0]
    return w, solutions(np.swapaxes(basis, -1, -2), costs)


def nearest_on_face(
    program: EntrywiseProgram,
) -> tuple[Float[np.ndarray, "k D"], Float[np.ndarray, "k m"]]:
    """Entries and multipliers nearest to the interior points that solve the equations."""
    between, tight = _partition(program)
    found = [
        project_on_face(
            program.choose([i]), program.signs()[i], between[i], tight[i], w, multipliers
        )
        for i, (w, multipliers) in enumerate(zip(program.w, program.multipliers, strict=True))
    ]
    w, multipliers = zip(*found, strict=True)
    return np.stack(w), np.stack(multipliers)


def project_on_face(
    program: EntrywiseProgram,
    signs: Float[np.ndarray, "D"],
    between: Bool[np.ndarray, "D"],
    tight: Bool[np.ndarray, "m"],
    w: Float[np.ndarray, "D"],
    multipliers: Float[np.ndarray, "m"],
) -> tuple[Float[np.ndarray, "D"], Float[np.ndarray, "m"]]:
    """Entries and multipliers near given ones that solve the equations of a face.

    Args:
        program: A single linear program.
        signs: Signs of the entries.
        between: Entries between their bounds.
        tight: Constraints that hold with equality; the others have no multiplier.
        w: Entries to start from.
        multipliers: Multipliers to start from.
    """
    rows, bounds = program.rows[0, tight], program.padded_bounds()[0, tight]
    border = program.border(~between[None], signs[None])[0]
    costs = program.costs(signs[None])[0, between]
    system = np.hstack([rows[:, between], rows @ border.T])
    x = np.concatenate([w[between], np.full(len(border), np.abs(w).max())])
    x = _corrected(system, x, bounds)
    entries = x[between.sum() :] @ border
    entries[between] = x[: between.sum()]
    result = np.zeros_like(multipliers)
    costs = np.concatenate([costs, np.ones(len(border))])
    result[tight] = _corrected(system.T, multipliers[tight], costs)
    return entries, result


def _scores(program: EntrywiseProgram) -> tuple[Float[np.ndarray, "k n"], int]:
    """Ratios of factors of entries and slacks, and how many of these a basis has."""
    ratios = np.where(program.present, program.slack_ratios(), np.inf)
    count = program.bounds.shape[-1] - program.border_size
    return np.hstack([program.entry_ratios(), ratios]), count


def _partition(
    program: EntrywiseProgram,
) -> tuple[Bool[np.ndarray, "k D"], Bool[np.ndarray, "k m"]]:
    """Entries between their bounds and constraints without slack, by which factor vanishes."""
    D = program.rows.shape[-1]
    primal, dual = np.split(program.primal, [2 * D], -1), np.split(program.dual, [2 * D], -1)
    entry_size, slack_size = (
        a.max(-1, keepdims=True) / b.max(-1, keepdims=True)
        for a, b in zip(primal, dual, strict=True)
    )
    between = program.entry_ratios() > entry_size
    return between, program.present & (program.slack_ratios() <= slack_size)


def _corrected(
    system: Float[np.ndarray, "r n"], x: Float[np.ndarray, "n"], right: Float[np.ndarray, "r"]
) -> Float[np.ndarray, "n"]:
    """The solution nearest to x, in the sense of least squares if there is none."""
    for _ in range(2):  # the second time removes the rounding of the first
        rest = right - system @ x
        found: Any = scipy.linalg.lstsq(system, rest, _NEGLIGIBLE, lapack_driver="gelsy")
        x = x + found[0]
    return x

"""Whether the smallest norm has a derivative: whether multipliers and solutions leave a choice.

In any direction of the data the derivative of the smallest norm is the least, over solutions, of
the greatest, over multipliers, of the derivative of the Lagrangian (Gol'shtein 1972). It is linear
where all of them agree.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Geometry, Lp, Schatten, has_norm_of
from attractor.margin.optimal_face import exposed_face
from attractor.margin.problem import MarginProblem

_LARGEST_EXPLICIT = 4_000_000
"""Entries of the matrix of active constraints up to which it is decomposed: some seconds."""
_PRESENT = 1e-9
"""Multipliers above this, relative to the largest, may fall as well as rise."""
_EQUAL = 1e-6
"""Relative difference of entries or singular values that count as equal, or as zero."""
_DEPENDENT = 1e-10
_DEPENDENT_ON_FACE = 1e-5
"""Relative size of a singular value that counts as zero; larger where W decides the rows."""
_FINEST = 1e-14
"""Gap below which rounding blurs the face of the solutions all the same."""
_MARGIN_KEPT = 100.0
"""Change of a margin, in units of the accuracy of the face, that may be none."""


def multipliers_are_unique(
    problem: MarginProblem,
    W: Float[np.ndarray, "d e"],
    multipliers: Float[np.ndarray, "m"],
    support: Bool[np.ndarray, "m"],
    geometry: Geometry,
) -> bool:
    """Whether no other multipliers are optimal; False also where that is not known.

    Multipliers are optimal if ``sum_j lambda_j a_j b_j^T`` is a subgradient of the norm at W and
    only active constraints carry one. Two of them differ by a null vector of the active
    constraints, each without its part along the subgradients, that does not lower a multiplier
    which is zero. There being no such vector is sufficient, and for norms that are differentiable
    at W necessary.

    Args:
        problem: A single problem.
        W: Its solution.
        multipliers: Their multipliers.
        support: The active constraints.
        geometry: The norm.
    """
    active = np.flatnonzero(support & problem.present)
    left, right = problem.left[active], problem.right[active]
    if len(active) * W.size > _LARGEST_EXPLICIT or not W.any():
        return False
    rows = left[:, :, None] * right[:, None, :]
    sizes = np.linalg.norm(rows, axis=(-1, -2), keepdims=True)
    if not sizes.all():
        return False
    rows = _across_subgradients(rows / sizes, W, geometry).reshape(len(active), -1)
    weights = np.abs(multipliers[active]) * sizes[:, 0, 0]
    free = problem.equality[active] | (weights > _PRESENT * weights.max(initial=0.0))
    if free.sum() > W.size:
        return False
    tolerance = _DEPENDENT if geometry.unique else _DEPENDENT_ON_FACE
    _, values, basis = np.linalg.svd(rows[free], full_matrices=False)
    if (values <= tolerance).any():
        return False
    held = rows[~free]
    if not len(held):
        return True
    from scipy.optimize import nnls

    held = held - (held @ basis.T) @ basis
    # Do some of the constraints without a multiplier combine to nothing, with positive weights?
    stacked = np.vstack([held.T, np.ones(len(held))])
    return nnls(stacked, np.append(np.zeros(held.shape[1]), 1.0))[1] > tolerance


def possible_difference(
    problem: MarginProblem,
    W: Float[np.ndarray, "d e"],
    multipliers: Float[np.ndarray, "m"],
    gap: float,
    geometry: Geometry,
) -> Float[np.ndarray, "d e"]:
    """A random matrix of a space that has all differences of solutions; zero if there are none.

    What is linear in a solution is the same for all of them if it vanishes at this matrix, but for
    unlikely chance. Solutions lie in a face of the ball and keep the margins of all constraints
    that carry a multiplier.

    Args:
        problem: A single problem.
        W: Its solution.
        multipliers: Its multipliers, scaled to dual norm one.
        gap: The relative duality gap.
        geometry: The norm.
    """
    norm = float(geometry.norm(W))
    if geometry.unique or norm == 0:
        return np.zeros_like(W)
    accuracy = math.sqrt(max(gap, _FINEST))
    sizes = np.linalg.norm(problem.left, axis=-1) * np.linalg.norm(problem.right, axis=-1)
    binding = problem.present & (problem.equality | (multipliers * sizes > accuracy)) & (sizes > 0)
    M = problem.apply_adjoint(multipliers)
    face = exposed_face(geometry, M, W / norm, accuracy).directions
    rows = face.features(problem.left[binding], problem.right[binding]) / sizes[binding, None]
    coordinates = np.random.default_rng(0).normal(size=face.size)
    if rows.size:
        _, values, basis = np.linalg.svd(rows, full_matrices=False)
        basis = basis[values > _MARGIN_KEPT * accuracy]
        coordinates -= (coordinates @ basis.T) @ basis
    return face.matrix(coordinates)


def _across_subgradients(
    rows: Float[np.ndarray, "m d e"], W: Float[np.ndarray, "d e"], geometry: Geometry
) -> Float[np.ndarray, "m d e"]:
    """Rows less their parts along differences of subgradients of the norm at W."""
    if geometry.unique:
        return rows
    if has_norm_of(geometry, Lp):
        sizes = np.abs(W)
        if geometry.p == 1:
            return rows * (sizes > _EQUAL * sizes.max())
        largest = sizes >= (1 - _EQUAL) * sizes.max()
        signs = np.sign(W) * largest
        along = (rows * signs).sum((-1, -2), keepdims=True) * signs / largest.sum()
        return rows * ~largest + along
    if has_norm_of(geometry, Schatten):
        U, values, V = np.linalg.svd(W)
        if math.isinf(geometry.p):
            top = values >= (1 - _EQUAL) * values[0]
            U, V = U[:, : len(values)][:, top], V[: len(values)][top]
            inner = U.T @ rows @ V.T
            inner = (inner + np.swapaxes(inner, -1, -2)) / 2
            inner -= np.trace(inner, axis1=-2, axis2=-1)[:, None, None] * np.eye(len(V)) / len(V)
            return rows - U @ inner @ V
        rank = int((values > _EQUAL * values[0]).sum())
        return rows - U[:, rank:] @ (U[:, rank:].T @ rows @ V[rank:].T) @ V[rank:]
    return rows * 0

"""Derivatives of the smallest norm in the data: the envelope theorem for margin problems.

Whether it has a derivative: in any direction of the data that of the smallest norm is the least,
over solutions, of the greatest, over multipliers, of the derivative of the Lagrangian (Gol'shtein
1972). It is linear where all of them agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.errors import InvalidInputError
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
from attractor.margin.optimal_face import exposed_face
from attractor.margin.problem import MarginProblem, norms_of, places_of
from attractor.precision import as_plain
from attractor.records import Plotted, Rows, Summary

if TYPE_CHECKING:
    import xarray as xr

    from attractor.margin.solution import Solution

_LISTED = 5
"""Tokens that a table lists."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Plotted, Summary):
    """Derivatives of the smallest norm ``v = ||W*||`` in the data of its margin problem.

    With multipliers scaled to dual norm one, by the envelope theorem,

        dv/dc_j = lambda_j,   dv/da_j = -lambda_j W* b_j,   dv/db_j = -lambda_j W*^T a_j.

    For a problem built from tokens the derivatives in keys and queries follow by the chain rule,
    as ``a_j`` is the selected key less the other one. Keys and queries count as separate
    variables there; ``total_in_keys`` adds the two where queries are keys.

    Where the solution or the multipliers are not unique the norm has one-sided derivatives only,
    and those shown are no more than one of its generalized gradients.

    Attributes:
        solution: The solution.
        left: Derivatives in the ``a_j``, ``(*instances, m, d)``; zero in empty slots, NaN where
            the problem has no solution, as are all others.
        right: Derivatives in the ``b_j``, ``(*instances, m, e)``.
        bounds: Derivatives in the ``c_j``, ``(*instances, m)``.
        keys: Derivatives in the keys, ``(*instances, n, T, d)``; None without tokens.
        queries: Derivatives in the queries, ``(*instances, n, K, e)``; None without tokens.
        same_for_all_solutions: Whether every other solution is known to give the same derivatives
            in keys and queries, or without tokens in the vectors, ``(*instances)``.
        unique_multipliers: Whether the multipliers are known to be unique, ``(*instances)``.
    """

    solution: Solution
    left: Float[np.ndarray, "*instances m d"]
    right: Float[np.ndarray, "*instances m e"]
    bounds: Float[np.ndarray, "*instances m"]
    keys: Float[np.ndarray, "*instances sequence token d"] | None
    queries: Float[np.ndarray, "*instances sequence query e"] | None
    same_for_all_solutions: Bool[np.ndarray, "*instances"]
    unique_multipliers: Bool[np.ndarray, "*instances"]

    @property
    def differentiable(self) -> Bool[np.ndarray, "*instances"]:
        """Whether the norm is known to have these derivatives."""
        return np.asarray(self.same_for_all_solutions & self.unique_multipliers)

    def total_in_keys(
        self, query_positions: int | Sequence[int]
    ) -> Float[np.ndarray, "*instances sequence token d"]:
        """Derivatives in the keys of self-attention, whose queries move along.

        Args:
            query_positions: Position of the key that is query 0, 1, ... of each sequence; for
                queries at every position, ``range(T)``. One number where there is one query.

        Raises:
            InvalidInputError: If there are no tokens, or the positions do not fit them.
        """
        if self.keys is None or self.queries is None:
            raise InvalidInputError(
                "solution",
                "its problem does not come from a selection of tokens",
                "Build the problem by MarginProblem.from_selection",
            )
        positions = np.atleast_1d(as_plain("query_positions", query_positions))
        length, per_sequence = self.keys.shape[-2], self.queries.shape[-2]
        fits = positions.dtype.kind in "iu" and positions.shape == (per_sequence,)
        if not fits or self.keys.shape[-1] != self.queries.shape[-1]:
            raise InvalidInputError(
                "query_positions",
                f"got {query_positions!r} for {per_sequence} queries of dimension "
                f"{self.queries.shape[-1]} and keys of dimension {self.keys.shape[-1]}",
                "Give the position of one key for every query; they must have one dimension",
            )
        if ((positions < -length) | (positions >= length)).any():
            raise InvalidInputError(
                "query_positions",
                f"{positions.tolist()} go beyond {length} tokens",
                f"Give integers from {-length} to {length - 1}",
            )
        total = self.keys.copy()
        for query, position in enumerate(positions):
            total[..., position, :] += self.queries[..., query, :]
        return total

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        import xarray as xr

        lead = () if self.solution.problem.instances is None else ("instance",)
        data: dict[str, Any] = {
            "left": ((*lead, "constraint", "row"), self.left),
            "right": ((*lead, "constraint", "column"), self.right),
            "bounds": ((*lead, "constraint"), self.bounds),
            "same_for_all_solutions": (lead, self.same_for_all_solutions),
            "unique_multipliers": (lead, self.unique_multipliers),
            "differentiable": (lead, self.differentiable),
        }
        if self.keys is not None and self.queries is not None:
            selection = self.solution.problem.selection
            assert selection is not None
            data["keys"] = ((*lead, "sequence", "token", "row"), self.keys)
            data["queries"] = ((*lead, "sequence", "query", "column"), self.queries)
            data["selected"] = ((*lead, "sequence", "query", "token"), selection.mask)
        return xr.Dataset(data, attrs={"geometry": self.solution.geometry.name})

    def _picture(self) -> tuple[str, xr.Dataset]:
        return "sensitivity_figure", self.to_xarray()

    def _summary(self) -> tuple[str, Rows]:
        title = "Sensitivity of the smallest norm"
        rows = [("geometry", self.solution.geometry.name)]
        if self.solution.problem.instances is not None:
            known = f"{int(self.differentiable.sum())} of {self.differentiable.size}"
            return title, [*rows, ("differentiable", known)]
        rows.append(("differentiable", "yes" if self.differentiable else self._why_not()))
        if self.keys is None:
            sizes = np.linalg.norm(self.left, axis=-1)
            named = [(f"constraint {j}", float(sizes[j])) for j in np.argsort(-sizes)]
        else:
            sizes = np.linalg.norm(self.keys, axis=-1)
            order = np.argsort(-sizes, axis=None)
            places = np.stack(np.unravel_index(order, sizes.shape), axis=-1)
            named = [(f"sequence {i}, token {t}", float(sizes[i, t])) for i, t in places]
        rows += [(name, f"|dv/dx| = {size:.6g}") for name, size in named[:_LISTED] if size > 0]
        return title, rows

    def _why_not(self) -> str:
        if not np.isfinite(self.solution.W).all():
            return "no: the problem has no solution"
        causes = []
        if not self.same_for_all_solutions:
            causes.append("other solutions may give others")
        if not self.unique_multipliers:
            causes.append("other multipliers may")
        return f"one-sided derivatives only: {', and '.join(causes)}"


_COARSEST = 1e-6
"""Gap above which it is not known which solutions there are."""
_SAME = 1e-3
"""Change of derivatives, relative to them and to a change of W, that is rounding: of order one,
beside an accuracy of the face of 3e-5, where it is not."""


@dataclass(frozen=True)
class _Derivatives:
    """Derivatives in the vectors of constraints and, with tokens, in keys and queries."""

    left: Float[np.ndarray, "instances m d"]
    right: Float[np.ndarray, "instances m e"]
    keys: Float[np.ndarray, "instances sequence token d"] | None
    queries: Float[np.ndarray, "instances sequence query e"] | None

    @property
    def of_data(self) -> tuple[np.ndarray, np.ndarray]:
        """Those in keys and queries, or in the vectors where there are no tokens."""
        if self.keys is None or self.queries is None:
            return self.left, self.right
        return self.keys, self.queries


def sensitivity_of(solution: Solution) -> Sensitivity:
    """Derivatives of the smallest norm in the data of a solved margin problem.

    Args:
        solution: The solution, of one problem or of several.
    """
    problem = solution.problem.batched()
    W = solution.W.reshape(len(problem), *problem.shape)
    solved = np.asarray(np.isfinite(W).all((-1, -2)))
    weights = np.where(problem.present, solution.multipliers.reshape(problem.bounds.shape), 0.0)
    weights = weights / np.where(solved, solution.certificate.dual_norm, 1.0)[:, None].clip(1e-300)
    weights = np.where(solved[:, None], weights, np.nan)
    found = _derivatives(problem, W, weights)
    same = _same_for_all_solutions(solution, problem, W, weights, found)
    unique = _unique_multipliers(solution, problem, W, weights)
    one = np.s_[0] if solution.problem.instances is None else np.s_[:]
    return Sensitivity(
        solution,
        found.left[one],
        found.right[one],
        weights[one],
        None if found.keys is None else found.keys[one],
        None if found.queries is None else found.queries[one],
        np.asarray(same[one]),
        np.asarray(unique[one]),
    )


def _unique_multipliers(
    solution: Solution, problem: MarginProblem, W: np.ndarray, weights: np.ndarray
) -> Bool[np.ndarray, "instances"]:
    """Whether the multipliers of each instance are known to be unique."""
    unique = np.zeros(len(problem), dtype=bool)
    for i in np.flatnonzero(np.isfinite(W).all((-1, -2))):
        present, active = problem.present[i], solution.certificate.support[i]
        unique[i] = multipliers_are_unique(
            problem[i], W[i], weights[i, present], active[present], solution.geometry
        )
    return unique


def _same_for_all_solutions(
    solution: Solution,
    problem: MarginProblem,
    W: np.ndarray,
    weights: np.ndarray,
    derivatives: _Derivatives,
) -> Bool[np.ndarray, "instances"]:
    """Whether the derivatives, which are linear in W, vanish at any difference of solutions."""
    gap, geometry = solution.certificate.gap, solution.geometry
    known = np.asarray(np.isfinite(W).all((-1, -2)) & (geometry.unique | (gap <= _COARSEST)))
    difference = np.zeros_like(W)
    for i in np.flatnonzero(known & (not geometry.unique)):
        x = weights[i, problem.present[i]]
        difference[i] = possible_difference(problem[i], W[i], x, float(gap[i]), geometry)
    changes = _derivatives(problem, difference, weights)
    same = known.copy()
    for change, whole in zip(changes.of_data, derivatives.of_data, strict=True):
        axes = tuple(range(1, whole.ndim))
        size = np.linalg.norm(W, axis=(-1, -2)) * np.abs(change).max(axes, initial=0.0)
        same &= size <= _SAME * np.abs(whole).max(axes, initial=0.0)
    return same


def _derivatives(problem: MarginProblem, W: np.ndarray, weights: np.ndarray) -> _Derivatives:
    """Those of the Lagrangian, by the chain rule where ``a_j`` and ``b_j`` are made of tokens."""
    left = -weights[..., None] * (problem.right @ np.swapaxes(W, -1, -2))
    right = -weights[..., None] * (problem.left @ W)
    if problem.selection is None or problem.sequence is None:
        return _Derivatives(left, right, None, None)
    keys, queries = _in_tokens(problem, left, right)
    unsolved = np.isnan(weights).any(-1)
    keys[unsolved], queries[unsolved] = np.nan, np.nan
    return _Derivatives(left, right, keys, queries)


def _in_tokens(
    problem: MarginProblem,
    left: Float[np.ndarray, "instances m d"],
    right: Float[np.ndarray, "instances m e"],
) -> tuple[
    Float[np.ndarray, "instances sequence token d"],
    Float[np.ndarray, "instances sequence query e"],
]:
    """Derivatives in keys and queries from those in the vectors of the constraints."""
    assert problem.selection is not None
    mask = problem.selection.mask
    instances, n, per_sequence, length = mask.shape
    instance, sequence, query, token = places_of(problem, problem.present)
    left, right = left[problem.present], right[problem.present]
    chosen = mask.argmax(-1)[instance, sequence, query]
    keys = np.zeros((instances, n, length, left.shape[-1]))
    np.add.at(keys, (instance, sequence, chosen), left)
    np.add.at(keys, (instance, sequence, token), -left)
    queries = np.zeros((instances, n, per_sequence, right.shape[-1]))
    np.add.at(queries, (instance, sequence, query), right)
    return keys, queries


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
    _, values, basis = singular_value_decomposition(rows[free])
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
    sizes = norms_of(problem)
    binding = problem.present & (problem.equality | (multipliers * sizes > accuracy)) & (sizes > 0)
    M = problem.apply_adjoint(multipliers)
    face = exposed_face(geometry, M, W / norm, accuracy)
    directions = face.directions
    rows = directions.features(problem.left[binding], problem.right[binding])
    rows = np.vstack([rows / sizes[binding, None], face.shared])
    coordinates = np.random.default_rng(0).normal(size=directions.size)
    if rows.size:
        _, values, basis = singular_value_decomposition(rows)
        basis = basis[values > _MARGIN_KEPT * accuracy]
        coordinates -= (coordinates @ basis.T) @ basis
    return directions.matrix(coordinates)


def _across_subgradients(
    rows: Float[np.ndarray, "m d e"], W: Float[np.ndarray, "d e"], geometry: Geometry
) -> Float[np.ndarray, "m d e"]:
    """Rows less their parts along differences of subgradients of the norm at W."""
    if geometry.unique:
        return rows
    if has_norm_of(geometry, BlockMaximum):
        return _across_weights(rows, W, geometry)
    if has_norm_of(geometry, BlockSum):
        across, size = np.zeros_like(rows), float(geometry.norm(W))
        for piece in geometry.pieces(W.shape):
            place = ..., piece.rows, piece.columns
            if piece.weight * float(piece.geometry.norm(W[place])) > _EQUAL * size:
                across[place] = _across_subgradients(rows[place], W[place], piece.geometry)
        return across
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


def _across_weights(
    rows: Float[np.ndarray, "m d e"], W: Float[np.ndarray, "d e"], geometry: BlockMaximum
) -> Float[np.ndarray, "m d e"]:
    """The same for a maximum of norms of blocks.

    Subgradients are ``sum_b mu_b c_b G_b`` over the blocks of largest norm, with subgradients
    ``G_b`` of their norms and weights ``mu_b`` that add up to one. What is left of ``c_b G_b`` in
    each block, the weights mix: rows keep their part along the one direction across that.
    """
    across, ridge, square = rows.copy(), np.zeros_like(rows[0]), 0.0
    size = float(geometry.norm(W))
    for piece in geometry.pieces(W.shape):
        place = ..., piece.rows, piece.columns
        V = W[place]
        if piece.weight * float(piece.geometry.norm(V)) < (1 - _EQUAL) * size:
            continue
        across[place] = _across_subgradients(rows[place], V, piece.geometry)
        G = piece.weight * _subgradient(V, piece.geometry)
        normal = _across_subgradients(G[None], V, piece.geometry)[0]
        length = float((normal**2).sum())
        if length == 0:
            return rows * 0  # nothing is known of the norm of the block
        across[place] -= (across[place] * normal).sum((-1, -2), keepdims=True) * normal / length
        ridge[place] = normal / length
        square += 1 / length
    return across + (rows * ridge).sum((-1, -2), keepdims=True) * ridge / square


def _subgradient(W: Float[np.ndarray, "d e"], geometry: Geometry) -> Float[np.ndarray, "d e"]:
    """One of the norm at W: the steepest direction in the dual norm; zero where none is known."""
    if has_norm_of(geometry, Lp) or has_norm_of(geometry, Schatten):
        dual = Schatten if isinstance(geometry, Schatten) else Lp
        return dual(geometry.q).steepest_descent_direction(W)
    return W / np.linalg.norm(W) if has_norm_of(geometry, Frobenius) else np.zeros_like(W)

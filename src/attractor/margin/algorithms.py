"""Which methods solve margin problems in which geometry."""

from __future__ import annotations

from attractor.geometry import Frobenius, Geometry
from attractor.margin.attempts import attempt
from attractor.margin.block_pivoting import solve_by_block_pivoting
from attractor.margin.least_distance import solve_by_active_set, solve_by_least_distance
from attractor.margin.methods import Candidates, Method, Task, methods_for, register_methods

_FROBENIUS = (solve_by_block_pivoting, solve_by_least_distance, solve_by_active_set)

register_methods(Frobenius, lambda _: _FROBENIUS)


def methods_of(geometry: Geometry) -> tuple[Method, ...]:
    """The methods of a geometry, in the order to try them.

    Whether a problem is feasible does not depend on the norm, and a feasible matrix is where
    every other geometry starts from: all but Frobenius begin with the Frobenius solution.

    Raises:
        InvalidInputError: If margin problems cannot be solved in it.
    """
    methods = methods_for(geometry)
    return methods if methods == _FROBENIUS else (solve_in_frobenius, *methods)


def solve_in_frobenius(task: Task) -> Candidates:
    """The Frobenius solution, and its multipliers rescaled to the dual norm of the geometry."""
    scaled = task.scaled
    W, multipliers, _, _ = attempt(scaled, Frobenius(), _FROBENIUS, 1e-9)
    W, x = scaled.scale_matrix(W), scaled.scale_multipliers(multipliers)
    combined = scaled.combine(x)
    size = task.geometry.dual_norm(combined)
    solved = ~(W != W).any((-1, -2)) & (size > 0)
    x[solved] /= size[solved, None]
    return W, x

"""Which methods solve margin problems in which geometry."""

from __future__ import annotations

import functools
import math

import numpy as np

from attractor.geometry import (
    BlockMaximum,
    BlockSum,
    Frobenius,
    Geometry,
    Lp,
    Nuclear,
    Schatten,
    Spectral,
)
from attractor.margin.blocks.methods import solve_by_blocks
from attractor.margin.frobenius.active_sets import solve_by_block_pivoting, solve_exactly
from attractor.margin.frobenius.least_distance import solve_by_active_set, solve_by_least_distance
from attractor.margin.ill_conditioned.methods import solve_ill_conditioned
from attractor.margin.linear.methods import (
    solve_by_conservative_linear_programming,
    solve_by_linear_programming,
)
from attractor.margin.linear.simplex import solve_by_exact_simplex, solve_by_simplex
from attractor.margin.methods import (
    Candidates,
    Method,
    Task,
    attempt,
    methods_for,
    register_methods,
)
from attractor.margin.semidefinite.methods import solve_by_semidefinite_programming
from attractor.margin.smooth.methods import solve_by_aggressive_newton, solve_by_conservative_newton

_AGREE = 1e-3
"""Distance of a dual norm from one that is left as it is."""
_FROBENIUS = (
    solve_by_block_pivoting,
    solve_by_least_distance,
    solve_by_active_set,
    solve_exactly,
)
_LINEAR_PROGRAMS = (
    solve_by_linear_programming,
    solve_by_conservative_linear_programming,
    solve_by_simplex,
    solve_by_exact_simplex,
    solve_ill_conditioned,
)
_POWER_NORMS = (solve_by_aggressive_newton, solve_by_conservative_newton, solve_ill_conditioned)
_SEMIDEFINITE_PROGRAMS = (solve_by_semidefinite_programming, solve_ill_conditioned)

register_methods(Frobenius, lambda _: _FROBENIUS)
register_methods(Lp, lambda geometry: _by_exponent(geometry, _LINEAR_PROGRAMS))
for _kind in (Schatten, Nuclear, Spectral):
    register_methods(_kind, lambda geometry: _by_exponent(geometry, _SEMIDEFINITE_PROGRAMS))


def _by_exponent(geometry: Geometry, at_the_ends: tuple[Method, ...]) -> tuple[Method, ...]:
    """The methods of an ``Lp`` or ``Schatten`` geometry, given those for p = 1 and p = inf."""
    assert isinstance(geometry, (Lp, Schatten))
    if geometry.p == 2:
        return _FROBENIUS
    return at_the_ends if geometry.p in (1, math.inf) else _POWER_NORMS


def methods_of(geometry: Geometry, own: tuple[Method, ...] | None = None) -> tuple[Method, ...]:
    """The methods of a geometry, or those of the user's own, in the order to try them.

    Whether a problem is feasible does not depend on the norm, and a feasible matrix is where
    every other geometry starts from: all but Frobenius begin with the Frobenius solution.

    Raises:
        InvalidInputError: If margin problems cannot be solved in it.
    """
    methods = methods_for(geometry) if own is None else own
    alone = methods == _FROBENIUS or geometry == Frobenius()
    return methods if alone else (solve_in_frobenius, *methods)


def solve_in_frobenius(task: Task) -> Candidates:
    """The Frobenius solution, and its multipliers rescaled to the dual norm of the geometry."""
    scaled = task.scaled
    W, x, _, _ = attempt(scaled, Frobenius(), _FROBENIUS, 1e-9)
    size = task.geometry.dual_norm(scaled.combine(x))
    # Multipliers that were rounded together are not to be rounded again where norms agree.
    solved = ~(W != W).any((-1, -2)) & (size > 0) & (np.abs(size - 1) > _AGREE)
    x[solved] /= size[solved, None]
    return W, x


_BLOCKS = (functools.partial(solve_by_blocks, methods_of=methods_of),)
for _kind in (BlockMaximum, BlockSum):
    register_methods(_kind, lambda _: _BLOCKS)

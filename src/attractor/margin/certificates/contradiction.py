"""Proofs that no matrix meets the constraints, near multipliers of floating point.

Multipliers x, not negative on inequalities, with ``sum_j x_j a_j b_j^T = 0`` and ``sum_j c_j x_j >
0`` prove it. Rounded ones leave a rest, and a rest however small proves no more than a lower bound
on the norm. What is shown here is that exact ones lie near by, on no more constraints than their
rank and one.

On k constraints of which one has the multiplier 1, the other multipliers y solve ``B y = g``.
Where these are k - 1 equations, an approximate inverse R of B with ``||I - R B|| <= delta < 1``
shows that they have one solution, within ``|R r| + delta / (1 - delta) max |R r|`` of any y with
the residual r (Krawczyk; Rump 2010, *Verification methods*, section 10). Where there are more
equations they hold together only exactly, and are solved in integers.
"""

from __future__ import annotations

import numpy as np
import scipy
from jaxtyping import Float, Int

from attractor.margin.batching import extended
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.exact import exact_multipliers
from attractor.margin.equalities import first_signs

_ROUNDING = np.finfo(np.float64).eps / 2
_LEFT = 1e-8
"""Rest of the normalized equations above which multipliers contradict nothing."""
_SMALLEST = 1e-290
"""Size of a product below which what rounding it left out may be lost."""
_MOST_ENTRIES = 30_000_000
_MOST_IN_INTEGERS = 60
"""So many constraints are combined in integers in half a second."""
_REFINEMENTS = 4


def proved_multipliers(
    scaled: ScaledConstraints, i: int, multipliers: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"] | None:
    """Multipliers near some that combine the constraints to an exact contradiction.

    Args:
        scaled: The constraints of a batch.
        i: The instance.
        multipliers: Whose sum of constraints nearly vanishes.

    Returns:
        Multipliers on few constraints, the nearest numbers to exact ones; None without a proof.
    """
    proved = np.zeros_like(multipliers)
    impossible = np.flatnonzero(scaled.impossible[i])[:1]
    if impossible.size:
        proved[impossible] = np.sign(scaled.bounds[i, impossible])
        return proved
    used = np.flatnonzero(scaled.present[i] & (multipliers != 0))
    signs = np.where(scaled.equality[i, used], np.sign(multipliers[used]), 1.0)
    left, right = scaled.left[i, used], scaled.right[i, used] * signs[:, None]
    low, high = scaled.choose(np.s_[i : i + 1]).given_range
    low, high = low[0, used], high[0, used]
    low, high = np.where(signs < 0, -high, low), np.where(signs < 0, -low, high)
    if not used.size or used.size * left.shape[1] * right.shape[1] > _MOST_ENTRIES:
        return None
    equations = _equations(left, right)
    exact_products = bool(np.isfinite(equations[0]).all())

    def near(chosen: Int[np.ndarray, "s"], found: Float[np.ndarray, "s"]) -> np.ndarray | None:
        if exact_products and len(equations[0]) == chosen.size - 1:
            few = equations[0][:, chosen], equations[1][:, chosen]
            exact = _nearest(few, low[chosen], int(np.argmax(found)))
            if exact is not None:
                return exact
        if chosen.size > _MOST_IN_INTEGERS or (low < high)[chosen].any():
            return None
        return _integer((left[chosen], right[chosen], low[chosen]), found)

    chosen = np.arange(used.size)
    exact = near(chosen, np.abs(multipliers[used]))
    if exact is None and exact_products:
        chosen, found = _few(equations[0], low)
        exact = near(chosen, found) if 0 < chosen.size < used.size else None
    if exact is None:
        return None
    proved[used[chosen]] = exact * signs[chosen]
    return proved


def _equations(left: Float[np.ndarray, "k d"], right: Float[np.ndarray, "k e"]) -> extended.Pair:
    """Equations that say ``sum_j x_j a_j b_j^T = 0``, one a row, as few as can be seen to do.

    Where few b are distinct, the sums of the ``x_j a_j`` of each have to vanish, and so for the a.
    NaN where products are so small that a pair of numbers does not hold them.
    """
    d, e = left.shape[1], right.shape[1]
    right_of, right_signs, rights = _distinct(right)
    left_of, left_signs, lefts = _distinct(left)
    if rights <= e and d * rights <= e * lefts:
        high = _grouped(left * right_signs[:, None], right_of, rights)
        low = np.zeros_like(high)
    elif lefts <= d:
        high = _grouped(right * left_signs[:, None], left_of, lefts)
        low = np.zeros_like(high)
    else:
        full = np.broadcast_arrays(left[:, :, None], right[:, None, :])
        pair = extended.two_product(*full)
        lost = (full[0] != 0) & (full[1] != 0) & (np.abs(pair[0]) < _SMALLEST)
        high, low = (part.reshape(len(left), -1).T for part in pair)
        if lost.any():
            return np.full_like(high, np.nan), low
    kept = high.any(1)
    return high[kept], low[kept]


def _distinct(rows: Float[np.ndarray, "k n"]) -> tuple[Int[np.ndarray, "k"], np.ndarray, int]:
    """Which of the distinct rows each is up to its sign, that sign, and how many there are."""
    signs = first_signs(rows)
    found, of = np.unique(rows * signs[:, None] + 0.0, axis=0, return_inverse=True)
    return of.ravel(), signs, len(found)


def _grouped(
    rows: Float[np.ndarray, "k n"], of: Int[np.ndarray, "k"], groups: int
) -> Float[np.ndarray, "groups_n k"]:
    """Rows as columns, each among the equations of its group."""
    result = np.zeros((groups, rows.shape[1], len(rows)))
    result[of, :, np.arange(len(rows))] = rows
    return result.reshape(-1, len(rows))


def _few(
    equations: Float[np.ndarray, "n k"], bounds: Float[np.ndarray, "k"]
) -> tuple[Int[np.ndarray, "s"], Float[np.ndarray, "s"]]:
    """Constraints with independent columns, bounds included, and multipliers that nearly do."""
    finite = np.isfinite(bounds)
    size = np.abs(bounds[finite]).max(initial=0.0)
    nothing = np.zeros(0, dtype=int), np.zeros(0)
    if not size > 0:
        return nothing
    system = np.vstack([equations, np.where(finite, bounds, 0.0) / size])
    target = np.zeros(len(system))
    target[-1] = 1.0
    try:
        found, rest = scipy.optimize.nnls(system[:, finite], target, maxiter=30 * max(system.shape))
    except RuntimeError:
        return nothing
    if not rest <= _LEFT:
        return nothing
    every = np.zeros(len(bounds))
    every[finite] = found
    return np.flatnonzero(every), every[every > 0]


def _nearest(
    equations: extended.Pair, bounds: Float[np.ndarray, "k"], first: int
) -> Float[np.ndarray, "k"] | None:
    """Multipliers next to positive ones that solve k - 1 equations; None without a proof.

    Args:
        equations: The equations.
        bounds: The ``c_j``.
        first: The constraint whose multiplier is 1, a large one.
    """
    high, low = equations
    n, k = high.shape
    if not n:
        return np.ones(1) if bounds[0] > 0 else None
    others = np.delete(np.arange(k), first)
    B, B_low, g, g_low = high[:, others], low[:, others], -high[:, first], -low[:, first]
    try:
        inverse = np.linalg.inv(B)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inverse).all():
        return None
    width = (n + 4) * 2 * _ROUNDING
    delta = _norm(np.abs(inverse @ B - np.eye(n)) + width * (np.abs(inverse) @ np.abs(B)))
    if not delta < 0.5:
        product = extended.matrix_product(inverse, B)
        off = product[0] - np.eye(n) + product[1] + inverse @ B_low
        largest = np.abs(inverse).max(1)[:, None] * np.abs(B).max(0)
        missed = extended.relative_error(n) * largest
        missed += width * (np.abs(inverse) @ np.abs(B_low) + np.abs(off))
        delta = _norm(np.abs(off) + missed)
    else:
        delta += _norm(np.abs(inverse) @ np.abs(B_low)) * (1 + width)
    if not delta < 1:
        return None
    y = (inverse @ g, np.zeros(n))
    for _ in range(_REFINEMENTS):
        rest, _ = _residual(B, B_low, g, g_low, y)
        y = extended.add(y, inverse @ rest, 0.0)
    rest, doubt = _residual(B, B_low, g, g_low, y)
    step = (np.abs(inverse) @ (np.abs(rest) + doubt)) * (1 + width)
    radius = (step + delta / (1 - delta) * step.max()) * (1 + 1e-9)
    if not (y[0] - np.abs(y[1]) - radius > 0).all():
        return None
    c = bounds[others]
    total = extended.inner_product(c, y[0])
    known = float(total[0] + total[1] + c @ y[1] + bounds[first])
    sizes = np.abs(c) @ (radius + width * np.abs(y[1])) + width * abs(known)
    sizes += 2 * extended.relative_error(n) * np.abs(c).max() * np.abs(y[0]).max()
    sizes += 4 * _ROUNDING * (abs(total[0]) + abs(bounds[first]))
    if not known > sizes * (1 + 1e-9):
        return None
    return np.insert(y[0] + y[1], first, 1.0)


def _residual(
    B: np.ndarray, B_low: np.ndarray, g: np.ndarray, g_low: np.ndarray, y: extended.Pair
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """``g - B y`` for pairs, and a bound on the error."""
    high, low = extended.matrix_product(B, y[0][:, None])
    total, rest = extended.two_sum(g, -high[:, 0])
    small = g_low - low[:, 0] - B @ y[1] - B_low @ y[0]
    sizes = np.abs(g_low) + np.abs(low[:, 0]) + np.abs(B) @ np.abs(y[1])
    sizes += np.abs(B_low) @ np.abs(y[0]) + np.abs(rest)
    doubt = extended.relative_error(len(g)) * np.abs(B).max(1) * np.abs(y[0]).max()
    doubt = doubt + 2 * (len(g) + 6) * _ROUNDING * sizes + np.abs(B_low) @ np.abs(y[1])
    residual = total + (rest + small)
    return residual, (doubt + 2 * _ROUNDING * np.abs(residual)) * (1 + 1e-9)


def _integer(
    constraints: tuple[np.ndarray, np.ndarray, np.ndarray], near: Float[np.ndarray, "k"]
) -> Float[np.ndarray, "k"] | None:
    """Multipliers next to integers that combine constraints to a contradiction, exactly."""
    left, right, bounds = constraints
    exact = exact_multipliers(left, right, bounds, np.zeros(len(bounds), dtype=bool), near)
    if exact is None:
        return None
    largest = max(exact)
    return np.array([value / largest for value in exact])


def _norm(matrix: Float[np.ndarray, "n n"]) -> float:
    """The largest sum of absolute values in a row, rounded up."""
    return float(matrix.sum(1).max(initial=0.0)) * (1 + 1e-9)

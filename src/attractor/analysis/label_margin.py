"""The label margin lost when attention mixes tokens instead of keeping one of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float

from attractor.margin import MarginProblem, Solution, label_problem, label_support, solve
from attractor.margin.selection import Selection
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_choice, check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed, generator
from attractor.tokens import Tokens

_SMALLEST_LEAK = 1e-3
"""Weight off the selected token from which mixtures are looked at one by one."""
_LARGEST_DUAL = 1e4
"""Bound on dual variables, relative to costs and margin, that keeps rounding out."""


@dataclass(frozen=True)
class LabelMarginConstant:
    """The largest nu with ``label margin of mixtures <= Gamma - nu max (1 - s_selected)``.

    Attributes:
        value: The smaller of the two numbers below.
        limit: The infimum over mixtures that tend to the selection, exact to the accuracy of
            linear programming.
        elsewhere: The lowest ratio found among mixtures that keep a distance from it: an upper
            bound of their infimum, as the search may miss a lower one.
        weights: The mixture it was found at, ``(n, K, T)``.
        margin: Gamma, the label margin of the selection.
        rows: The rows that the maximum runs over, ``(n, K)``.
    """

    value: float
    limit: float
    elsewhere: float
    weights: Float[np.ndarray, "sequence query token"]
    margin: float
    rows: Bool[np.ndarray, "sequence query"]


def label_margin_constant(
    tokens: Tokens,
    selection: Selection,
    *,
    rows: str = "all",
    samples: int = 1000,
    improved: int = 3,
    seed: int = 0,
) -> LabelMarginConstant:
    """The rate at which the label margin falls as attention leaves the selected tokens.

    With attention weights ``s_ik`` and ``Gamma(s)`` the label margin of what attention returns,
    the distance of the origin from the convex hull of the ``y_ik sum_t s_ikt x_it``,

        nu = inf_s  ( Gamma - Gamma(s) ) / max_ik ( 1 - s_ik,selected ),

    where Gamma is that of the selected tokens and s runs over all weights that are not those of
    the selection, whether or not scores of one W give them. Where nu > 0 the selection is strictly
    best for the labels, which statements about a head trained beside attention assume.

    Near the selection the infimum is a linear program in the leaks of the rows and the multipliers
    of the label problem. Elsewhere mixtures are sampled, and the lowest are improved by sequential
    quadratic programming.

    Args:
        tokens: One data set, with labels -1 and +1.
        selection: One token in each row.
        rows: Rows that the maximum runs over: ``"all"``, or ``"support"`` for those at the
            label margin. With a row beyond it the constant over all is never positive.
        samples: Number of mixtures sampled.
        improved: How many of them the search goes on from, for each row. The time of each grows
            with the number of tokens cubed; 0 keeps to the sample.
        seed: Names the sample.

    Raises:
        InvalidInputError: If an argument does not fit, there are several data sets, or no head
            separates the labels by the selected tokens.

    Source: *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), joint
    regularization path: assumption on the label margin.
    """
    check_kinds(tokens=(tokens, Tokens), selection=(selection, Selection))
    if tokens.instances is not None:
        raise InvalidInputError(
            "tokens", f"there are {tokens.instances} data sets", "Give one, such as tokens[0]"
        )
    check_choice("rows", rows, ("all", "support"))
    samples = check_count("samples", samples)
    improved = check_count("improved", improved, least=0)
    seed = check_seed("seed", seed)
    solution = solve(label_problem(tokens, selection))
    if not np.isfinite(solution.value):
        raise InvalidInputError(
            "selection",
            f"the label problem of the selected tokens is {solution.status}",
            "Select tokens by which a head can separate the labels",
        )
    support = label_support(solution)
    counted = support if rows == "support" else np.ones_like(support)
    counted = counted & (tokens.mask.sum(-1) > 1)
    if not counted.any():
        raise InvalidInputError(
            "tokens", "no row that counts has a second token", "There is nothing to mix"
        )
    mixtures = _Mixtures(tokens, selection, solution)
    with single_blas_thread():
        limit = _limit(mixtures, solution, support.ravel(), counted.ravel())
        elsewhere, weights = _search(mixtures, counted.ravel(), samples, improved, seed)
    size = mixtures.size
    return LabelMarginConstant(
        size * min(limit, elsewhere), size * limit, size * elsewhere,
        weights.reshape(tokens.mask.shape), size * mixtures.margin, counted,
    )  # fmt: skip


class _Mixtures:
    """Signed tokens of every row in units of the largest entry, and label margins of mixtures."""

    def __init__(self, tokens: Tokens, selection: Selection, solution: Solution) -> None:
        assert tokens.labels is not None
        signed = tokens.labels[..., None, None] * tokens.values[:, None]
        length = tokens.length
        self.mask = tokens.mask.reshape(-1, length)
        self.signed = np.where(
            self.mask[..., None], signed.reshape(-1, length, signed.shape[-1]), 0.0
        )
        self.kept = selection.mask.reshape(-1, length)
        self.size = float(np.abs(self.signed).max())
        self.signed /= self.size
        self.margin = 1 / float(solution.value) / self.size

    def margins(self, weights: Float[np.ndarray, "mixture row t"]) -> Float[np.ndarray, "mixture"]:
        """Label margins; zero where no head separates the labels."""
        values = self._solve(weights).value
        return np.where(np.isfinite(values), 1 / values, 0.0)

    def leaks(
        self, weights: Float[np.ndarray, "mixture row t"]
    ) -> Float[np.ndarray, "mixture row"]:
        """Weights off the selected tokens."""
        return (weights * ~self.kept).sum(-1)

    def margin_and_slope(
        self, weights: Float[np.ndarray, "row t"]
    ) -> tuple[float, Float[np.ndarray, "row t"]]:
        """The label margin, and its derivative in the weights."""
        solution = self._solve(weights[None])[0]
        if not np.isfinite(solution.value):
            return 0.0, np.zeros_like(weights)
        v = solution.W[:, 0] / solution.value
        shares = solution.multipliers / solution.multipliers.sum()
        return 1 / float(solution.value), shares[:, None] * (self.signed @ v)

    def _solve(self, weights: Float[np.ndarray, "mixture row t"]) -> Solution:
        returned = np.einsum("mrt,rtv->mrv", weights, self.signed)
        return solve(MarginProblem(returned, np.ones((*returned.shape[:2], 1))))


def _limit(
    mixtures: _Mixtures,
    solution: Solution,
    support: Bool[np.ndarray, "row"],
    counted: Bool[np.ndarray, "row"],
) -> float:
    """The infimum over mixtures that tend to the selection.

    A leak ``w_r`` of row r costs at most ``c_r = min_t v^T (x_selected - x_t) y`` a unit, and

        (Gamma - Gamma(s)) / leak  ->  max_mu sum_r mu_r w_r c_r

    over the convex weights mu with ``sum_r mu_r y_r x_r = Gamma v``. The minimum over leaks, the
    largest of them one, is a linear program for each row that may have it: by duality

        min tau + Gamma v^T u   subject to   tau + y_r x_r^T u >= w_r c_r   for rows at the margin.
    """
    v = solution.W[:, 0] / float(solution.value)
    selected = np.einsum("rt,rtv->rv", mixtures.kept, mixtures.signed)
    others = mixtures.mask & ~mixtures.kept
    heights = np.where(others, mixtures.signed @ v, -np.inf).max(-1)
    cost = np.where(others.any(-1), selected @ v - np.where(others.any(-1), heights, 0.0), 0.0)
    rows, d = len(cost), len(v)
    at_margin = np.flatnonzero(support)
    objective = np.concatenate([np.zeros(rows), [1.0], mixtures.margin * v])
    constraints = np.hstack(
        [np.diag(cost)[at_margin], -np.ones((len(at_margin), 1)), -selected[at_margin]]
    )
    size = max(float(np.abs(cost).max()), np.finfo(float).tiny)
    free = [(-_LARGEST_DUAL * size, _LARGEST_DUAL * size)]
    free += d * [(-_LARGEST_DUAL * size / mixtures.margin, _LARGEST_DUAL * size / mixtures.margin)]
    found = []
    for row in np.flatnonzero(counted):
        leaks = [(1.0, 1.0) if r == row else (0.0, 1.0) for r in range(rows)]
        program = scipy.optimize.linprog(
            objective, A_ub=constraints, b_ub=np.zeros(len(at_margin)), bounds=leaks + free
        )
        found.append(float(program.fun))
    return min(found)


def _search(
    mixtures: _Mixtures, counted: Bool[np.ndarray, "row"], samples: int, improved: int, seed: int
) -> tuple[float, Float[np.ndarray, "row t"]]:
    """The lowest ratio found among mixtures away from the selection, and where."""
    weights = _sample(mixtures, samples, generator(seed, 0, purpose="label margin"))
    lost = mixtures.margin - mixtures.margins(weights)
    leaks = mixtures.leaks(weights)
    found = [weights]
    for row in np.flatnonzero(counted).tolist():
        # Divided by the leak of one row, the ratio is differentiable; the largest leak is one's.
        far = leaks[:, row] >= _SMALLEST_LEAK
        ratios = np.where(far, lost / np.where(far, leaks[:, row], 1.0), np.inf)
        # Not the lowest alone: these lie together, and a lower minimum may lie elsewhere.
        order = np.argsort(ratios, kind="stable")[: int(far.sum())]
        drawn = order[np.arange(improved) * len(order) // max(improved, 1)] if len(order) else order
        found += [_improved(mixtures, row, weights[number])[None] for number in drawn]
    weights = np.concatenate(found)
    largest = mixtures.leaks(weights)[:, counted].max(-1)
    far = largest >= _SMALLEST_LEAK / 2
    lost = mixtures.margin - mixtures.margins(weights)
    ratios = np.where(far, lost / np.where(far, largest, 1.0), np.inf)
    best = int(ratios.argmin())
    return float(ratios[best]), weights[best]


def _sample(
    mixtures: _Mixtures, samples: int, draws: np.random.Generator
) -> Float[np.ndarray, "mixture row t"]:
    """Weights whose leaks are spread over all magnitudes, and zero in some rows."""
    rows, length = mixtures.mask.shape
    others = mixtures.mask & ~mixtures.kept
    parts = draws.exponential(size=(samples, rows, length)) ** 2 * others
    parts /= np.maximum(parts.sum(-1, keepdims=True), np.finfo(float).tiny)
    leaks = _SMALLEST_LEAK ** draws.uniform(size=(samples, rows, 1))
    leaks *= draws.uniform(size=leaks.shape) < 0.5
    leaks *= others.any(-1, keepdims=True)
    return leaks * parts + (1 - leaks) * mixtures.kept


def _improved(
    mixtures: _Mixtures, row: int, weights: Float[np.ndarray, "row t"]
) -> Float[np.ndarray, "row t"]:
    """A mixture near another with a lower ratio for the leak of one row."""
    rows, length = weights.shape
    place = row * length + int(mixtures.kept[row].argmax())

    def ratio(flat: np.ndarray) -> tuple[float, np.ndarray]:
        margin, slope = mixtures.margin_and_slope(flat.reshape(rows, length))
        lost, leak = mixtures.margin - margin, 1 - float(flat[place])
        gradient = np.asarray(-slope.ravel() / leak)
        gradient[place] += lost / leak**2
        return lost / leak, gradient

    bounds = [(0.0, 1.0 if allowed else 0.0) for allowed in mixtures.mask.ravel().tolist()]
    bounds[place] = (0.0, 1 - _SMALLEST_LEAK)
    sums = np.kron(np.eye(rows), np.ones(length))
    found = scipy.optimize.minimize(
        ratio, weights.ravel(), jac=True, bounds=bounds, method="SLSQP",
        constraints={"type": "eq", "fun": lambda s: sums @ s - 1, "jac": lambda s: sums},
    )  # fmt: skip
    better = np.maximum(np.reshape(found.x, (rows, length)), 0.0)
    return better / better.sum(-1, keepdims=True)

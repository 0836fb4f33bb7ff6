"""Whether a head is at the margin solution of what it selects: a question to training texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, lsmr

from attractor.heads.audit.result import Margin
from attractor.heads.captured.captured import CapturedLayer
from attractor.heads.captured.rows import trained_factors
from attractor.heads.statistics.multiple import randomization_p
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.nearest import nearest_constraints
from attractor.margin.selection import attended_tokens
from attractor.support.checks import check_choice, check_items
from attractor.support.randomness import generator, random_rotation
from attractor.tokens import Tokens

NORMS = ("frobenius", "nuclear", "spectral")
"""Norms that can be asked for: those that do not depend on coordinates of hidden states."""
ARRIVED = 0.9
"""Margin ratio from which a head is at the margin solution, if nothing else is nearer."""
MOST_QUERIES = 128
"""Queries that a head is asked about; of more a random choice is, the same for every head."""
_TOLERANCE = 1e-6
_OF_DRAWS = 1e-4
"""Relative duality gaps of the head's own problems, and of those of null draws."""
_REGULARIZATION = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_RIDGE = (1e-2, 1e-4)
_NEAREST = 3
"""Constraints of a query that solvers begin with."""


@dataclasses.dataclass(frozen=True)
class MarginQuestion:
    """What is asked of heads on texts that they were trained on.

    Attributes:
        norms: Norms whose margin solutions heads are compared with.
        draws: Heads with another pairing that each is compared with.
    """

    norms: tuple[str, ...]
    draws: int

    @property
    def estimators(self) -> tuple[str, ...]:
        """All that the direction of a head is compared with."""
        return (
            *self.norms,
            *(f"logistic {weight:g}" for weight in _REGULARIZATION),
            *(f"ridge {weight:g}" for weight in _RIDGE),
            "mean difference",
        )


def margin_solution(
    layer: CapturedLayer, head: int, question: MarginQuestion, key: tuple[int, int, int]
) -> dict[str, Any]:
    r"""The variables of question three: how near a head is to its certified margin solutions.

    With ``W`` of ``trained_matrix``, its selections ``y_i = argmax_t x_it^T W z_i`` among all
    tokens that the mask allows, and ``W_g`` of least norm ``||W||_g`` subject to
    ``(x_iy - x_it)^T W z_i >= 1``, the margin ratio is
    ``min_it (x_iy - x_it)^T W z_i ||W_g||_g / ||W||_g``, at most 1, and 1 at a solution. Beside it
    stand the cosines of ``W`` with every ``W_g``, with logistic regression at several
    regularizations, with ridge regression, and with the mean of all ``(x_iy - x_it) z_i^T``.

    A draw of the null is the head with queries ``R q``, where ``R`` is a random rotation that
    leaves the mean query, and with it the part of scores without the query, as it is. It has
    selections and a margin solution of its own. For independent Gaussian query weights the null is
    exact. Draws are compared by their ratio in the Frobenius norm.

    Args:
        layer: The layer.
        head: The number of the head.
        question: What is asked.
        key: Seed, layer and head, which name the draws.
    """
    asked = selections_of(layer, head, key[0])
    if asked is None:
        return {}
    tokens, left, right, problem = asked.tokens, asked.left, asked.right, asked.problem
    W = left.T @ right
    solutions = {norm: solved(problem, W, norm, _TOLERANCE) for norm in question.norms}
    ratios = {norm: _ratio(W, one) for norm, one in solutions.items()}
    statistic = [ratios["frobenius"]]
    mean = (right @ tokens.queries[:, 0].T).mean(-1)
    for draw in range(question.draws):
        random = generator(*key, draw, purpose="rotation of a trained matrix")
        turned = left.T @ rotation_about(random, mean) @ right
        statistic.append(
            _ratio(turned, solved(problem_of(tokens, turned), turned, "frobenius", _OF_DRAWS))
        )
    directions = [one.W for one in solutions.values()]
    rows = len(problem.bounds)
    directions += [*_logistic(tokens, W), *_ridge(problem), problem.apply_adjoint(np.ones(rows))]
    return {
        "margin_space": _space(layer),
        "margin_queries": float(len(asked.used)),
        "margin_rows": float(rows),
        "margin_ratio": list(ratios.values()),
        "margin_gap": [float(one.gap) for one in solutions.values()],
        "margin_cosine": [_cosine(W, direction) for direction in directions],
        "margin_ratio_null": np.array(statistic[1:]),
        "margin_p": float(randomization_p(np.array(statistic))),
    }


def margin_verdict(
    ratio: Mapping[str, float],
    gap: Mapping[str, float],
    cosine: Mapping[str, float],
    p_together: float,
    alpha: float,
) -> str:
    """Where a head is, in words, with the norm that says so.

    Args:
        ratio: Margin ratio in each norm.
        gap: Relative duality gap of each solution.
        cosine: Cosine with each estimator; those of norms are named as they are.
        p_together: P-value of the ratio, for all heads together.
        alpha: The level.
    """
    if not all(one <= _TOLERANCE for one in gap.values()):
        return Margin.OPEN.value
    if not p_together <= alpha:
        return Margin.ELSEWHERE.value
    arrived = [norm for norm in ratio if ratio[norm] >= ARRIVED and _nearest(norm, cosine)]
    if arrived:
        return f"{Margin.AT} ({', '.join(arrived)})"
    return f"{Margin.ON_THE_WAY} ({max(ratio, key=lambda norm: ratio[norm])})"


def _nearest(norm: str, cosine: Mapping[str, float]) -> bool:
    """Whether nothing else is nearer to the head than the solution in a norm, but by rounding."""
    others = [value for name, value in cosine.items() if name != norm]
    return cosine[norm] >= max(others) - _TOLERANCE


def _space(layer: CapturedLayer) -> str:
    """What the norms are norms of, in words."""
    if layer.projections is None:
        return "keys and queries as captured"
    return "K^T Q" if layer.projections.key is not None else "Q, keys as captured"


def check_norms(norms: Sequence[str], least: int = 0) -> tuple[str, ...]:
    """Norms of margin solutions, each once.

    Args:
        norms: Their names.
        least: How many there must be.

    Raises:
        InvalidInputError: If there are fewer, or one cannot be asked for.
    """
    given = check_items("norms", norms, str, least)
    return tuple(dict.fromkeys(check_choice("norms", one, NORMS) for one in given))


@dataclasses.dataclass(frozen=True, eq=False)
class Selections:
    """What a head selects at the queries that it is asked about.

    Attributes:
        used: The queries.
        tokens: What the head sees there, and
        left: the factors of its matrix, ``W = left^T right``,
        right: as ``trained_factors`` has them.
        problem: The margin problem of what it selects.
    """

    used: Int[np.ndarray, "queries"]
    tokens: Tokens
    left: Float[np.ndarray, "width d"]
    right: Float[np.ndarray, "width e"]
    problem: MarginProblem


def selections_of(layer: CapturedLayer, head: int, seed: int) -> Selections | None:
    """What a head selects at some of its queries; None where there is nothing to choose among.

    Args:
        layer: The layer.
        head: The number of the head.
        seed: Names the queries, the same for every head.
    """
    choosing = np.flatnonzero(layer.allowed.sum(-1) > 1)
    if not len(choosing):
        return None
    order = generator(seed, purpose="queries of margin problems").permutation(len(choosing))
    used = np.sort(choosing[order[:MOST_QUERIES]])
    arrays = ("queries", "keys", "allowed", "attention")
    rows = {name: getattr(layer, name)[used] for name in arrays}
    tokens, left, right = trained_factors(dataclasses.replace(layer, **rows, values=None), head)
    W = left.T @ right
    if not W.any():
        return None
    problem = problem_of(tokens, W)
    return Selections(used, tokens, left, right, problem) if len(problem.bounds) else None


def problem_of(tokens: Tokens, W: Float[np.ndarray, "d e"]) -> MarginProblem:
    """The margin problem of what a matrix selects; tokens that tie with it are left out."""
    problem = MarginProblem.from_selection(tokens, attended_tokens(tokens, W), ties="equal")
    fields = ("left", "right", "bounds", "sequence", "query", "token")
    return MarginProblem(**{name: getattr(problem, name)[~problem.equality] for name in fields})


def solved(
    problem: MarginProblem, W: Float[np.ndarray, "d e"], norm: str, tolerance: float
) -> Solution:
    """The solution, begun with the constraints of each query that the head fulfills least."""
    start = nearest_constraints(problem, W, _NEAREST).astype(float)
    return solve(problem, norm, tolerance=tolerance, start=start)


def _ratio(W: Float[np.ndarray, "d e"], solution: Solution) -> float:
    margin = solution.problem.margins(W).min()
    return float(margin / solution.geometry.norm(W) * solution.value)


def rotation_about(
    random: np.random.Generator, *axes: Float[np.ndarray, "width"]
) -> Float[np.ndarray, "width width"]:
    """A random rotation that leaves independent axes as they are; one of zeros asks nothing."""
    every = np.eye(len(axes[0]))
    kept = [axis / np.linalg.norm(axis) for axis in axes if axis.any()]
    basis = every
    if kept:
        basis = np.linalg.qr(np.column_stack([*kept, every]))[0][:, len(kept) :]
    inner = random_rotation(random, basis.shape[1])
    return every + basis @ (inner - np.eye(len(inner))) @ basis.T


def _logistic(tokens: Tokens, W: Float[np.ndarray, "d e"]) -> list[Float[np.ndarray, "d e"]]:
    """Matrices that predict the selections of a head by softmax, from much regularized to little.

    They minimize ``mean_i CE(softmax_t(x_it^T M z_i), y_i) + weight / 2 ||M||_F^2``, with keys and
    queries scaled to entries of unit mean square.
    """
    mask, queries = tokens.mask[:, 0], tokens.queries[:, 0]
    keys = np.where(mask[..., None], tokens.keys, 0.0)
    keys = keys / _root_mean_square(keys[mask] - keys[mask].mean(0))
    queries = queries / _root_mean_square(queries)
    right = attended_tokens(tokens, W).mask[:, 0]
    right = right / right.sum(-1, keepdims=True)

    def objective(flat: Any, weight: float) -> tuple[float, Any]:
        M = flat.reshape(W.shape)
        scores = np.matmul(keys, (queries @ M.T)[..., None])[..., 0]
        scores[~mask] = -np.inf
        largest = scores.max(-1, keepdims=True)
        powers = np.exp(scores - largest)
        total = powers.sum(-1, keepdims=True)
        own = (np.where(mask, scores, 0.0) * right).sum(-1)
        loss = np.mean(largest[:, 0] + np.log(total[:, 0]) - own)
        residual = (powers / total - right)[:, None] / len(mask)
        gradient = np.matmul(residual, keys)[:, 0].T @ queries + weight * M
        return loss + weight / 2 * flat @ flat, gradient.reshape(-1)

    found, start = [], np.zeros(W.size)
    for weight in _REGULARIZATION:
        options = {"maxiter": 2000, "ftol": 1e-12, "gtol": 1e-4 * weight}
        fit = minimize(objective, start, (weight,), "L-BFGS-B", jac=True, options=options)
        start = fit.x
        found.append(fit.x.reshape(W.shape))
    return found


def _ridge(problem: MarginProblem) -> list[Float[np.ndarray, "d e"]]:
    """Matrices that bring all margins near 1 in mean square, at several regularizations."""
    shape, rows = problem.shape, len(problem.bounds)
    made_of: Any = LinearOperator
    operator = made_of(
        (rows, shape[0] * shape[1]),
        matvec=lambda flat: problem.margins(flat.reshape(shape)),
        rmatvec=lambda multipliers: problem.apply_adjoint(multipliers).reshape(-1),
        dtype=float,
    )
    squares = (problem.left**2).sum(-1) * (problem.right**2).sum(-1)
    size = np.sqrt(squares.sum() / (shape[0] * shape[1]))
    found = [
        lsmr(operator, np.ones(rows), np.sqrt(weight) * size, maxiter=1000)[0] for weight in _RIDGE
    ]
    return [flat.reshape(shape) for flat in found]


def _cosine(one: Float[np.ndarray, "d e"], other: Float[np.ndarray, "d e"]) -> float:
    size = np.linalg.norm(one) * np.linalg.norm(other)
    return float((one * other).sum() / size) if 0 < size < np.inf else np.nan


def _root_mean_square(array: Sequence[Any] | np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array)))) or 1.0

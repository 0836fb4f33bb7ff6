"""The finite offset of normalized gradient descent from the ray it converges to."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Bool, Float
from scipy.special import softmax

from attractor.attention import Head, Loss, get_loss
from attractor.attention.excess import check_excess
from attractor.geometry import Frobenius
from attractor.geometry.vectors import in_ordinary_units, ordinary_factor
from attractor.margin import Solution
from attractor.margin.selection import score_rounding, token_scores
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_shaped, double_precision
from attractor.tokens import Tokens
from attractor.training import Trajectory

_DEPENDENT = 1e-10
"""Eigenvalues of a Gram matrix, relative to the largest, that are rounding."""
_NO_MULTIPLIER = 1e-7
"""Multipliers, relative to the largest, that are rounding."""
_NEWTON_STEPS = 100
_SETTLED = 1e-28
"""Decrease of the potential, predicted by Newton's model, at which the iteration has converged."""
_NOISE = 1e-10
"""Decrease below which values of the potential say nothing, and Newton's step is taken whole."""


@dataclass(frozen=True, eq=False)
class Offsets:
    """Margins of the part of W that is orthogonal to the solution, in the limit.

    Attributes:
        margins: ``a_j^T C b_j`` for each constraint of the problem, ``(*instances, m)``; NaN where
            the law says nothing: off the support, and where every multiplier is zero.
        matrix: The smallest such C with ``<C, W*> = 0``, ``(*instances, d, e)``; NaN where the
            problem has no solution. What training leaves as it starts, orthogonal to all support
            constraints, is not in it.
        shares: Multipliers of the limit, the shares of support constraints in the gradient; they
            add up to one. Zero elsewhere.
    """

    margins: Float[np.ndarray, "*instances m"]
    matrix: Float[np.ndarray, "*instances d e"]
    shares: Float[np.ndarray, "*instances m"]


def predicted_offsets(
    tokens: Tokens, head: Head, solution: Solution, *, loss: str | Loss = "logistic"
) -> Offsets:
    """The offsets from the ray of the margin solution that normalized gradient descent tends to.

    With steps of constant length eta, ``W(t) = eta t W* / ||W*|| + C + o(1)``. Far out a support
    token t of a row weighs ``exp(-(x_selected - x_t)^T W z)`` and minus the gradient is

        sum_j A_j exp(-a_j^T C b_j) a_j b_j^T
        with   A_j = |l'(gamma_selected)| (gamma_selected - gamma_t),

    times a factor that all support constraints ``a_j b_j^T`` share. It must point along
    ``W* = sum_j lambda_j a_j b_j^T``, so that for independent constraints

        A_j exp(-a_j^T C b_j)   is proportional to   lambda_j.

    In general C minimizes ``log sum_j A_j exp(-a_j^T C b_j)`` over ``<C, W*> = 0``, which picks
    one of the multipliers where there are several. Steps must be short enough to settle: where
    eta times the squared length of support constraints across the ray is large, W goes on to jump
    about C. Plain gradient descent obeys the law as well, but approaches it as slowly as its
    direction does.

    Args:
        tokens: The data sets, with labels.
        head: A linear head.
        solution: A solution in the Frobenius norm, with one token selected in each row, which is
            locally optimal.
        loss: ``"logistic"``, ``"exponential"`` or ``"linear"``.

    Raises:
        InvalidInputError: If an argument does not fit, a row keeps several tokens, a support token
            scores no lower than the selected one, or the norm is another: which offset mirror
            descent and other geometries settle at is not known.
    """
    check_kinds(tokens=(tokens, Tokens), solution=(solution, Solution), head=(head, Head))
    loss = get_loss(loss)
    check_excess(loss, head)
    _check_norm("solution", solution.geometry.name)
    log_weights = _log_weights(tokens, head, loss, solution)
    problem = solution.problem.batched()
    support = np.reshape(solution.support, problem.bounds.shape) & problem.present
    multipliers = np.reshape(solution.multipliers, support.shape)
    solved = np.isfinite(np.reshape(solution.W, (len(problem), -1))).all(-1)
    margins, shares = np.full(support.shape, np.nan), np.zeros(support.shape)
    matrices = np.full((len(problem), *problem.shape), np.nan)
    for i in np.flatnonzero(solved).tolist():
        gram = problem[[i]].gram()[0]
        rows = np.flatnonzero(support[i])
        if not rows.size:
            matrices[i] = 0
            continue
        rows = rows[_may_count(gram[np.ix_(rows, rows)], multipliers[i, rows])]
        inner = gram[np.ix_(rows, rows)]
        coefficients = np.zeros(len(gram))
        coefficients[rows], shares[i, rows] = _settle(inner, log_weights[i, rows])
        margins[i, rows] = inner @ coefficients[rows]
        matrices[i] = problem[[i]].apply_adjoint(coefficients[None])[0]
    if solution.problem.instances is None:
        return Offsets(margins[0], matrices[0], shares[0])
    return Offsets(margins, matrices, shares)


def measured_offsets(
    W: Trajectory | Float[np.ndarray, "*batch d e"], solution: Solution
) -> Float[np.ndarray, "*batch m"]:
    """Margins of the part of matrices that is orthogonal to a solution.

        a_j^T (W - <W, W*> / ||W*||^2 W*) b_j

    What ``predicted_offsets`` gives the limit of, at the same constraints.

    Args:
        W: Matrices, with an axis of instances first where the solution has one; or a trajectory,
            for all matrices that it kept.
        solution: The solution, in the Frobenius norm.

    Returns:
        One number for each constraint behind the leading axes of the matrices, of a trajectory
        (instance, seed, step); NaN off the support, of matrices that are not finite, and where
        there is no solution.

    Raises:
        InvalidInputError: If the norm is another, or shapes do not fit.
    """
    check_kinds(solution=(solution, Solution))
    _check_norm("solution", solution.geometry.name)
    if isinstance(W, Trajectory):
        W.require_one_variant("W")
        if W.attention_heads is not None:
            raise InvalidInputError(
                "W",
                f"it is a run of {W.attention_heads} attention heads",
                "Take one of them: .attention_head(0)",
            )
        _check_norm("W", W.geometry)
        W = W.data["W"].to_numpy()
        if solution.problem.instances is None and len(W) == 1:
            return measured_offsets(W[0], solution)[None]
    W = as_shaped("W", W, ("...", "d", "e"), finite=False)
    lead = solution.W.shape[:-2]
    if W.shape[-2:] != solution.W.shape[-2:] or W.shape[: len(lead)] != lead:
        raise InvalidInputError(
            "W", f"the shape is {W.shape}", f"Give {(*lead, '...', *solution.W.shape[-2:])}"
        )
    problem, best = solution.problem.batched(), solution.W.reshape(-1, *solution.W.shape[-2:])
    batch = W.shape[len(lead) : -2]
    flat = W.reshape(len(problem), -1, *problem.shape)
    ordinary, factor = in_ordinary_units(flat), ordinary_factor(np.abs(flat).max((-1, -2)))
    margins = np.einsum("imd,ikde,ime->ikm", problem.left, ordinary, problem.right, optimize=True)
    along = np.einsum("ikde,ide->ik", ordinary, best) / (best**2).sum((1, 2))[:, None]
    support = np.reshape(solution.support, problem.bounds.shape) & problem.present
    with np.errstate(over="ignore"):
        across = (margins - along[..., None]) / factor[..., None]
    found = np.where(support[:, None], across, np.nan)
    return found.reshape(*lead, *batch, -1)


def _check_norm(argument: str, name: str) -> None:
    if name != Frobenius().name:
        raise InvalidInputError(
            argument,
            f"its geometry is {name}, in which the offset is not known",
            "Give one in the Frobenius norm, that of gradient descent on W or on a prompt vector",
        )


def _log_weights(
    tokens: Tokens, head: Head, loss: Loss, solution: Solution
) -> Float[np.ndarray, "instances m"]:
    """``log |l'(gamma_selected)| (gamma_selected - gamma_t)`` of each support constraint."""
    problem = solution.problem.batched()
    selection = solution.problem.selection
    if selection is None or problem.sequence is None:
        raise InvalidInputError(
            "solution",
            "its problem does not come from a selection of tokens",
            "Build the problem by MarginProblem.from_selection",
        )
    if selection.mask.shape != tokens.mask.shape:
        raise InvalidInputError(
            "tokens",
            f"the mask has shape {tokens.mask.shape}, that of the selection {selection.mask.shape}",
            "Give the tokens that were selected from",
        )
    if (problem.equality & problem.present).any():
        raise InvalidInputError(
            "solution", "some rows keep several tokens", "Select one token in each row"
        )
    assert problem.query is not None and problem.token is not None
    lead = (len(problem), *tokens.mask.shape[-3:])
    scores = token_scores(tokens, head).reshape(lead)
    kept = np.where(selection.mask.reshape(lead), scores, -np.inf).max(-1)
    instance = np.arange(len(problem))[:, None]
    row = (instance, problem.sequence, problem.query)
    gap = kept[row] - scores[(*row, problem.token)]
    support = np.reshape(solution.support, problem.bounds.shape) & problem.present
    tie = score_rounding(tokens, head).reshape(lead[:-1])[row]
    wrong = support & ~(gap > tie)
    if wrong.any():
        i, j = (int(place) for place in np.argwhere(wrong)[0])
        places = problem.sequence[i, j], problem.query[i, j], problem.token[i, j]
        raise InvalidInputError(
            "solution",
            f"in instance {i} the support token at (sequence, query, token) = "
            f"{tuple(map(int, places))} scores no lower than the selected one",
            "Give a selection that is locally optimal, without ties: no other is approached",
        )
    with double_precision():
        slope, log_scale = loss.cotangent(jnp.asarray(kept), jnp.ones(kept.shape))
        log_slope = np.asarray(jnp.log(jnp.abs(slope)) + log_scale)
    return log_slope[row] + np.log(np.where(support, gap, 1.0))


def _may_count(
    gram: Float[np.ndarray, "m m"], multipliers: Float[np.ndarray, "m"]
) -> Bool[np.ndarray, "m"]:
    """Support constraints with a positive multiplier in some solution of the dual problem."""
    values = np.linalg.eigvalsh(gram)
    if values[0] > _DEPENDENT * values[-1]:
        return multipliers > _NO_MULTIPLIER * multipliers.max(initial=0)
    # All multipliers are the nonnegative solutions of gram lambda = 1. Of those capped at a small
    # number, the largest sum has all of them positive that can be.
    m = len(gram)
    scale = values[-1] / m
    cap = 1e-3 / m
    found = scipy.optimize.linprog(
        np.repeat([0.0, -1.0], m),
        A_ub=np.hstack([-np.eye(m), np.eye(m)]),
        b_ub=np.zeros(m),
        A_eq=np.hstack([gram / scale, np.zeros((m, m))]),
        b_eq=np.ones(m),
        bounds=[(0, None)] * m + [(0, cap)] * m,
        method="highs",
    )
    return found.x[m:] > 1e-3 * cap


def _settle(
    gram: Float[np.ndarray, "m m"], log_weights: Float[np.ndarray, "m"]
) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
    """The offset as a combination of support constraints, and their shares in the gradient.

    ``min log sum_j A_j exp(-margin_j)`` over margins ``gram beta`` with ``sum beta = 0``, by
    Newton's method from the margins nearest to those of independent constraints.
    """
    m = len(gram)
    centered = np.eye(m) - 1 / m
    U, values, V = np.linalg.svd(gram @ centered)
    rank = int((values > _DEPENDENT * np.linalg.norm(gram, 2)).sum())
    basis, back = U[:, :rank], V[:rank].T / values[:rank]
    multipliers, *_ = np.linalg.lstsq(gram, np.ones(m), rcond=_DEPENDENT)
    multipliers = np.maximum(multipliers, 1e-3 * multipliers.max())
    # Adding one number to all margins is a step along the ray, which is no part of an offset.
    with_ray = np.column_stack([basis, np.ones(m)])
    start, *_ = np.linalg.lstsq(with_ray, log_weights - np.log(multipliers))
    y = start[:rank]
    for _ in range(_NEWTON_STEPS):
        shares = softmax(log_weights - basis @ y)
        slope = -basis.T @ shares
        hessian = (basis.T * shares) @ basis - np.outer(slope, slope)
        move = -np.linalg.solve(hessian, slope)
        decrease = -float(slope @ move)
        if decrease <= _SETTLED:
            break
        length = 1.0
        before = _potential(log_weights - basis @ y)
        while (
            decrease > _NOISE
            and _potential(log_weights - basis @ (y + length * move))
            > before - 0.1 * length * decrease
        ):
            length /= 2
        y = y + length * move
    return centered @ (back @ y), softmax(log_weights - basis @ y)


def _potential(logs: Float[np.ndarray, "m"]) -> float:
    return float(np.logaddexp.reduce(logs))

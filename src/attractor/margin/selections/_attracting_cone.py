"""The cone of matrices around a locally optimal solution in which training is drawn to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius
from attractor.geometry.vectors import in_ordinary_units
from attractor.margin.problem import check_tokens_kept
from attractor.margin.selection import Selection, score_rounding, token_scores
from attractor.margin.selections.local_optimality import LocalOptimality, check_local_optimality
from attractor.margin.solution import Solution
from attractor.results import Rows, Summary
from attractor.results.labeled import labeled
from attractor.support.checks import check_kinds
from attractor.support.precision import as_real, check_broadcast
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

_FROBENIUS = Frobenius()


@dataclass(frozen=True, eq=False, repr=False)
class AttractingCone(Summary):
    """A cone around ``W*`` in which the selection stays on top and support tokens lead the rest.

        <W, W*> >= (1 - mu) ||W|| ||W*||   and   ||W|| >= R        (Frobenius norms)

        delta = min(1/2, half the smallest slack of a token that is no support token)
        A     = max ||x_it|| ||z_ik|| ||W*||                 mu = (delta / A)^2 / 8
        R     = ||W*|| / delta  log(64 T S A / g)

    with S the largest range of scores in a row, g the smallest advantage of a selected token over
    a support token, and T the most tokens of a row. Derivation: let ``D = W ||W*|| / ||W||``.
    Then ``||D - W*|| <= sqrt(2 mu) ||W*||``, so that no difference of two scores of a row under D
    is farther than delta from that under ``W*``: selected tokens lead support tokens by at least
    1/2, and these lead all others by at least delta. Beyond R the weight of all others is
    therefore at most ``g / (64 S A)`` that of the support tokens, and in every row that has any
    the pull of the loss along ``W*``, the covariance of token scores and attention scores
    ``x_t^T W* z``, is at least 9/10 g times their weight. Rows without support tokens
    (``uncovered``) may pull back; nothing here bounds them against the others.

    Gradient descent with small steps that starts in such a cone converges to the direction of
    ``W*`` (*Max-Margin Token Selection in Attention Mechanism*, arXiv 2306.13596, local
    convergence of gradient descent). True basins are far larger.

    Attributes:
        opening: ``mu``, ``(*instances)``; NaN where there is no cone.
        radius: ``R``, ``(*instances)``.
        delta: ``(*instances)``.
        reach: ``A``, ``(*instances)``.
        score_gap: g, ``(*instances)``.
        score_range: S, ``(*instances)``.
        uncovered: Rows with a choice of tokens but no support token, ``(*instances, n, K)``.
        reason: Why there is no cone; empty where there is one. An object array with an axis of
            instances.
        local_optimality: Whether the selection is locally optimal, and the solution ``W*``.
    """

    opening: Float[np.ndarray, "*instances"]
    radius: Float[np.ndarray, "*instances"]
    delta: Float[np.ndarray, "*instances"]
    reach: Float[np.ndarray, "*instances"]
    score_gap: Float[np.ndarray, "*instances"]
    score_range: Float[np.ndarray, "*instances"]
    uncovered: Bool[np.ndarray, "*instances sequence query"]
    reason: Any
    local_optimality: LocalOptimality

    @property
    def solution(self) -> Solution:
        """The solution that the cone is around."""
        return self.local_optimality.solution

    def contains(self, W: Float[np.ndarray, "*batch d e"]) -> Bool[np.ndarray, "*batch"]:
        """Whether matrices lie in the cone; False where there is none, or W is not finite.

        Args:
            W: Matrices; leading axes broadcast against the axis of instances.
        """
        W = as_real("W", W, ("...", *self.solution.W.shape[-2:]))
        check_broadcast("W", W.shape, self.solution.W.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            norm = _FROBENIUS.norm(W)
            turned = _unit(in_ordinary_units(W)) - _unit(self.solution.W)
        # 1 - cos, without its cancellation
        deviation = np.einsum("...de,...de->...", turned, turned) / 2
        return np.asarray((deviation <= self.opening) & (norm >= self.radius))

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        lead = ("instance",) if self.opening.ndim else ()
        names = "opening radius delta reach score_gap score_range".split()
        data: dict[str, Any] = {name: (lead, getattr(self, name)) for name in names}
        data["uncovered"] = ((*lead, "sequence", "query"), self.uncovered)
        data["reason"] = (lead, self.reason.astype(str) if lead else self.reason)
        return labeled(data)

    def _summary(self) -> tuple[str, Rows]:
        if self.opening.ndim:
            found = int(np.isfinite(self.opening).sum())
            return "Attracting cones", [("instances", f"{self.opening.size}, {found} with a cone")]
        if self.reason:
            return "No attracting cone", [("reason", self.reason)]
        rows = [
            ("opening mu", f"{float(self.opening):.6g}"),
            ("angle", f"{float(np.degrees(2 * np.arcsin(np.sqrt(self.opening / 2)))):.4g} degrees"),
            ("radius R", f"{float(self.radius):.6g}"),
            ("smallest slack, halved", f"{float(self.delta):.6g}"),
            ("score gap", f"{float(self.score_gap):.6g} of a range of {self.score_range:.6g}"),
        ]
        if self.uncovered.any():
            rows.append(("rows without support tokens", str(int(self.uncovered.sum()))))
        return "Attracting cone", rows


def attracting_cone(
    tokens: Tokens,
    head: Callable[[Any], Any],
    selection: Selection,
    solution: Solution | None = None,
) -> AttractingCone:
    """A cone of matrices from which training keeps a locally optimal selection.

    Args:
        tokens: The data set, with labels.
        head: Maps outputs to predictions.
        selection: One token for each row.
        solution: The solution of its margin problem; solved for in the Frobenius norm if None.

    Raises:
        InvalidInputError: If the selection keeps several tokens of a row, the solution belongs to
            another one, or inputs do not fit.
    """
    check_kinds(
        tokens=(tokens, Tokens),
        selection=(selection, Selection),
        solution=(solution, Solution | None),
    )
    check_tokens_kept(tokens, selection)
    local = check_local_optimality(tokens, head, selection, solution)
    solution = local.solution
    problem = solution.problem
    rounding = score_rounding(tokens, head).max((-1, -2))
    holds = np.asarray(local.holds & (local.worst_advantage > rounding))
    slack = problem.margins(solution.W) - problem.bounds
    slack = np.where(problem.present & ~solution.support, slack, np.inf).min(-1)
    size = np.linalg.norm(tokens.keys, axis=-1)[..., None, :]
    size = size * np.linalg.norm(tokens.queries, axis=-1)[..., None]
    norm = _FROBENIUS.norm(solution.W)
    reach = np.where(tokens.mask, size, 0.0).max((-1, -2, -3)) * norm
    scores = token_scores(tokens, head)
    spread = (scores.max(-1) - np.where(tokens.mask, scores, np.inf).min(-1)).max((-1, -2))
    delta = np.where(holds, np.minimum(0.5, slack / 2), np.nan)
    gap = np.where(holds, local.worst_advantage, np.nan)
    most = tokens.mask.sum(-1).max((-1, -2))
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.log(64.0 * most) + np.log(spread) + np.log(reach) - np.log(gap)
    return AttractingCone(
        opening=np.asarray((delta / reach) ** 2 / 8),
        radius=np.asarray(norm / delta * logarithm),
        delta=delta,
        reach=np.asarray(np.where(holds, reach, np.nan)),
        score_gap=gap,
        score_range=np.asarray(spread),
        uncovered=(tokens.mask.sum(-1) > 1) & ~local.support_tokens.any(-1),
        reason=_reasons(local, holds),
        local_optimality=local,
    )


def _unit(W: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch d e"]:
    """Matrices divided by their Frobenius norms; NaN for the zero matrix."""
    return W / _FROBENIUS.norm(W)[..., None, None]


def _reasons(local: LocalOptimality, holds: Bool[np.ndarray, "*instances"]) -> Any:
    """Why there is no cone, for each instance."""
    reasons = np.where(
        np.isnan(local.worst_advantage),
        "the margin problem has no solution, or none was found",
        "a support token scores no less than the selected one",
    ).astype(object)
    reasons = np.where(holds, "", reasons)
    return reasons if holds.ndim else str(reasons)

"""Whether a matrix lies at, or beside, a finite local minimum of the loss.

A matrix at rest there still attends to some tokens most, and in one dimension is even the solution
of their margin problem; but it goes nowhere, and has no limit direction.

The minimum is looked for by Newton's method from the matrix itself, in the differences of
attention scores, on which alone the loss depends. Where a loss has no minimum each of its steps
moves some score by about one, as the tail of a softmax is an exponential; and no step is taken
where the loss is not convex. So a run that is on its way elsewhere, however slow, finds none.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from attractor.analysis.losses.excess_loss import has_excess_loss
from attractor.analysis.outcomes import AT_REST, BESIDE
from attractor.analysis.predictions.trained import attention_heads, favors_token_scores
from attractor.attention import Exponential, Head, Linear, Loss, get_loss
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import optimal_tokens, score_rounding, token_scores
from attractor.support.blas import single_blas_thread
from attractor.support.errors import Status, TiedTokensWarning
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

    from attractor.training import Trajectory

_AT_REST_UP_TO = 1e-6
"""How far scores may be from those of a minimum for the matrix to be at rest."""
_BESIDE = 1.0
"""How far scores may be from those of a minimum that is looked for."""
_SAME_SIGN = 0.9
"""Share of the forces along W, counted with their signs, from which no minimum is near."""
_FLAT = 1e-9
"""Curvature, relative to the largest, below which the loss counts as flat."""
_STEPS = 30
_MOST = 1000
"""Pairs of tokens, or entries of W, above which no minimum is looked for."""


class Minima(NamedTuple):
    """Finite minima beside the last matrices of a run.

    Attributes:
        W: The minima; NaN where there is none.
        moved: How far the scores of the matrix are from those of the minimum; infinite where there
            is none.
    """

    W: Float[np.ndarray, "instance seed d e"]
    moved: Float[np.ndarray, "instance seed"]

    @property
    def at_rest(self) -> Bool[np.ndarray, "instance seed"]:
        """Whether the matrix is at it."""
        return self.moved <= _AT_REST_UP_TO

    @property
    def found(self) -> Bool[np.ndarray, "instance seed"]:
        """Whether there is one."""
        return np.isfinite(self.moved)


def finite_minima(
    tokens: Tokens, W: Float[np.ndarray, "instance seed d e"], trajectory: Trajectory
) -> Minima:
    """Looks for a finite minimum beside every matrix.

    It is known how to for one attention head and a fixed head that is linear, on the logistic, the
    exponential and the linear loss; of other runs none is found, nor where there are more than
    1,000 pairs of tokens, or entries of W.

    Args:
        tokens: Data sets, with an axis of instances.
        W: The matrices; zero and those that are not finite are left out.
        trajectory: The run that they are of.
    """
    none = Minima(np.full(W.shape, np.nan), np.full(W.shape[:2], np.inf))
    head = trajectory.head
    if head is None or attention_heads(trajectory) > 1 or not favors_token_scores(trajectory):
        return none
    loss = get_loss(trajectory.settings["loss"])
    if not has_excess_loss(loss, head):
        return none
    gamma, rounding = token_scores(tokens, head), score_rounding(tokens, head)
    with single_blas_thread():
        for i in range(len(W)):
            rows = _Rows.of(tokens, i, gamma[i], rounding[i], loss)
            counted = np.isfinite(W[i]).all((-1, -2)) & W[i].any((-1, -2))
            near = [seed for seed in np.flatnonzero(counted) if rows.balance(W[i, seed])]
            directions = rows.directions() if near else None
            if directions is None:
                continue
            for seed in near:
                found = rows.minimum(W[i, seed], directions)
                if found is not None:
                    none.W[i, seed], none.moved[i, seed] = found
    return none


def where_minima_are(
    minima: Minima,
    W: Float[np.ndarray, "instance seed d e"],
    tokens: Tokens,
    head: Head | None,
    geometry: Geometry,
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Labeled data on the minima beside which some runs ended, NaN for the others.

    ``minimum`` is the matrix, ``minimum_norm`` its norm, ``minimum_distance`` how far the last
    matrix of the run is from it, and ``optimum_feasible`` whether some matrix selects the tokens of
    highest score: one or zero, NaN where that is not settled.
    """
    assert head is not None
    trials, found = ("instance", "seed"), minima.found
    size, distance, feasible = (np.full(found.shape, np.nan) for _ in range(3))
    size[found] = geometry.norm(minima.W[found])
    distance[found] = geometry.norm((W - minima.W)[found])
    own = np.flatnonzero(found.any(-1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiedTokensWarning)
        best = optimal_tokens(tokens[own], head)
    optimum = solve(MarginProblem.from_selection(tokens[own], best, ties="equal"))
    exists = np.where(np.isfinite(optimum.value), 1.0, np.nan)
    feasible[own] = np.where(optimum.status == Status.INFEASIBLE, 0.0, exists)[:, None]
    return {
        "minimum": ((*trials, "row", "column"), minima.W),
        "minimum_norm": (trials, size),
        "minimum_distance": (trials, distance),
        "optimum_feasible": (trials, np.where(found, feasible, np.nan)),
    }


def minima_reason(data: xr.Dataset) -> str:
    """Says of a verdict's data where W is, and why there is nothing to compare it with."""
    text = ""
    for outcome, words in ((AT_REST, "W is at rest at"), (BESIDE, "W is beside")):
        here = data["comparison"].values == outcome
        if not here.any():
            continue
        norm, far = (data[name].values[here] for name in ("minimum_norm", "minimum_distance"))
        text += (
            f" In {here.sum()} of {here.size} trials {words} a finite minimum of the loss, "
            f"of norm {_range(norm)}"
            + (f", at distance {_range(far)}" if outcome == BESIDE else "")
        )
        text += ", and there is no limit direction to compare with"
        impossible = int((data["optimum_feasible"].values[here] == 0).sum())
        if impossible:
            which = "" if impossible == here.sum() else f" (in {impossible} of them)"
            text += f": no matrix selects the tokens of highest score{which}"
        text += "."
    return text


def _range(values: np.ndarray) -> str:
    least, most = f"{values.min():.4g}", f"{values.max():.4g}"
    return least if least == most else f"{least} to {most}"


class _Directions(NamedTuple):
    """Directions of W in which the scores of attention rows differ.

    Attributes:
        scores: What moves by a unit in each, relative to the first token of a row.
        of_W: The directions, such that these are orthonormal.
    """

    scores: Float[np.ndarray, "row token rank"]
    of_W: Float[np.ndarray, "rank entry"]


class _Rows(NamedTuple):
    """The attention rows of a data set whose loss depends on attention.

    Attributes:
        keys: Tokens.
        queries: Their queries.
        mask: Which tokens there are.
        gamma: Token scores, zero where masked.
        gaps: Their differences, zero between tokens of the same score.
        weights: How much each row counts.
        loss: The loss.
    """

    keys: Float[np.ndarray, "row token d"]
    queries: Float[np.ndarray, "row e"]
    mask: Bool[np.ndarray, "row token"]
    gamma: Float[np.ndarray, "row token"]
    gaps: Float[np.ndarray, "row token token"]
    weights: Float[np.ndarray, "row"]
    loss: Loss

    @classmethod
    def of(
        cls, tokens: Tokens, instance: int, gamma: np.ndarray, rounding: np.ndarray, loss: Loss
    ) -> _Rows:
        n, K, T = tokens.mask.shape[1:]
        mask = tokens.mask[instance].reshape(n * K, T)
        gamma = np.where(mask, gamma.reshape(n * K, T), 0.0)
        gaps = gamma[:, :, None] - gamma[:, None, :]
        counted = mask[:, :, None] & mask[:, None, :]
        counted &= np.abs(gaps) > rounding.reshape(n * K, 1, 1)
        weights = np.ones(n * K) if tokens.weights is None else tokens.weights[instance].ravel()
        kept = counted.any((1, 2)) & (weights > 0)
        keys = np.repeat(tokens.keys[instance], K, axis=0)
        queries = tokens.queries[instance].reshape(n * K, -1)
        arrays = (keys, queries, mask, gamma, np.where(counted, gaps, 0.0), weights)
        return cls(*(array[kept] for array in arrays), loss=loss)

    def directions(self) -> _Directions | None:
        """What a minimum is looked for in; None where there is none, or too much to look through.

        There is none where scores differ in independent directions: each pull is felt then.
        """
        first = self.mask.argmax(-1)
        row, token = np.nonzero(self.mask & (np.arange(self.mask.shape[1]) != first[:, None]))
        differences = self.keys[row, token] - self.keys[row, first[row]]
        maps = (differences[:, :, None] * self.queries[row][:, None, :]).reshape(len(row), -1)
        if not maps.size or max(maps.shape) > _MOST:
            return None
        U, sizes, V = np.linalg.svd(maps, full_matrices=False)
        rank = int((sizes > _FLAT * sizes[0]).sum())
        if rank in (0, len(row)):
            return None
        scores = np.zeros((*self.mask.shape, rank))
        scores[row, token] = U[:, :rank]
        return _Directions(scores, V[:rank] / sizes[:rank, None])

    def balance(self, W: Float[np.ndarray, "d e"]) -> bool:
        """Whether the pulls along W are of both signs, as they are beside a minimum."""
        scores = self._relative_scores(W)[0]
        if not scores.size or not np.isfinite(scores).all():
            return False
        pulls = self._slopes(scores)[0] * scores
        return bool(abs(pulls.sum()) <= _SAME_SIGN * np.abs(pulls).sum())

    def minimum(
        self, W: Float[np.ndarray, "d e"], directions: _Directions
    ) -> tuple[np.ndarray, float] | None:
        """The minimum beside W, and how far scores are from it; None if there is none."""
        scores, top = self._relative_scores(W)
        others = self.mask & (np.arange(scores.shape[1]) != top)
        U = (directions.scores - np.take_along_axis(directions.scores, top[..., None], 1))[others]
        moved = self._newton(scores, others, U)
        if moved is None:
            return None
        return W + (moved @ directions.of_W).reshape(W.shape), float(np.abs(U @ moved).max())

    def _relative_scores(
        self, W: Float[np.ndarray, "d e"]
    ) -> tuple[Float[np.ndarray, "row token"], np.ndarray]:
        """Scores less the largest of their row, and where that is."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.einsum("rtd,de,re->rt", self.keys, W, self.queries)
            top = np.where(self.mask, scores, -np.inf).argmax(-1)[:, None]
            scores = scores - np.take_along_axis(scores, top, -1)
        return np.where(self.mask, scores, 0.0), top

    def _newton(
        self, start: np.ndarray, others: np.ndarray, U: Float[np.ndarray, "pair rank"]
    ) -> Float[np.ndarray, "rank"] | None:
        """What leads to the minimum, in directions that move differences of scores by U."""
        moved, scores = np.zeros(U.shape[1]), start.copy()
        rounding = 1e-12 * (1 + np.abs(start[others]).max(initial=0))
        for _ in range(_STEPS):
            slopes, curvature = self._slopes(scores)
            spread = np.zeros((*others.shape, U.shape[1]))
            spread[others] = U
            bent = np.einsum("rts,rsk->rtk", curvature, spread)[others]
            values, vectors = np.linalg.eigh(U.T @ bent)
            if not values.size or values[0] <= _FLAT * values[-1]:
                return None
            step = -vectors @ ((vectors.T @ (U.T @ slopes[others])) / values)
            moved += step
            change = U @ moved
            if np.abs(change).max() > _BESIDE:
                return None
            scores[others] = start[others] + change
            if np.abs(U @ step).max() <= rounding:
                return moved
        return None

    def _slopes(
        self, scores: Float[np.ndarray, "row token"]
    ) -> tuple[Float[np.ndarray, "row token"], Float[np.ndarray, "row token token"]]:
        """First and second derivatives of the loss in scores, relative to the largest of a row."""
        weights = np.where(self.mask, np.exp(scores), 0.0)
        p = weights / weights.sum(-1, keepdims=True)
        first, second = _derivatives(self.loss, (p * self.gamma).sum(-1))
        pull = p * np.einsum("rts,rs->rt", self.gaps, p)
        crossed = p[:, :, None] * pull[:, None, :]
        bent = pull[:, :, None] * np.eye(p.shape[1]) - crossed - crossed.swapaxes(1, 2)
        squares = pull[:, :, None] * pull[:, None, :]
        curvature = (second * self.weights)[:, None, None] * squares
        curvature += (first * self.weights)[:, None, None] * bent
        return (first * self.weights)[:, None] * pull, curvature


def _derivatives(loss: Loss, margin: Float[np.ndarray, "row"]) -> tuple[np.ndarray, np.ndarray]:
    """The first two derivatives of a loss in the margin."""
    if isinstance(loss, Linear):
        return -np.ones_like(margin), np.zeros_like(margin)
    if isinstance(loss, Exponential):
        # Up to a factor that all rows share, which no minimum depends on.
        slope = np.exp(margin.min(initial=np.inf) - margin)
        return -slope, slope
    return -expit(-margin), expit(-margin) * expit(margin)

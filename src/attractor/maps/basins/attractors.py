"""The selections that runs reach, their margin solutions, and whether a run has settled on one."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.analysis.measures import measure_direction
from attractor.maps.basins.problem import BasinProblem
from attractor.margin import Solution, solve
from attractor.margin.selection import Selection
from attractor.margin.selections.alternatives import problem_against_outsiders
from attractor.support.precision import double_precision
from attractor.tokens import Tokens

SATURATED = 0.99
"""Attention that the token on top has in every row, at least, before a run can be settled."""
OPPOSING = 0.01
"""Pull of better tokens, at most, in units of the pull of the weakest support token."""
_ACTIVE = 1e-6
"""Share of the norm that a constraint carries, at least, to count as holding the direction."""
_TIE_ROUNDINGS = 8
"""Roundings, relative to the terms that make a difference of scores, within which tokens tie."""


class Attractor(NamedTuple):
    """One selection and the direction that attention keeps it in.

    Attributes:
        tokens: The selected token of every row.
        solution: The solution of its margin problem; None where nothing has to be separated.
        better: True for tokens that would lower the loss.
        holding: True for support tokens whose constraint has a multiplier that is not zero.
        log_size: Logarithm of the pull of every token, without its attention weight.
    """

    tokens: Int[np.ndarray, "sequence query"]
    solution: Solution | None
    better: Bool[np.ndarray, "sequence query token"]
    holding: Bool[np.ndarray, "sequence query token"]
    log_size: Float[np.ndarray, "sequence query token"]


class Judgement(NamedTuple):
    """The state of runs: the tokens attended to, and whether they are final.

    Attributes:
        attended: The token with the highest weight in every row; the first of several copies.
        attractor: Number of the attractor of these tokens; -1 unless every row is saturated.
        settled: Whether the run keeps these tokens for good.
        smallest_weight: The smallest over rows of the highest attention weight.
        log_opposing_pull: Logarithm of the pull of better tokens in units of that of the weakest
            support token; NaN where there is no solution.
        margin_ratio: Of the attractor's margin problem; NaN where there is no solution.
        correlation: With the attractor's solution; NaN where there is none, or many.
    """

    attended: Int[np.ndarray, "start sequence query"]
    attractor: Int[np.ndarray, "start"]
    settled: Bool[np.ndarray, "start"]
    smallest_weight: Float[np.ndarray, "start"]
    log_opposing_pull: Float[np.ndarray, "start"]
    margin_ratio: Float[np.ndarray, "start"]
    correlation: Float[np.ndarray, "start"]


class Attractors:
    """The attractors met so far; each margin problem is solved once.

    The margin problem of a selection here leaves out tokens whose score ties with that of the
    selected one: the gradient does not distinguish them, so that nothing keeps a margin over them.
    Without ties it is the usual one.
    """

    def __init__(self, problem: BasinProblem) -> None:
        """Begins with none."""
        self.problem = problem
        self.found: list[Attractor] = []
        self._numbers: dict[bytes, int] = {}

    def judge(self, W: Float[np.ndarray, "start d e"]) -> Judgement:
        """Judges which tokens runs with these matrices attend to, and which runs have settled.

        A run has settled if in every row one token has more than 99 % of the attention, its
        selection has a margin solution, and the better tokens together pull less than 1 % of what
        the weakest support token of that solution holds. Saturation alone is not enough: between
        two basins a run keeps one selection for long before the other wins.
        """
        W = np.where(np.isfinite(W).all((-1, -2), keepdims=True), W, 0.0)
        scores = self.problem.tokens.scores(W)
        log_weights = scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)
        attended, weight = self._on_top(log_weights)
        smallest = weight.min((-1, -2))
        saturated = smallest > SATURATED
        number = np.full(len(W), -1)
        number[saturated] = self._numbers_of(attended[saturated])
        measured = np.full((3, len(W)), np.nan)
        for one in np.unique(number[saturated]):
            places = np.flatnonzero(number == one)
            measured[:, places] = _measure(self.found[one], W[places], log_weights[places])
        settled = measured[0] <= np.log(OPPOSING)
        return Judgement(attended, number, settled, smallest, *measured)

    def _on_top(
        self, log_weights: Float[np.ndarray, "start sequence query token"]
    ) -> tuple[Int[np.ndarray, "start sequence query"], Float[np.ndarray, "start sequence query"]]:
        """The token on top of every row, and its weight together with that of its copies."""
        same = self._copies
        top = log_weights.argmax(-1)
        sequence, query = np.indices(top.shape[1:])
        copies = same[sequence, query, top]
        weight = np.where(copies, np.exp(log_weights), 0.0).sum(-1)
        return copies.argmax(-1), weight

    @cached_property
    def _copies(self) -> Bool[np.ndarray, "sequence query token token"]:
        """Admissible tokens with the same key and the same value, for every token."""
        tokens = self.problem.tokens
        both = np.concatenate([tokens.keys, tokens.values], axis=-1)
        same = (both[:, :, None] == both[:, None, :]).all(-1)
        return same[:, None] & tokens.mask[:, :, None, :]

    def _numbers_of(
        self, attended: Int[np.ndarray, "start sequence query"]
    ) -> Int[np.ndarray, "start"]:
        names = [one.tobytes() for one in attended]
        by_name = zip(names, attended, strict=True)
        new = {name: one for name, one in by_name if name not in self._numbers}
        if new:
            self._numbers |= {name: len(self.found) + i for i, name in enumerate(new)}
            self.found += _solve(self.problem, np.stack(list(new.values())))
        return np.array([self._numbers[name] for name in names], dtype=int)


def _measure(
    attractor: Attractor,
    W: Float[np.ndarray, "start d e"],
    log_weights: Float[np.ndarray, "start sequence query token"],
) -> Float[np.ndarray, "3 start"]:
    """Opposing pull, margin ratio and correlation of runs that attend to its tokens."""
    if attractor.solution is None or not attractor.holding.any():
        return np.full((3, len(W)), np.nan)
    pull = log_weights + attractor.log_size
    opposing = np.logaddexp.reduce(pull[:, attractor.better], axis=-1, initial=-np.inf)
    weakest = pull[:, attractor.holding].min(-1)
    measures = measure_direction(W, attractor.solution)
    return np.stack([opposing - weakest, measures.margin_ratio, measures.correlation])


def _solve(
    problem: BasinProblem, attended: Int[np.ndarray, "selection sequence query"]
) -> list[Attractor]:
    """Solves the margin problems of several selections as one batch."""
    tokens = problem.tokens
    pull = pulls(problem, attended)
    chosen = attended[..., None] == np.arange(tokens.length)
    level = chosen | pull.tied
    separated = np.flatnonzero((tokens.mask & ~level).any((-1, -2, -3)))
    solutions: list[Solution | None] = [None] * len(attended)
    holding = np.zeros(chosen.shape, dtype=bool)
    if separated.size:
        solution = _solution(problem, chosen[separated], level[separated])
        for place, number in enumerate(separated):
            solutions[number] = solution[place]
        holding[separated] = _holding(solution, chosen.shape[1:])
    parts = (attended, solutions, pull.better, holding, pull.log_size)
    return [Attractor(*one) for one in zip(*parts, strict=True)]


def _solution(
    problem: BasinProblem,
    chosen: Bool[np.ndarray, "selection sequence query token"],
    level: Bool[np.ndarray, "selection sequence query token"],
) -> Solution:
    """Margin solutions that keep chosen tokens against all that are not level with them."""
    fields = (problem.tokens.keys, problem.tokens.queries, problem.tokens.mask)
    keys, queries, mask = (np.broadcast_to(a, (len(chosen), *a.shape)) for a in fields)
    none_tied = np.zeros(chosen.shape[:-1], dtype=bool)
    constraints = problem_against_outsiders(
        Tokens(keys, queries, mask=mask),
        Selection(chosen, none_tied),
        Selection(level, level.sum(-1) > 1),
    )
    solution = solve(constraints, problem.geometry)
    assert isinstance(solution, Solution)
    return solution


def _holding(
    solution: Solution, shape: tuple[int, ...]
) -> Bool[np.ndarray, "selection sequence query token"]:
    """The tokens whose constraints have a multiplier worth mentioning; none where infeasible."""
    problem = solution.problem
    assert problem.sequence is not None and problem.query is not None and problem.token is not None
    shares = solution.multipliers * problem.bounds
    active = shares > _ACTIVE * shares.sum(-1, keepdims=True)
    active &= np.isfinite(solution.value)[:, None] & problem.present
    found = np.zeros((len(shares), *shape), dtype=bool)
    instance, slot = np.nonzero(active)
    place = (a[instance, slot] for a in (problem.sequence, problem.query, problem.token))
    found[(instance, *place)] = True
    return found


class Pulls(NamedTuple):
    """The pull of each token on the matrix once it has a share of the attention.

    A row that attends to token ``a`` and gives a small weight ``s_t`` to another token adds
    ``s_t <g, x_t - x_a> (k_a - k_t) z^T`` to the negative gradient, with ``g`` the gradient of
    the loss in the attention output ``x_a``. Where ``<g, x_t - x_a> > 0`` it widens the margin
    over that token, which is worse than ``a``; where it is negative the token is better, and its
    margin shrinks.

    Attributes:
        better: True for tokens that would lower the loss.
        tied: True for other tokens that would neither raise nor lower it, to rounding.
        log_size: Logarithm of the norm of what is added, without the weight ``s_t``; minus
            infinity where masked or attended to.
    """

    better: Bool[np.ndarray, "selection sequence query token"]
    tied: Bool[np.ndarray, "selection sequence query token"]
    log_size: Float[np.ndarray, "selection sequence query token"]


def pulls(problem: BasinProblem, attended: Int[np.ndarray, "selection sequence query"]) -> Pulls:
    """The pull of every token, for rows that attend to given tokens."""
    tokens = problem.tokens
    sequence = np.arange(tokens.sequences)[:, None]
    outputs, keys = tokens.values[sequence, attended], tokens.keys[sequence, attended]
    slope, log_scale = _slopes(problem, outputs)
    apart = tokens.values[:, None] - outputs[..., None, :]
    rise = np.einsum("...v,...tv->...t", slope, apart)
    sizes = np.linalg.norm(tokens.values, axis=-1)[:, None]
    reach = np.linalg.norm(slope, axis=-1)[..., None] * (
        sizes + np.linalg.norm(outputs, axis=-1)[..., None]
    )
    # A difference of scores is rounding where it is small beside the terms that it is taken of.
    level = np.abs(rise) <= _TIE_ROUNDINGS * np.finfo(np.float64).eps * reach
    others = tokens.mask & (np.arange(tokens.length) != attended[..., None])
    # The norm of the rank-one matrix (k_a - k_t) z^T is the product of those of its factors.
    width = np.linalg.norm(tokens.keys[:, None] - keys[..., None, :], axis=-1)
    width = width * np.linalg.norm(tokens.queries, axis=-1)[..., None]
    with np.errstate(divide="ignore"):
        log_size = np.log(np.where(others & ~level, np.abs(rise) * width, 0.0))
    return Pulls(
        better=others & ~level & (rise < 0),
        tied=others & level,
        log_size=log_size + log_scale[..., None],
    )


def _slopes(
    problem: BasinProblem, outputs: Float[np.ndarray, "selection sequence query v"]
) -> tuple[Float[np.ndarray, "selection sequence query v"], Float[np.ndarray, "selection ..."]]:
    """Gradients of the loss in attention outputs, as mantissas and logarithms of scales."""
    assert problem.tokens.labels is not None
    with double_precision():
        labels = jnp.broadcast_to(jnp.asarray(problem.tokens.labels), outputs.shape[:-1])
        prediction, pull_back = jax.vjp(problem.head, outputs)
        mantissa, log_scale = problem.loss.cotangent(prediction, labels)
        (slope,) = pull_back(mantissa)
        return np.asarray(slope), np.asarray(log_scale)

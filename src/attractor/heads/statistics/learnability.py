"""Whether a rule learned from a head's selections on some documents predicts them on others."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.heads.captured.rows import HeadRows
from attractor.support.precision import double_precision

REGULARIZATION = 3e-3
"""Weight of half the squared Frobenius norm of a rule, beside its mean cross-entropy."""
_TOGETHER = 32
"""Draws that are learned side by side; fixed, so that a draw's numbers are."""
_PADDED_TO = 64
"""Rows are filled up to a multiple of it with rows of weight zero: few shapes compile."""
_TOLERANCE = 1e-4
"""Gradient, in parts of that at the start, at which a rule is taken as found."""
_ITERATIONS = 500


@dataclasses.dataclass(frozen=True)
class Learned:
    """How well rules learned from selections predict them on other documents.

    Attributes:
        hits: Which test queries the rule of the head predicts, ``(test rows,)``.
        accuracy: Share of them for the head, then for every draw.
        query_free: Which of them the best rule without the query predicts.
        offset: Which of them the most frequent place after the query's predicts.
        chance: Share that a uniform choice among content predicts.
    """

    hits: Bool[np.ndarray, "tested"]
    accuracy: Float[np.ndarray, "draws+1"]
    query_free: Bool[np.ndarray, "tested"]
    offset: Bool[np.ndarray, "tested"]
    chance: float


def learn(
    rows: HeadRows,
    maps: Float[np.ndarray, "draws width width"],
    learned: Bool[np.ndarray, "rows"] | None = None,
) -> Learned:
    r"""Learns to predict the selections of the head and of draws of a null, each from its own.

    A head with map ``R`` selects ``y_i = argmax_j k_j^T (R u_i + q)`` among content. The rule is
    the matrix ``M`` that minimizes
    ``mean_i CE(softmax_j(k_j^T M x_i), y_i) + lambda / 2 ||M||_F^2`` with ``x_i = (u_i, 1)``
    over the half of training queries with the larger gap between the first and the second score;
    near-ties carry no information. Keys and queries are scaled by ``(C + tr(C) / d I)^(-1/2)``:
    what a rule predicts does not depend on rotations of either.

    Args:
        rows: The rows of the head.
        maps: Draws of a null.
        learned: The rows to learn from, some of ``rows.learned``; None for all of them. What is
            selected, and the rows to test on, are those of ``rows``.
    """
    tested = ~rows.learned
    known = rows if learned is None else dataclasses.replace(rows, learned=learned)
    every = np.concatenate([np.eye(rows.queries.shape[1])[None], maps])
    keys = rows.keys @ _scaling(known.key_covariance)
    constant = np.ones((len(rows.queries), 1))
    queries = np.concatenate([rows.queries @ _scaling(known.query_covariance), constant], -1)
    chosen, gaps = _selections(rows, every)
    problem = _Problem(keys, rows.content, known.learned, tested, chosen, gaps)
    hits = problem.hits(queries)
    offsets = chosen[:, 0] - rows.position
    return Learned(
        hits=hits[:, 0],
        accuracy=hits.mean(0),
        query_free=problem.of_head().hits(constant)[:, 0],
        offset=offsets[tested] == _most_frequent(offsets[known.learned]),
        chance=float((1 / rows.content[tested].sum(-1)).mean()),
    )


@dataclasses.dataclass(frozen=True)
class _Problem:
    keys: Float[np.ndarray, "rows tokens width"]
    content: Bool[np.ndarray, "rows tokens"]
    learned: Bool[np.ndarray, "rows"]
    tested: Bool[np.ndarray, "rows"]
    chosen: Int[np.ndarray, "rows draws"]
    gaps: Float[np.ndarray, "rows draws"]

    def of_head(self) -> _Problem:
        """The head alone, without draws."""
        return dataclasses.replace(self, chosen=self.chosen[:, :1], gaps=self.gaps[:, :1])

    def hits(self, queries: Float[np.ndarray, "rows features"]) -> Bool[np.ndarray, "tested draws"]:
        """Which test queries each rule predicts."""
        learned, tested = self.learned, self.tested
        gaps = self.gaps[learned]
        weights = (gaps >= np.median(gaps, axis=0)).astype(float)
        weights /= weights.sum(0)
        inputs = (
            *_padded(self.keys[learned], queries[learned], self.content[learned]),
            *_padded(self.keys[tested], queries[tested], self.content[tested]),
        )
        together = _TOGETHER if weights.shape[1] > 1 else 1
        found = []
        for start in range(0, weights.shape[1], together):
            block = np.arange(start, start + together) % weights.shape[1]
            with double_precision():
                predicted = _learn_and_predict(
                    *inputs,
                    *_padded(self.chosen[np.ix_(learned, block)], weights[:, block]),
                )
            found.append(np.asarray(predicted)[: tested.sum()])
        predicted = np.concatenate(found, -1)[:, : weights.shape[1]]
        return predicted == self.chosen[tested]


@jax.jit
def _learn_and_predict(
    keys: Any, queries: Any, content: Any, test_keys: Any, test_queries: Any, test_content: Any,
    chosen: Any, weights: Any,
) -> Any:  # fmt: skip
    """The content token that each rule selects under every test query, ``(tested, draws)``.

    Nesterov's method with steps by backtracking and restarts, each rule with its own; a rule that
    is found stays as it is.
    """
    objective = partial(
        _objective, keys=keys, queries=queries, content=content, chosen=chosen, weights=weights
    )
    draws = weights.shape[1]
    start = jnp.zeros((draws, keys.shape[2], queries.shape[1]))
    value, gradient = objective(start)
    enough = _TOLERANCE**2 * _square(gradient)

    def unfinished(state: Any) -> Any:
        return (state[0] < _ITERATIONS) & ~state[-1].all()

    def step(state: Any) -> Any:
        count, rule, ahead, momentum, curvature, value, found = state
        ahead_value, gradient = objective(ahead)
        square = _square(gradient)
        found = found | (square <= enough)
        new = ahead - gradient / curvature[:, None, None]
        new_value, _ = objective(new)
        short = new_value <= ahead_value - square / (2 * curvature) * (1 - 1e-9)
        better = short & (new_value <= value) & ~found
        later = (1 + jnp.sqrt(1 + 4 * momentum**2)) / 2
        push = ((momentum - 1) / later)[:, None, None] * (new - rule)
        restart = jnp.where((short | found)[:, None, None], rule, ahead)
        ahead = jnp.where(better[:, None, None], new + push, restart)
        momentum = jnp.where(better, later, jnp.where(short, 1.0, momentum))
        rule = jnp.where(better[:, None, None], new, rule)
        value = jnp.where(better, new_value, value)
        curvature = jnp.where(short, 0.95 * curvature, 2 * curvature)
        return count + 1, rule, ahead, momentum, curvature, value, found

    ones = jnp.ones(draws)
    state = (0, start, start, ones, ones, value, enough <= 0)
    rules = jax.lax.while_loop(unfinished, step, state)[1]
    scores = _scores(rules, test_keys, test_queries)
    return jnp.argmax(jnp.where(test_content[..., None], scores, -jnp.inf), axis=1)


def _scores(rules: Any, keys: Any, queries: Any) -> Any:
    draws, width, features = rules.shape
    mapped = (queries @ rules.reshape(draws * width, features).T).reshape(-1, draws, width)
    return jnp.matmul(keys, mapped.transpose(0, 2, 1))  # (rows, tokens, draws)


def _objective(
    rules: Any, *, keys: Any, queries: Any, content: Any, chosen: Any, weights: Any
) -> tuple[Any, Any]:
    """The objective of every rule, and its gradient."""
    scores = jnp.where(content[..., None], _scores(rules, keys, queries), -jnp.inf)
    largest = scores.max(1, keepdims=True)
    powers = jnp.exp(scores - largest)
    total = powers.sum(1, keepdims=True)
    own = jnp.take_along_axis(scores, chosen[:, None], axis=1)
    losses = (largest + jnp.log(total) - own)[:, 0]
    value = (losses * weights).sum(0) + REGULARIZATION / 2 * _square(rules)
    right = jnp.arange(keys.shape[1])[:, None] == chosen[:, None]
    residual = (powers / total - right) * weights[:, None]
    backward = jnp.matmul(keys.transpose(0, 2, 1), residual)  # (rows, width, draws)
    gradient = jnp.einsum("rwd,rf->dwf", backward, queries)
    return value, gradient + REGULARIZATION * rules


def _square(rules: Any) -> Any:
    return (rules**2).sum((-2, -1))


def _selections(
    rows: HeadRows, maps: Float[np.ndarray, "draws width width"]
) -> tuple[Int[np.ndarray, "rows draws"], Float[np.ndarray, "rows draws"]]:
    """What each map selects under every query, and by how much."""
    chosen, gaps = [], []
    for start in range(0, len(maps), _TOGETHER):
        mapped = np.einsum("dvw,rw->rvd", maps[start : start + _TOGETHER], rows.queries)
        scores = rows.keys @ (mapped + rows.mean_query[:, None])
        scores[~rows.content] = -np.inf
        chosen.append(scores.argmax(1))
        first, second = -np.partition(-scores, 1, axis=1)[:, :2].transpose(1, 0, 2)
        gaps.append(first - second)
    return np.concatenate(chosen, -1), np.concatenate(gaps, -1)


def _scaling(covariance: Float[np.ndarray, "width width"]) -> Float[np.ndarray, "width width"]:
    """``(C + tr(C) / d I)^(-1/2)``; zero where there is no variance."""
    values, vectors = np.linalg.eigh(covariance)
    level = values.mean()
    if level <= 0:
        return np.zeros_like(covariance)
    return (vectors / np.sqrt(np.maximum(values, 0.0) + level)) @ vectors.T


def _most_frequent(numbers: Int[np.ndarray, "rows"]) -> int:
    values, counts = np.unique(numbers, return_counts=True)
    return int(values[counts.argmax()])


def _padded(*arrays: np.ndarray) -> list[np.ndarray]:
    """Arrays filled up with rows of zeros, or of true, to a multiple of ``_PADDED_TO``."""
    missing = -len(arrays[0]) % _PADDED_TO
    return [
        np.pad(
            array, [(0, missing)] + [(0, 0)] * (array.ndim - 1), constant_values=array.dtype == bool
        )
        for array in arrays
    ]

"""The predicted limits of next-token training with attention, and the distance from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import logsumexp

from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics._cyclic_subspace import CyclicSubspace, cyclic_subspace
from attractor.corpora.mechanics._graph_problem import graph_problem
from attractor.corpora.mechanics.contexts import PaddedContexts, tables_of
from attractor.corpora.mechanics.finite_part import FinitePart, finite_part
from attractor.corpora.structures.graphs import QueryGraphs
from attractor.corpora.structures.orders import token_priority_graphs
from attractor.margin import Solution, solve
from attractor.support.checks import one_or_several
from attractor.support.errors import InvalidInputError


@dataclass(frozen=True, eq=False, repr=False)
class AttentionLimits:
    """The limits of training on one corpus, for labels in their contexts and log-loss.

    The training loss is convex in W, and gradient descent is predicted to follow

        W ~ C(t) W_svm + W_fin,    C(t) -> infinity,

    so that W tends to the direction of ``W_svm`` and its projection on the cyclic subspace to
    ``W_fin``, while the loss tends to its floor. Source: *Mechanics of Next Token Prediction with
    Self-Attention* (arXiv 2403.08081), global convergence of gradient descent.

    Attributes:
        contexts: The samples.
        graphs: Their token-priority graphs.
        direction: The solution of the graphs' margin problem, ``W_svm``.
        subspace: The cyclic subspace.
        finite: The finite part, ``W_fin``, and the loss floor.
    """

    contexts: PaddedContexts
    graphs: QueryGraphs
    direction: Solution
    subspace: CyclicSubspace
    finite: FinitePart

    @cached_property
    def kept(self) -> Bool[np.ndarray, "samples length"]:
        """The tokens that attention is predicted to keep: the component of the label."""
        return self.contexts.in_component(self.graphs)

    def __repr__(self) -> str:
        return (
            f"AttentionLimits({self.graphs!r}, {self.subspace!r}, {self.finite!r}, "
            f"direction {self.direction.status})"
        )


@overload
def attention_limits(corpora: Corpus, embeddings: Any) -> AttentionLimits: ...
@overload
def attention_limits(corpora: Sequence[Corpus], embeddings: Any) -> tuple[AttentionLimits, ...]: ...
def attention_limits(
    corpora: Corpus | Sequence[Corpus], embeddings: Any
) -> AttentionLimits | tuple[AttentionLimits, ...]:
    """The limits of training on corpora whose labels are tokens of their contexts.

    Args:
        corpora: A corpus, or several.
        embeddings: ``(K, d)``, or ``(instances, K, d)``.

    Returns:
        ``AttentionLimits``, or a tuple of them, one for each corpus of several. Where no matrix
        orders tokens as the graphs do, which takes linearly dependent embeddings, the status
        of ``direction`` is infeasible.

    Raises:
        InvalidInputError: If embeddings do not fit, or a context lacks its label.
    """
    listed, several = one_or_several("corpora", corpora, Corpus)
    vectors = tables_of(listed, embeddings)
    contexts = [PaddedContexts.of(corpus, E) for corpus, E in zip(listed, vectors, strict=True)]
    if not all(rows.is_label.any(1).all() for rows in contexts):
        raise InvalidInputError(
            "corpora",
            "a context lacks its label",
            "Give samples whose label is a token of the context",
        )
    graphs = [token_priority_graphs(corpus) for corpus in listed]
    problems = [graph_problem(one, E) for one, E in zip(graphs, vectors, strict=True)]
    spaces = [cyclic_subspace(one, E) for one, E in zip(graphs, vectors, strict=True)]
    found = tuple(
        AttentionLimits(rows, one, direction, space, finite_part(rows, one, space))
        for rows, one, direction, space in zip(
            contexts, graphs, solve(problems), spaces, strict=True
        )
    )
    return found if several else found[0]


def log_mass_outside(
    limits: AttentionLimits, W: Float[np.ndarray, "*batch d d"]
) -> Float[np.ndarray, "*batch samples"]:
    """Logarithm of the attention mass of each sample off the component of its label."""
    scores = limits.contexts.scores(W)
    outside = limits.contexts.present & ~limits.kept
    return log_sum(scores, outside) - log_sum(scores, limits.contexts.present)


def log_excess_loss(
    limits: AttentionLimits, W: Float[np.ndarray, "*batch d d"]
) -> Float[np.ndarray, "*batch"]:
    """``log(L(W) - L_floor)`` of the log-loss of label mass, free of cancellation.

    With ``u_i`` the log-odds of mass off the component of the label, ``p`` the softmax weights of
    the finite part within it, and z the scores of ``P_cyc W - W_fin`` there less their mean
    ``<p, z>``, both parts are sums of positive terms,

        L - L_floor = sum_i w_i log(1 + exp u_i)
                    + sum_i w_i log(1 + sum_t p_it (exp z_it - 1 - z_it)),

    as the gradient of the second vanishes at the finite part. Minus infinity where both are zero.
    Rounding of W itself, about ``1e-16 ||W||`` in its cyclic part, adds its square to the second.
    """
    scores = limits.contexts.scores(W)
    outside = limits.contexts.present & ~limits.kept
    odds = log_sum(scores, outside) - log_sum(scores, limits.kept)
    moved = limits.subspace.project(W) - limits.finite.W
    within = log_bregman(limits.contexts.scores(moved), limits.kept, limits.finite.weights)
    return log_mean_of(limits.contexts.weights, log_softplus(odds), within)


def log_mean_of(
    weights: Float[np.ndarray, "samples"], *logs: Float[np.ndarray, "*batch samples"]
) -> Float[np.ndarray, "*batch"]:
    """Logarithm of a weighted sum over samples, of numbers given by their logarithms."""
    total: Any = logsumexp(np.stack(logs), b=weights, axis=(0, -1))
    return total


def log_softplus(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """``log log(1 + exp(x))``."""
    small = x < -18
    tiny = x - np.exp(np.minimum(x, -18)) / 2
    return np.where(small, tiny, np.log(np.logaddexp(0, np.where(small, 0.0, x))))


def log_bregman(
    moves: Float[np.ndarray, "*batch samples length"],
    kept: Bool[np.ndarray, "samples length"],
    weights: Float[np.ndarray, "samples length"],
) -> Float[np.ndarray, "*batch samples"]:
    """``log(log sum_t p_t exp(z_t))`` with z the moves less their mean: how far a log-sum bends."""
    moves = np.where(kept, moves, 0.0)
    z = moves - (weights * moves).sum(-1, keepdims=True)
    mild = np.clip(z, -1, 1)
    small = np.log1p((weights * _exponential_remainder(mild)).sum(-1))
    with np.errstate(divide="ignore"):
        large = np.logaddexp.reduce(z + np.log(weights), axis=-1)
        return np.log(np.where((np.abs(z) > 1).any(-1), large, small))


def _exponential_remainder(z: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """``exp(z) - 1 - z`` for ``|z| <= 1``, by its series."""
    term, total = z**2 / 2, np.zeros_like(z)
    for power in range(3, 22):
        total = total + term
        term = term * z / power
    return total


def log_sum(
    scores: Float[np.ndarray, "*batch samples length"], chosen: Bool[np.ndarray, "samples length"]
) -> Float[np.ndarray, "*batch samples"]:
    """Logarithm of the sum of exponentials over chosen tokens; minus infinity where none is."""
    return np.logaddexp.reduce(np.where(chosen, scores, -np.inf), axis=-1)

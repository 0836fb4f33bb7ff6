"""Where attention is predicted to converge locally, from the tokens it settled on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from jaxtyping import Bool, Float

from attractor.checks import one_or_several
from attractor.errors import InvalidInputError
from attractor.geometry._lengths import cosines, in_ordinary_units
from attractor.margin import Solution, solve
from attractor.next_token.corpus import Corpus
from attractor.next_token.graphs import QueryGraphs
from attractor.next_token.mechanics._cyclic_subspace import CyclicSubspace, cyclic_subspace
from attractor.next_token.mechanics._graph_problem import graph_problem
from attractor.next_token.mechanics.contexts import tables_of
from attractor.next_token.mechanics.local_graphs import ambiguous_tokens, local_priority_graphs
from attractor.precision import as_float64, as_shaped


@dataclass(frozen=True, eq=False, repr=False)
class LocalLimits:
    """The direction that training tends to locally, where the loss is not convex.

    Attributes:
        graphs: Priority graphs of the tokens that kept attention mass.
        direction: The solution of their margin problem.
        subspace: Their cyclic subspace: of samples that keep several tokens.
        ambiguous: Tokens that were ignored, as their mass lies between the two thresholds.
    """

    graphs: QueryGraphs
    direction: Solution
    subspace: CyclicSubspace
    ambiguous: Bool[np.ndarray, "samples K"]

    def correlation(self, W: Float[np.ndarray, "*batch d d"]) -> Float[np.ndarray, "*batch"]:
        """Correlation of matrices with the direction."""
        return cosines(as_shaped("W", W, ("...", *self.direction.W.shape)), self.direction.W)

    def correlation_outside(
        self, W: Float[np.ndarray, "*batch d d"]
    ) -> Float[np.ndarray, "*batch"]:
        """That correlation without the part of W in the cyclic subspace."""
        W = in_ordinary_units(as_shaped("W", W, ("...", *self.direction.W.shape)))
        return cosines(W - self.subspace.project(W), self.direction.W)

    def __repr__(self) -> str:
        return f"LocalLimits({self.graphs!r}, {self.subspace!r}, direction {self.direction.status})"


@overload
def local_limits(
    corpora: Corpus,
    embeddings: Any,
    probabilities: Any,
    *,
    selected: float = ...,
    negligible: float = ...,
) -> LocalLimits: ...
@overload
def local_limits(
    corpora: Sequence[Corpus],
    embeddings: Any,
    probabilities: Any,
    *,
    selected: float = ...,
    negligible: float = ...,
) -> tuple[LocalLimits, ...]: ...
def local_limits(
    corpora: Corpus | Sequence[Corpus],
    embeddings: Any,
    probabilities: Any,
    *,
    selected: float = 0.01,
    negligible: float = 0.009,
) -> LocalLimits | tuple[LocalLimits, ...]:
    """The local limits that final attention weights point to.

    Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081), local
    convergence of gradient descent.

    Args:
        corpora: A corpus, or several.
        embeddings: ``(K, d)``, or ``(instances, K, d)``.
        probabilities: Final softmax weights, ``(samples, length)``, with an axis of instances
            before them for several corpora; what lies beyond the contexts of one is not read.
        selected: See ``local_priority_graphs``.
        negligible: Likewise.

    Returns:
        ``LocalLimits``, or a tuple of them, one for each corpus of several.

    Raises:
        InvalidInputError: If shapes do not fit, or a context keeps no token.
    """
    listed, several = one_or_several("corpora", corpora, Corpus)
    vectors = tables_of(listed, embeddings)
    weights = as_float64("probabilities", probabilities)
    weights = weights if several else weights[None]
    if weights.ndim != 3 or len(weights) != len(listed):
        raise InvalidInputError(
            "probabilities",
            f"the shape is {np.shape(probabilities)} for {len(listed)} corpora",
            "Give (samples, length), with an axis of instances before them for several corpora",
        )
    cuts = {"selected": selected, "negligible": negligible}
    graphs, ambiguous = [], []
    for corpus, whole in zip(listed, weights, strict=True):
        longest = int((corpus.positions + 1 - corpus.first).max())
        own = whole[: len(corpus.positions), :longest]
        graphs.append(local_priority_graphs(corpus, own, **cuts))
        ambiguous.append(ambiguous_tokens(corpus, own, **cuts))
    solutions = solve([graph_problem(one, E) for one, E in zip(graphs, vectors, strict=True)])
    found = tuple(
        LocalLimits(one, direction, cyclic_subspace(one, E), ignored)
        for one, direction, E, ignored in zip(graphs, solutions, vectors, ambiguous, strict=True)
    )
    return found if several else found[0]

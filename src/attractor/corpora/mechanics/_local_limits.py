"""The predicted local limits of attention, from the tokens that kept attention mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from jaxtyping import Bool, Float

from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics._cyclic_subspace import CyclicSubspace, cyclic_subspace
from attractor.corpora.mechanics._graph_problem import graph_problem
from attractor.corpora.mechanics.contexts import PaddedContexts, tables_of
from attractor.corpora.structures.graphs import QueryGraphs
from attractor.geometry.vectors import cosines, in_ordinary_units
from attractor.margin import Solution, solve
from attractor.support.checks import check_kinds, check_number, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_shaped


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
    """The local limits that final attention weights imply.

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


def local_priority_graphs(
    corpus: Corpus,
    probabilities: Any,
    *,
    selected: float = 0.01,
    negligible: float = 0.009,
) -> QueryGraphs:
    """Pseudo token-priority graphs: those of the tokens that keep attention mass.

    In the graph of its query, every token that a sample keeps has an edge to every other token of
    the context, so that the tokens a sample keeps lie on a cycle. The solution of their
    ``graph_problem`` is where training is predicted to converge locally, whatever the head.
    Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081), local
    convergence of gradient descent.

    Args:
        corpus: The corpus.
        probabilities: Final softmax weights, ``(samples, length)`` or ``(samples, 1, length)``;
            those of a token that occurs in a context several times are added up.
        selected: A token is kept whose mass is larger.
        negligible: A token is left behind whose mass is at most this; one between the two is
            ignored, as the published experiment does.

    Raises:
        InvalidInputError: If the shape is different, a context is left without a token that is
            kept, or the thresholds are not in order.
    """
    check_kinds(corpus=(corpus, Corpus))
    selected = check_number("selected", selected, least=0.0, below=1.0, example=0.01)
    negligible = check_number("negligible", negligible, least=0.0, below=1.0, example=0.009)
    if negligible > selected:
        raise InvalidInputError(
            "selected",
            f"it is {selected}, with {negligible} negligible",
            "Give 0 <= negligible <= selected < 1",
        )
    contexts = PaddedContexts.of(corpus, np.zeros((corpus.vocabulary_size, 1)))
    weights = as_float64("probabilities", probabilities)
    if weights.ndim == 3 and weights.shape[1] == 1:
        weights = weights[:, 0]
    if weights.shape != contexts.ids.shape:
        raise InvalidInputError(
            "probabilities", f"the shape is {weights.shape}", f"Give {contexts.ids.shape}"
        )
    mass = _mass_of_tokens(contexts, weights)
    kept, left = mass > selected, mass <= negligible
    if not kept.any(1).all():
        raise InvalidInputError(
            "selected",
            f"no token of sample {np.flatnonzero(~kept.any(1))[0]} has more mass than {selected}",
            "Give a smaller one",
        )
    there = _in_context(contexts)
    pairs = kept[:, :, None] & (there & (kept | left))[:, None, :]
    sample, better, other = np.nonzero(pairs & ~np.eye(corpus.vocabulary_size, dtype=bool))
    edges = np.stack([corpus.queries[sample], better, other], axis=1)
    return QueryGraphs(np.unique(edges, axis=0), corpus.vocabulary)


def ambiguous_tokens(
    corpus: Corpus, probabilities: Any, *, selected: float = 0.01, negligible: float = 0.009
) -> Bool[np.ndarray, "samples K"]:
    """The tokens of each context that ``local_priority_graphs`` ignores."""
    contexts = PaddedContexts.of(corpus, np.zeros((corpus.vocabulary_size, 1)))
    weights = np.asarray(probabilities).reshape(contexts.ids.shape)
    mass = _mass_of_tokens(contexts, weights)
    return _in_context(contexts) & (mass > negligible) & (mass <= selected)


def _mass_of_tokens(
    contexts: PaddedContexts, weights: Float[np.ndarray, "samples length"]
) -> Float[np.ndarray, "samples K"]:
    mass = np.zeros((len(contexts), contexts.corpus.vocabulary_size))
    sample, place = np.nonzero(contexts.present)
    np.add.at(mass, (sample, contexts.ids[sample, place]), weights[sample, place])
    return mass


def _in_context(contexts: PaddedContexts) -> Bool[np.ndarray, "samples K"]:
    return _mass_of_tokens(contexts, np.ones(contexts.ids.shape)) > 0

"""The part of a corpus that the theory of conflicting labels applies to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.frequent_samples import frequent_samples
from attractor.corpora.structures._collocation import Collocation
from attractor.corpora.structures.graphs import QueryGraphs
from attractor.corpora.structures.occurrences import Occurrences
from attractor.corpora.structures.relations import relations
from attractor.support.errors import InvalidInputError


@dataclass(frozen=True, eq=False, repr=False)
class ConflictingPart:
    """Samples that prefer a token of their own context, and the graphs of what they prefer.

    Under each query an edge leads from the token that a sample prefers to every other token of its
    context; labels that conflict make cycles. Source: *Mechanics of Next Token Prediction with
    Self-Attention* (arXiv 2403.08081), token-priority graphs and their strongly connected
    components.

    Attributes:
        corpus: The whole corpus.
        preferred: The preferred token of each sample; -1 for the samples that are left out.
        explained: Whether the preferred token is the one that explains the label, rather than the
            label itself.
        graphs: The graphs of the samples that are left.
    """

    corpus: Corpus
    preferred: Int[np.ndarray, "samples"]
    explained: bool
    graphs: QueryGraphs

    @property
    def samples(self) -> Int[np.ndarray, "n"]:
        """The samples that prefer a token of their context."""
        return np.flatnonzero(self.preferred >= 0)

    @property
    def share(self) -> float:
        """Their share of the corpus, by weight."""
        weights = self.corpus.weights
        return float(weights[self.samples].sum() / weights.sum())

    @property
    def cyclic_share(self) -> float:
        """The share of relations that lie on cycles."""
        return float(self.graphs.cyclic.mean()) if len(self.graphs.edges) else 0.0

    @cached_property
    def components(self) -> Int[np.ndarray, "components"]:
        """Sizes of the components of several tokens, largest first."""
        sizes = np.sort(self.graphs.component_sizes())[::-1]
        return sizes[sizes > 1]

    @property
    def dimension(self) -> int:
        """The dimension of the cyclic subspace, for linearly independent embeddings."""
        return int((self.components - 1).sum())

    def for_training(self, work: int) -> tuple[Corpus, float]:
        """The distinct samples with their preferred token as label; the most frequent ones.

        Args:
            work: The most work of a step of training, as ``frequent_samples`` counts it.

        Returns:
            The samples, and their share of all that prefer a token of their context.
        """
        chosen = self.samples
        if not len(chosen):
            raise InvalidInputError(
                "corpus", "no sample prefers a token of its context", "Give longer contexts"
            )
        return frequent_samples(self.corpus, work, chosen, self.preferred)

    def summary(self) -> dict[str, Any]:
        """The part as plain values of JSON."""
        queries = np.unique(self.graphs.edges[self.graphs.cyclic, 0])
        return {
            "preferred": "explaining token" if self.explained else "label",
            "share": self.share,
            "relations": len(self.graphs.edges),
            "cyclic_relations": int(self.graphs.cyclic.sum()),
            "cyclic_share": self.cyclic_share,
            "queries_with_cycles": len(queries),
            "components": len(self.components),
            "largest_component": int(self.components.max(initial=0)),
            "cyclic_dimension": self.dimension,
        }


def conflicting_part(corpus: Corpus, collocation: Collocation) -> ConflictingPart:
    """The samples that prefer a token of their own context.

    A sample prefers the token that explains its label, or the label itself; of both readings the
    one is taken that more of the corpus allows.

    Args:
        corpus: The corpus.
        collocation: Its collocation.
    """
    explaining = collocation.explaining(corpus)
    there = Occurrences(corpus).count(corpus.labels, corpus.first, corpus.positions) > 0
    own = np.where(there, corpus.labels, -1)
    explained = bool(corpus.weights[explaining >= 0].sum() >= corpus.weights[own >= 0].sum())
    preferred = explaining if explained else own
    graphs = QueryGraphs(relations(corpus, preferred), corpus.vocabulary)
    return ConflictingPart(corpus, preferred, explained, graphs)

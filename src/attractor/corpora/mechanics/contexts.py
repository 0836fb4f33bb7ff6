"""The contexts of one corpus, embedded, and the components of their tokens in its graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.embedded.embeddings import check_embeddings
from attractor.corpora.structures.graphs import QueryGraphs


@dataclass(frozen=True, eq=False)
class PaddedContexts:
    """Contexts of one corpus side by side, padded at the end.

    Attributes:
        corpus: The corpus.
        embeddings: The vector of every token.
        ids: Token numbers; padding repeats the last.
        present: False on padding.
        weights: The weight of each sample; they add up to one.
    """

    corpus: Corpus
    embeddings: Float[np.ndarray, "K d"]
    ids: Int[np.ndarray, "samples length"]
    present: Bool[np.ndarray, "samples length"]
    weights: Float[np.ndarray, "samples"]

    @classmethod
    def of(cls, corpus: Corpus, embeddings: Float[np.ndarray, "K d"]) -> PaddedContexts:
        """The contexts of a corpus."""
        lengths = corpus.positions + 1 - corpus.first
        offsets = np.arange(lengths.max())
        present = offsets < lengths[:, None]
        places = np.minimum(corpus.first[:, None] + offsets, corpus.positions[:, None])
        weights = corpus.weights / corpus.weights.sum()
        return cls(corpus, embeddings, corpus.tokens[places], present, weights)

    @property
    def labels(self) -> Int[np.ndarray, "samples"]:
        """The token after each context."""
        return self.corpus.labels

    @property
    def keys(self) -> Float[np.ndarray, "samples length d"]:
        """The vectors of all tokens; zero on padding."""
        return np.where(self.present[..., None], self.embeddings[self.ids], 0.0)

    @property
    def queries(self) -> Float[np.ndarray, "samples d"]:
        """The vector of the last token of each context."""
        return self.embeddings[self.corpus.queries]

    @property
    def is_label(self) -> Bool[np.ndarray, "samples length"]:
        """True at tokens that equal the label."""
        return self.present & (self.ids == self.labels[:, None])

    def in_component(self, graphs: QueryGraphs) -> Bool[np.ndarray, "samples length"]:
        """True at tokens in the component of the label in the graph of the query.

        No token of the context has priority over them: where labels are tokens of their contexts,
        these are the ones that attention is predicted to keep.
        """
        query = np.broadcast_to(self.corpus.queries[:, None], self.ids.shape)
        own = graphs.component_of(query, self.ids)
        of_label = graphs.component_of(self.corpus.queries, self.labels)[:, None]
        return self.present & (self.is_label | ((own == of_label) & (own >= 0)))

    def scores(
        self, W: Float[np.ndarray, "*batch d d"]
    ) -> Float[np.ndarray, "*batch samples length"]:
        """Attention scores ``x_it^T W x_i,last``; minus infinity on padding."""
        scores = np.einsum("itc,...ci->...it", self.keys, W @ self.queries.T, optimize=True)
        return np.where(self.present, scores, -np.inf)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.ids)


def tables_of(corpora: Sequence[Any], embeddings: Any) -> Float[np.ndarray, "instances K d"]:
    """A table of token vectors for each corpus.

    Raises:
        InvalidInputError: If there is not a vector for every token.
    """
    size = max(corpus.vocabulary_size for corpus in corpora)
    vectors = check_embeddings(embeddings, size, instances=len(corpora))
    return np.broadcast_to(vectors, (len(corpora), *vectors.shape[-2:]))

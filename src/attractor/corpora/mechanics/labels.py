"""Corpora whose labels conflict, or do not: drawn at random, embedded, and as rows of attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attractor.attention import LinearHead, VocabularyHead
from attractor.corpora.corpus import Corpus
from attractor.corpora.embeddings import check_embeddings
from attractor.corpora.structures.orders import QueryGraphs, token_priority_graphs
from attractor.support.checks import check_count, check_flags, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import generator
from attractor.tokens import Tokens


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


def label_mass_tokens(
    corpora: Corpus | Sequence[Corpus], embeddings: Any
) -> tuple[Tokens, LinearHead]:
    """Rows whose prediction is the attention mass on tokens that equal the label.

    With the loss ``"negative_log"`` their training loss is

        L(W) = -(1 / n) sum_i log sum_{t: x_it = y_i} softmax(X_i W x_i,last)_t,

    that of *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081) with the
    identity head, which is convex in W. Values are one on tokens that equal the label and zero on
    others, labels are one, and the head adds up.

    Args:
        corpora: A corpus, or one for each instance; shorter contexts are padded under the mask,
            and corpora with fewer samples by rows of weight zero.
        embeddings: ``(K, d)``, or ``(instances, K, d)``: a vector for every token number.

    Raises:
        InvalidInputError: If embeddings do not fit, or a context lacks its label.
    """
    rows, several = _rows(corpora, embeddings)
    for context in rows:
        absent = np.flatnonzero(~context.is_label.any(1))
        if len(absent):
            raise InvalidInputError(
                "corpora",
                f"the context of sample {absent[0]} lacks its label",
                "Give samples whose label is a token of the context",
            )
    tokens = _tokens(rows, several, [np.ones(len(context)) for context in rows], values=True)
    return tokens, LinearHead([1.0])


def vocabulary_tokens(
    corpora: Corpus | Sequence[Corpus], embeddings: Any
) -> tuple[Tokens, VocabularyHead]:
    """Rows whose predictions are logits ``E o`` of every token, for the attention output o.

    The general head of *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081)
    with its rows the embeddings, for the loss ``"cross_entropy"`` or ``squared_miss``. The loss is
    not convex in W.

    Args:
        corpora: As for ``label_mass_tokens``.
        embeddings: Likewise.

    Raises:
        InvalidInputError: If embeddings do not fit.
    """
    rows, several = _rows(corpora, embeddings)
    tokens = _tokens(rows, several, [context.labels for context in rows], values=False)
    vectors = np.stack([context.embeddings for context in rows])
    return tokens, VocabularyHead(vectors if several else vectors[0])


def squared_miss(logits: Float[Array, "C"], label: Float[Array, ""]) -> Float[Array, ""]:
    """The loss ``(1 - softmax(f)_y)^2`` of logits f and the token number y.

    What is missing from one is added up from the other tokens. Source: the experiments on local
    convergence of *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081).
    """
    others = jnp.arange(logits.shape[-1]) != label.astype(jnp.int32)
    return jnp.where(others, jax.nn.softmax(logits), 0).sum() ** 2


def _rows(corpora: Any, embeddings: Any) -> tuple[list[PaddedContexts], bool]:
    listed, several = one_or_several("corpora", corpora, Corpus)
    vectors = tables_of(listed, embeddings)
    return [
        PaddedContexts.of(corpus, E) for corpus, E in zip(listed, vectors, strict=True)
    ], several


def _tokens(
    rows: list[PaddedContexts], several: bool, labels: list[np.ndarray], *, values: bool
) -> Tokens:
    """Rows of all instances, padded to one shape."""
    samples, length = (max(context.present.shape[axis] for context in rows) for axis in (0, 1))

    def stack(arrays: list[np.ndarray], fill: float, *, along: tuple[int, ...]) -> np.ndarray:
        wanted = (samples, length)
        padded = [
            np.pad(
                array,
                [(0, wanted[a] - array.shape[a] if a in along else 0) for a in range(array.ndim)],
                constant_values=fill,
            )
            for array in arrays
        ]
        return np.stack(padded) if several else padded[0]

    weights = stack([context.weights for context in rows], 0, along=(0,))
    mask = stack([context.present for context in rows], False, along=(0, 1))
    mask[..., 0] |= ~mask.any(-1)  # a row that only fills up sees one token
    return Tokens(
        stack([context.keys for context in rows], 0, along=(0, 1)),
        stack([context.queries for context in rows], 0, along=(0,)),
        stack(labels, 1, along=(0,)),
        mask,
        stack([context.is_label[..., None] for context in rows], 1, along=(0, 1)).astype(float)
        if values
        else None,
        weights=None if np.ptp(weights) == 0 else weights,
    )


_DRAWS = 20_000
"""Draws of one corpus before it is taken not to exist."""


MOST = 10**5
"""The most that can be drawn of anything."""


@dataclass(frozen=True, eq=False, repr=False)
class ConflictingCorpora:
    """Random corpora, each with embeddings of its own.

    Attributes:
        corpora: The corpora.
        embeddings: The vector of every token, of unit length.
        redraws: Number of rejected draws of each corpus, before it had a cycle, or none.
    """

    corpora: tuple[Corpus, ...]
    embeddings: Float[np.ndarray, "instances K d"]
    redraws: Int[np.ndarray, "instances"]

    def __repr__(self) -> str:
        return f"ConflictingCorpora({len(self.corpora)} corpora, {self.redraws.sum()} redraws)"


def conflicting_corpora(
    instances: int,
    *,
    cyclic: bool = True,
    seed: int = 0,
    vocabulary: int = 6,
    dimension: int = 8,
    length: int = 4,
    samples: int = 6,
) -> ConflictingCorpora:
    """Random corpora of which each has a cycle in some token-priority graph, or none has.

    Embeddings are Gaussian, scaled to unit length. A context has no token twice. A label is uniform
    over the vocabulary; where the context lacks it, a random token of the context takes its place.
    The samples of a corpus, not its embeddings, are drawn anew until it has a cycle, or none.
    Source: the experiments of *Mechanics of Next Token Prediction with Self-Attention* (arXiv
    2403.08081).

    Args:
        instances: Number of corpora.
        cyclic: Whether each is to have a cycle, or to have none.
        seed: Names the random numbers, together with the number of the corpus.
        vocabulary: Number K of tokens.
        dimension: Dimension d of embeddings.
        length: Number of tokens in a context.
        samples: Number of samples in a corpus.

    Raises:
        InvalidInputError: If a size cannot be used, or no such corpus is found.
    """
    check_flags(cyclic=cyclic)
    sizes = {
        "instances": (instances, 1),
        "vocabulary": (vocabulary, 2),
        "dimension": (dimension, 1),
        "length": (length, 2),
        "samples": (samples, 1),
    }
    for name, (size, least) in sizes.items():
        check_count(name, size, least, MOST)
    if length > vocabulary:
        raise InvalidInputError(
            "length",
            f"{length} different tokens cannot be drawn from {vocabulary}",
            f"Give at most {vocabulary}",
        )
    names = tuple(map(str, range(vocabulary)))

    def draw(draws: np.random.Generator) -> tuple[Corpus, Float[np.ndarray, "K d"], int]:
        embeddings = draws.normal(size=(vocabulary, dimension))
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        for redraws in range(_DRAWS):
            contexts = draws.random((samples, vocabulary)).argsort(1)[:, :length]
            labels = draws.integers(vocabulary, size=samples)
            absent = (contexts != labels[:, None]).all(1)
            instead = contexts[np.arange(samples), draws.integers(length, size=samples)]
            labels = np.where(absent, instead, labels)
            corpus = Corpus.from_samples(contexts.tolist(), labels.tolist(), names)
            if token_priority_graphs(corpus).acyclic != cyclic:
                return corpus, embeddings, redraws
        raise InvalidInputError(
            "samples",
            f"{_DRAWS:,} draws gave no corpus {'with' if cyclic else 'without'} a cycle",
            f"Give {'more' if cyclic else 'fewer'} samples",
        )

    purpose = "conflicting corpora"
    drawn = [draw(generator(seed, i, purpose=purpose)) for i in range(instances)]
    corpora, embeddings, redraws = zip(*drawn, strict=True)
    return ConflictingCorpora(corpora, np.stack(embeddings), np.array(redraws))

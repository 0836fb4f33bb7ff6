"""``CorpusCase``: the corpus that a claim on next-token prediction is examined on."""

from __future__ import annotations

import dataclasses
import os
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from attractor.errors import InvalidInputError
from attractor.files import LoadedCorpus, save_corpus
from attractor.next_token import Corpus, CorpusStructure, corpus_structure
from attractor.next_token.embeddings import check_embeddings
from attractor.next_token.samples import Samples, distinct_samples
from attractor.papers.data_set import DataKind, DataSet
from attractor.papers.smaller_corpus import smaller_corpus
from attractor.provenance import data_hash

if TYPE_CHECKING:
    from attractor.papers._examine import Finding
    from attractor.papers.trial import Trial


@dataclasses.dataclass(frozen=True, eq=False)
class CorpusCase(DataSet):
    """A corpus with everything a statement may speak of; what a corpus file holds.

    Attributes:
        corpus: The sentences.
        embeddings: The vector of every token; None for the unit vectors.
        initial_scales: Standard deviations of the Gaussian entries that the feed-forward layer and
            attention start with; a corpus file says nothing of them, and that is zero.
        about: What the data are, in words.
    """

    kind: ClassVar[DataKind] = DataKind.CORPUS
    corpus: Corpus
    embeddings: Float[np.ndarray, "V d"] | None = None
    initial_scales: tuple[float, float] = (0.0, 0.0)
    about: str = "corpus"

    @classmethod
    def from_loaded(cls, loaded: LoadedCorpus, name: str) -> CorpusCase:
        """The case in what a corpus file holds.

        Args:
            loaded: What it holds.
            name: The name of the file.
        """
        return cls(loaded.corpus, loaded.embeddings, about=name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the case as a corpus file.

        Raises:
            InvalidInputError: If training starts elsewhere than at zero: a corpus file cannot say
                so.
        """
        if any(self.initial_scales):
            raise InvalidInputError(
                "initial_scales",
                "a corpus file does not say where training starts",
                "Save cases that start at zero",
            )
        save_corpus(path, self.corpus, self.embeddings)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a case holds, by name, for hashing."""
        corpus = self.corpus
        found = {
            "corpus": corpus.tokens,
            "starts": corpus.starts,
            "counts": corpus.counts,
            "vocabulary": np.array(corpus.vocabulary, dtype=np.str_),
            "context length": np.array(corpus.context_length or 0),
            "every prefix": np.array(corpus.every_prefix),
            "initial scales": np.array(self.initial_scales, dtype=np.float64),
        }
        return found if self.embeddings is None else found | {"embeddings": self.embeddings}

    @property
    def hash(self) -> str:
        """SHA-256 of the corpus and what else the case holds."""
        return data_hash(None, None, **self.arrays())

    @property
    def size(self) -> int:
        """Tokens in all sentences."""
        return len(self.corpus.tokens)

    @property
    def size_in_words(self) -> str:
        """Sentences, tokens and vocabulary."""
        corpus = self.corpus
        return (
            f"{corpus.sentences:,} sentences, {len(corpus.tokens):,} tokens, "
            f"vocabulary of {corpus.vocabulary_size:,}"
        )

    def smaller(self, trial: Trial, first: Finding) -> CorpusCase:
        """The case less the sentences, words and tokens that a counterexample does not need."""
        return smaller_corpus(self, trial)

    @cached_property
    def structure(self) -> CorpusStructure:
        """Collocation, orders, and what the theory assumes."""
        return corpus_structure(self.corpus)

    @cached_property
    def samples(self) -> Samples:
        """The distinct samples."""
        return distinct_samples(self.corpus)

    @cached_property
    def table(self) -> Float[np.ndarray, "V d"]:
        """The vector of every token."""
        return check_embeddings(self.embeddings, self.corpus.vocabulary_size)

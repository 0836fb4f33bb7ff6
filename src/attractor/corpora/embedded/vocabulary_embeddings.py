"""The embeddings of a vocabulary, and whether they are orthonormal, as the theory assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.corpora.corpus import Corpus
from attractor.corpora.embedded.embeddings import gaussian, one_hot, orthonormality_error
from attractor.support.errors import InvalidInputError

_ROUNDING = 1e-10
_LARGEST_COMPARED = 5000


@dataclass(frozen=True, eq=False)
class VocabularyEmbeddings:
    """Embeddings by the names of tokens, so that parts of a corpus find their own.

    Attributes:
        name: Their kind: ``"one-hot"``, ``"gaussian:D"`` or ``"given"``.
        vocabulary: The tokens.
        table: A vector for each; None for unit vectors, which are not written out.
    """

    name: str
    vocabulary: tuple[str, ...]
    table: Float[np.ndarray, "V d"] | None

    @classmethod
    def named(cls, name: str, vocabulary: tuple[str, ...], seed: int = 0) -> VocabularyEmbeddings:
        """Embeddings by name: ``one-hot``, or ``gaussian:D``: random unit vectors.

        Raises:
            InvalidInputError: If there are none of that name.
        """
        dimension = parse_embedding(name)
        table = None if dimension is None else gaussian(len(vocabulary), dimension, seed)
        return cls(name, vocabulary, table)

    @property
    def dimension(self) -> int:
        """Dimension d of the vectors."""
        return len(self.vocabulary) if self.table is None else self.table.shape[1]

    def of(self, corpus: Corpus) -> Float[np.ndarray, "V d"]:
        """The vectors of the tokens of a corpus, which are some of these."""
        if self.table is None:
            return one_hot(corpus.vocabulary_size)
        place = {name: number for number, name in enumerate(self.vocabulary)}
        return self.table[[place[name] for name in corpus.vocabulary]]

    def error(self) -> float | None:
        """The largest entry of ``|E E^T - I|``; None where it was not computed."""
        if self.table is None:
            return 0.0
        if len(self.table) > _LARGEST_COMPARED:
            return None
        return orthonormality_error(self.table)

    def sentence(self) -> str:
        """A sentence on whether they are orthonormal, as theory assumes."""
        size, dimension = len(self.vocabulary), self.dimension
        if self.table is None:
            return f"Embeddings: one-hot, {dimension:,} dimensions; orthonormal, as assumed."
        named = f"Embeddings: {self.name}, {dimension:,} dimensions"
        if size > dimension:
            return (
                f"{named}. The vocabulary of {size:,} is larger, so that they cannot be "
                "orthonormal, as the theory assumes; every problem is solved with the embeddings "
                "given."
            )
        error = self.error()
        if error is not None and error < _ROUNDING:
            return f"{named}; orthonormal, as assumed."
        return (
            f"{named}; they are not orthonormal, as the theory assumes: two of them have a "
            f"product of {error:.2g} too much or too little. Every problem is solved with them."
            if error is not None
            else f"{named}; whether they are orthonormal was not computed."
        )

    def summary(self) -> dict[str, Any]:
        """The embeddings as plain values of JSON."""
        error = self.error() if len(self.vocabulary) <= self.dimension else None
        return {
            "name": self.name,
            "dimension": self.dimension,
            "orthonormal": error is not None and error < _ROUNDING,
        }


def parse_embedding(name: str) -> int | None:
    """The dimension of ``gaussian:D``; None for ``one-hot``.

    Raises:
        InvalidInputError: If it is neither.
    """
    if name == "one-hot":
        return None
    kind, _, number = name.partition(":")
    if kind != "gaussian" or not number.isdecimal() or not int(number):
        raise InvalidInputError(
            "embedding", f"{name!r} is not known", "Give one-hot, or gaussian:D such as gaussian:64"
        )
    return int(number)

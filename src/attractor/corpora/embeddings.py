"""Embeddings of a vocabulary, and whether they are orthonormal, as the theory assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.corpora.corpus import Corpus
from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_shaped
from attractor.support.randomness import generator

_ORTHONORMAL = 1e-10
_MOST = 2**14
"""Tokens or dimensions; a square of them has 2 GB."""


def one_hot(size: int) -> Float[np.ndarray, "V V"]:
    """The unit vectors: orthonormal embeddings of a vocabulary of V tokens."""
    return np.eye(_counted("size", size))


def gaussian(size: int, dimension: int, seed: int = 0) -> Float[np.ndarray, "V d"]:
    """Random embeddings: independent Gaussian vectors of unit length.

    Args:
        size: Number V of tokens.
        dimension: Dimension d; may be smaller than V.
        seed: Names what is random.
    """
    size, dimension = _counted("size", size), _counted("dimension", dimension)
    drawn = generator(seed, purpose="embeddings").standard_normal((size, dimension))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def _counted(argument: str, value: int) -> int:
    """A number of tokens or of dimensions, whose square can be an array."""
    return check_count(argument, value, 1, _MOST)


def check_embeddings(
    embeddings: Any, size: int, *, instances: int | None = None
) -> Float[np.ndarray, "*instances V d"]:
    """The embeddings of a vocabulary; the unit vectors if None.

    Raises:
        InvalidInputError: If there is not one vector for every token.
    """
    if embeddings is None:
        return one_hot(size)
    array = as_float64("embeddings", embeddings)
    leads = {()} if instances is None else {(), (instances,)}
    if array.ndim < 2 or not array.size or array.shape[:-2] not in leads or array.shape[-2] != size:
        raise InvalidInputError(
            "embeddings",
            f"the shape is {array.shape}",
            f"Give ({size}, d): a vector for every token of the vocabulary"
            + ("" if instances is None else f", or ({instances}, {size}, d)"),
        )
    if not array.any(-1).all():
        raise InvalidInputError(
            "embeddings", "a token has the zero vector", "Give every token a vector of its own"
        )
    return array


def orthonormality_error(embeddings: Float[np.ndarray, "*instances V d"]) -> float:
    """The distance of embeddings from orthonormal: the largest entry of ``|E E^T - I|``.

    The theory of next-token prediction assumes that it is zero, which needs as many dimensions as
    there are tokens (*Non-asymptotic Convergence of Training Transformers for Next-token
    Prediction*, arXiv 2409.17335).
    """
    embeddings = as_shaped("embeddings", embeddings, ("...", "V", "d"))
    with np.errstate(over="ignore", invalid="ignore"):
        products = embeddings @ np.swapaxes(embeddings, -1, -2)
        error = np.abs(products - np.eye(embeddings.shape[-2]))
    return float(np.nan_to_num(error, nan=np.inf, posinf=np.inf).max())


def are_orthonormal(embeddings: Float[np.ndarray, "*instances V d"]) -> bool:
    """Whether embeddings are orthonormal to rounding."""
    return orthonormality_error(embeddings) < _ORTHONORMAL


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

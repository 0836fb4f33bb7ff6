"""Corpora as rows of self-attention whose query is the last token of each context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention import LinearHead, VocabularyHead
from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics.contexts import PaddedContexts, tables_of
from attractor.support.checks import one_or_several
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


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

"""Sentences that a corpus lacks, and their predictions: by theory and by trained weights."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax

from attractor.checks import check_count, check_kinds
from attractor.errors import InvalidInputError
from attractor.next_token._collocation import Collocation
from attractor.next_token.orders import PartialOrders, TokenClass
from attractor.precision import LARGEST, as_integers, as_shaped
from attractor.randomness import generator

MOST_DRAWN = 10**5
"""The most sentences, or tokens in one, that are drawn."""


class UnseenKind(enum.Enum):
    """The tokens of an unseen sentence beside its query."""

    OPTIMAL = "an optimal token among others"
    NON_COMPARABLE = "one non-comparable token, else non-optimal ones"
    TIE = "two non-comparable tokens, else non-optimal ones"
    FREE_QUERY = "a query without relations"


class Unseen(NamedTuple):
    """Sentences that no sample has, with the token that the theory predicts.

    Attributes:
        contexts: Token numbers, ``(n, T)``, padded at the end with -1; the last is the query.
        predicted: The next token predicted, the collocation of the token that attention turns to;
            -1 where the theory predicts none.
        chosen: The token that attention turns to; -1 where there is none.
    """

    contexts: Int[np.ndarray, "n T"]
    predicted: Int[np.ndarray, "n"]
    chosen: Int[np.ndarray, "n"]


def draw_unseen(
    orders: PartialOrders,
    collocation: Collocation,
    kind: UnseenKind,
    *,
    count: int = 100,
    length: int | None = None,
    seed: int = 0,
) -> Unseen:
    """Draws sentences that no sample of a realizable corpus can have.

    A query is drawn among those that are non-optimal under themselves, and so never attend to
    themselves alone. An optimal token comes with at least one non-comparable one, which no sample
    has; a non-comparable token with non-optimal ones is the case of the generalization theorem:
    attention turns to it. Source: *Non-asymptotic Convergence of Training
    Transformers for Next-token Prediction* (arXiv 2409.17335), generalization to unseen sentences.

    Args:
        orders: The partial orders of the corpus.
        collocation: Its collocation.
        kind: The tokens of the sentences.
        count: Number of sentences.
        length: Number of tokens in each, 3 or more, drawn with repetition; it takes longer
            training to tell one token from many others. Default: every non-optimal token of the
            query once, as in the samples.
        seed: Names what is random.

    Returns:
        The sentences; none if no query allows the kind.

    Raises:
        InvalidInputError: If the length is below 3.
    """
    check_kinds(
        orders=(orders, PartialOrders),
        collocation=(collocation, Collocation),
        kind=(kind, UnseenKind),
    )
    count = check_count("count", count, 0, MOST_DRAWN)
    if length is not None:
        length = check_count("length", length, 3, MOST_DRAWN)
    random = generator(seed, length or 0, purpose=f"unseen sentences: {kind.value}")
    known = np.flatnonzero(collocation.next_token >= 0)
    sides = {query: _sides(orders, query, known) for query in known.tolist()}
    queries = [query for query, side in sides.items() if _allows(kind, query, side)]
    contexts, chosen = [], []
    for _ in range(count if queries else 0):
        query = int(random.choice(queries))
        token, words = _words(kind, sides[query], random)
        if length is None:
            words += [word for word in sides[query][1].tolist() if word != query]
        else:
            words += _filling(kind, token, sides[query], length - 1 - len(words), random)
        contexts.append([*random.permutation(words).tolist(), query])
        chosen.append(token)
    attended = np.array(chosen, dtype=np.int64)
    padded = np.full((len(contexts), max(map(len, contexts), default=0)), -1)
    for row, context in zip(padded, contexts, strict=True):
        row[: len(context)] = context
    return Unseen(
        padded,
        np.where(attended >= 0, collocation.next_token[attended], -1),
        attended,
    )


def log_predictions(
    contexts: Int[np.ndarray, "n T"],
    table: Float[np.ndarray, "V d"],
    feed_forward: Float[np.ndarray, "V d"],
    attention: Float[np.ndarray, "d d"],
) -> Float[np.ndarray, "n V"]:
    """Logarithms of the probabilities of every next token.

    Args:
        contexts: Token numbers, -1 where a context is shorter than others.
        table: Embeddings.
        feed_forward: ``W_ov``.
        attention: ``W_kq``.
    """
    table = as_shaped("table", table, ("V", "d"), largest=LARGEST)
    tokens, d = table.shape
    contexts = as_integers("contexts", contexts, ("n", "T"), least=-1, most=tokens - 1)
    feed_forward = as_shaped("feed_forward", feed_forward, (tokens, d), largest=LARGEST)
    attention = as_shaped("attention", attention, (d, d), largest=LARGEST)
    there = contexts >= 0
    if not there[:, 0].all():
        raise InvalidInputError("contexts", "one has no token", "Give padding at the end alone")
    keys = table[np.maximum(contexts, 0)]
    last = np.take_along_axis(contexts, there.sum(-1)[:, None] - 1, axis=1)[:, 0]
    scores = np.einsum("ntd,de,ne->nt", keys, attention, table[last], optimize=True)
    weights = np.exp(log_softmax(np.where(there, scores, -np.inf), axis=-1))
    outputs = np.einsum("nt,ntd->nd", weights, keys)
    return np.asarray(log_softmax(outputs @ feed_forward.T, axis=-1))


Sides = tuple[Int[np.ndarray, "k"], Int[np.ndarray, "m"], Int[np.ndarray, "rest"]]


def _sides(orders: PartialOrders, query: int, known: Int[np.ndarray, "n"]) -> Sides:
    """Optimal, non-optimal and non-comparable tokens of a query, the query in none of the last."""
    classes = orders.classes(query)
    free = np.intersect1d(classes[TokenClass.NON_COMPARABLE], known)
    return (
        np.array(classes[TokenClass.OPTIMAL], dtype=np.int64),
        np.array(classes[TokenClass.NON_OPTIMAL], dtype=np.int64),
        free[free != query],
    )


def _allows(kind: UnseenKind, query: int, sides: Sides) -> bool:
    best, worse, free = sides
    if kind is UnseenKind.FREE_QUERY:
        return not len(best) and not len(worse) and len(free) > 0
    return query in worse and len(free) >= (2 if kind is UnseenKind.TIE else 1)


def _words(kind: UnseenKind, sides: Sides, random: np.random.Generator) -> tuple[int, list[int]]:
    """The token that attention turns to, and the tokens that make the sentence of its kind."""
    best, _, free = sides
    some = int(random.choice(free))
    if kind is UnseenKind.OPTIMAL:
        token = int(random.choice(best))
        return token, [token, some]
    if kind is UnseenKind.TIE:
        return -1, random.choice(free, 2, replace=False).tolist()
    return (-1 if kind is UnseenKind.FREE_QUERY else some), [some]


def _filling(
    kind: UnseenKind, token: int, sides: Sides, count: int, random: np.random.Generator
) -> list[int]:
    """More tokens that leave the sentence of its kind."""
    _, worse, free = sides
    more = {
        UnseenKind.OPTIMAL: [*worse, *free],
        UnseenKind.NON_COMPARABLE: [*worse, token],
        UnseenKind.TIE: [*worse],
        UnseenKind.FREE_QUERY: [*free],
    }[kind]
    return random.choice(more, count).tolist()

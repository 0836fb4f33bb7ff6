"""The margin problems to whose solutions the two layers of a next-token predictor converge."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.corpora.embeddings import check_embeddings
from attractor.corpora.structures.occurrences import Collocation
from attractor.corpora.structures.orders import PartialOrders
from attractor.margin import MarginProblem
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError


def feed_forward_problem(collocation: Collocation, embeddings: Any = None) -> MarginProblem:
    """The problem of the feed-forward layer, ``W`` of shape ``(V, d)``.

        (e_n(x) - e_v)^T W x >= 1    for every token x and every v other than n(x)

    Tokens without a collocation add no constraint. Source: *Non-asymptotic Convergence of Training
    Transformers for Next-token Prediction* (arXiv 2409.17335), max-margin problem of the
    feed-forward layer.

    Args:
        collocation: The collocation.
        embeddings: ``(V, d)``; default: the unit vectors.

    Raises:
        InvalidInputError: If the embeddings do not fit, or no token has a collocation.
    """
    check_kinds(collocation=(collocation, Collocation))
    size = len(collocation.next_token)
    table = check_embeddings(embeddings, size)
    token = np.flatnonzero(collocation.next_token >= 0)
    if not len(token):
        raise InvalidInputError("collocation", "no token has one", "Give one-token contexts")
    label = collocation.next_token[token]
    token, other = np.repeat(token, size), np.tile(np.arange(size), len(token))
    label = np.repeat(label, size)
    wrong = other != label
    unit = np.eye(size)
    return MarginProblem(
        unit[label[wrong]] - unit[other[wrong]], table[token[wrong]], matrix="feed_forward"
    )


def attention_problem(orders: PartialOrders, embeddings: Any = None) -> MarginProblem:
    """The problem of the attention layer, ``W`` of shape ``(d, d)``.

        (x - x')^T W q >= 1    wherever x comes before x' under the query q

    With orthonormal embeddings it falls apart into one problem for each query. Source:
    *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335), max-margin problem of the attention layer.

    Args:
        orders: The partial orders.
        embeddings: ``(V, d)``; default: the unit vectors.

    Raises:
        InvalidInputError: If the embeddings do not fit, or there are no relations.
    """
    check_kinds(orders=(orders, PartialOrders))
    table = check_embeddings(embeddings, orders.size)
    if not len(orders.edges):
        raise InvalidInputError(
            "orders",
            "they have no relations, so that attention has nothing to choose",
            "Give contexts of two different tokens or more",
        )
    query, before, after = orders.edges.T
    return MarginProblem(table[before] - table[after], table[query], matrix="attention")


def complete_orders_solution(orders: PartialOrders) -> Float[np.ndarray, "V V"]:
    """The published closed form of the attention problem for orthonormal embeddings.

    With k optimal and m non-optimal tokens under a query, the column of the query is ``m / (k+m)``
    on the optimal, ``-k / (k+m)`` on the non-optimal and zero on all other tokens. It solves the
    problem where every optimal token comes before every non-optimal one; where relations are
    missing it may not, and then the problem has to be solved. Source: *Non-asymptotic Convergence
    of Training Transformers for Next-token Prediction* (arXiv 2409.17335), the max-margin solution.

    Raises:
        InvalidInputError: If a token is confused.
    """
    check_kinds(orders=(orders, PartialOrders))
    if len(orders.confused):
        raise InvalidInputError(
            "orders", "a token is confused", "Give the orders of a realizable corpus"
        )
    W = np.zeros((orders.size, orders.size))
    optimal, other = (
        np.bincount(pairs[:, 0], minlength=orders.size)
        for pairs in (orders.optimal, orders.non_optimal)
    )
    total = np.maximum(optimal + other, 1)
    for pairs, share in ((orders.optimal, other / total), (orders.non_optimal, -optimal / total)):
        W[pairs[:, 1], pairs[:, 0]] = share[pairs[:, 0]]
    return W

"""Random data of the kind that the statements are illustrated with, one data set a case."""

from __future__ import annotations

from typing import Any

import numpy as np

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.files.case import Case
from attractor.tokens import Tokens

SMALL = (3, 4, 4)
"""Sequences, tokens and dimension of small data sets."""


def random_unit_tokens(
    seed: int, size: tuple[int, int, int] = SMALL, parameterization: str = "W", **other: Any
) -> Case:
    """The data set of a seed: random unit tokens, queries and head, and random labels.

    Args:
        seed: Names the data set.
        size: Sequences n, tokens T and dimension d.
        parameterization: What is trained.
        **other: The other attributes of the case.
    """
    drawn, heads = unit_tokens(*size, seeds=[seed])
    head = LinearHead(np.asarray(heads.weight)[0])
    words = "random unit tokens ({}, {}, {}), seed {}".format(*size, seed)
    return Case(drawn[0], head, parameterization, about=words, **other)


def first_token_queries(seed: int, size: tuple[int, int, int] = SMALL) -> Case:
    """The same keys, labels and head, with the first token of each sequence as its query."""
    case = random_unit_tokens(seed, size)
    labels = case.tokens.labels
    assert labels is not None
    tokens = Tokens.self_attention(case.tokens.keys, labels[:, 0])
    return case.replace(tokens=tokens, about=f"{case.about}, first tokens as queries")


def equal_other_scores(
    seed: int, size: tuple[int, int, int] = SMALL, parameterization: str = "W", **other: Any
) -> Case:
    """Random unit tokens and queries; the first token has score 1, all others the same below it."""
    random, (n, length, _) = np.random.default_rng([seed, 23]), size
    tokens = random_unit_tokens(seed, size).tokens
    scores = np.where(np.arange(length) == 0, 1.0, random.uniform(-1.0, 0.5, (n, 1)))
    return Case.from_scores(
        tokens.keys,
        scores,
        queries=tokens.queries,
        parameterization=parameterization,
        about="random unit tokens ({}, {}, {}) of two scores, seed {}".format(*size, seed),
        **other,
    )


def tied_scores(parameterization: str = "W") -> Case:
    """One sequence whose first two tokens share the highest score."""
    return Case.from_scores(
        [[[1.0, 0], [0, 1], [0, 0]]],
        [[1.0, 1, 0]],
        queries=[[1.0, 0]],
        parameterization=parameterization,
    )


def enclosed_token(parameterization: str = "W") -> Case:
    """One sequence whose best token lies between the two others, so that it cannot win."""
    return Case.from_scores(
        [[[0.5, 0], [1, 0], [0, 0]]],
        [[1.0, 0, 0]],
        queries=[[1.0, 0]],
        parameterization=parameterization,
    )


def trapped(start: float = 8.0) -> Case:
    """Two sequences of two tokens with one query, that keep a wrong token for ever from afar.

    Each has one token besides the best, which is a support token. From ``diag(8, 0)`` the second
    sequence stays at its worse token, and the direction is that of ``diag(1, 0)``.

    Args:
        start: The first entry of the matrix that training starts at; the others are zero.
    """
    return Case.from_scores(
        [[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 0.1], [0.0, 0.0]]],
        [[1.0, 0.0], [1.0, 0.0]],
        queries=[[1.0, 0.0], [1.0, 0.0]],
        parameterization="W",
        initial=np.diag([start, 0.0]),
        about=f"trapped sequence from diag({start:g}, 0)",
    )

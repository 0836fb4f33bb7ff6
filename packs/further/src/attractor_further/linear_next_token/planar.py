"""Three contexts in the plane with soft labels, which can be drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attractor import InvalidInputError
from attractor.corpora.linear import EmbeddedContexts, separability
from attractor.papers.data import generator

PLANAR_SUPPORTS = ((1, 2, 3), (0, 1, 4), (0, 3, 4))
"""Tokens, from 0, that follow each of three contexts.

One token follows the first context alone; the four others follow two contexts each, and two of
them the same two. But for the order of contexts and tokens there is no other way to do it.
"""
_PLANAR_TOKENS = 5
_MOST_DRAWS = 10_000


class PlanarContexts(NamedTuple):
    """Three contexts in the plane, and how they were found.

    Attributes:
        contexts: The contexts, which are separable.
        rejected: Number of draws before it that were not.
    """

    contexts: EmbeddedContexts
    rejected: int


def planar_contexts(*, seed: int = 0) -> PlanarContexts:
    """Draws three contexts in the plane with five tokens, until they are separable.

    Each context is followed by three tokens (``PLANAR_SUPPORTS``). Embeddings are standard normal
    and probabilities uniform on the simplex of each support. There are more contexts than
    dimensions, so that not every draw is separable; those that are not are counted.

    Args:
        seed: Names the draw.

    Raises:
        InvalidInputError: If no draw is separable.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), experiment in two dimensions; which tokens follow which contexts is in its picture.
    """
    support = np.zeros((len(PLANAR_SUPPORTS), _PLANAR_TOKENS), dtype=bool)
    for context, tokens in enumerate(PLANAR_SUPPORTS):
        support[context, list(tokens)] = True
    for draw in range(_MOST_DRAWS):
        random = generator(seed, draw, purpose="contexts in the plane")
        embeddings = random.normal(size=(len(support), 2))
        probabilities = np.zeros(support.shape)
        for row, tokens in zip(probabilities, support, strict=True):
            row[tokens] = random.dirichlet(np.ones(tokens.sum()))
        contexts = EmbeddedContexts(embeddings, probabilities)
        if separability(contexts).separable:
            return PlanarContexts(contexts, draw)
    raise InvalidInputError(
        "seed", f"none of {_MOST_DRAWS:,} draws was separable", "Give another seed"
    )

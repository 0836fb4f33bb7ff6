"""Random contexts with soft labels, and three contexts in the plane that can be drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attractor.corpora.linear._separability import separability
from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed, generator

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


def random_contexts(
    instances: int = 1,
    *,
    contexts: int = 50,
    dimension: int = 60,
    classes: int = 10,
    support: int = 6,
    seed: int = 0,
) -> EmbeddedContexts:
    """Draws contexts with random supports; by default those of the overparameterized experiment.

    Embeddings are standard normal, ``h_j ~ N(0, I)``, supports are drawn without replacement, and
    probabilities are uniform on the simplex of each support (Dirichlet(1)): six tokens have a mean
    entropy of 1.45. All contexts are as frequent. With ``dimension >= contexts`` they are almost
    surely compatible and separable. The source leaves the scale of the embeddings and the law of
    the probabilities open; these agree with its entropy and its curves.

    Args:
        instances: Number of data sets.
        contexts: Number m of contexts of each.
        dimension: Dimension d of the embeddings.
        classes: Number V of tokens.
        support: Number of them that follow each context.
        seed: Names the draw; instance i is the same whatever ``instances`` is.

    Raises:
        InvalidInputError: If a number is not a count, or supports are larger than the vocabulary.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), experiments with overparameterized decoders.
    """
    instances = check_count("instances", instances)
    m, d = check_count("contexts", contexts), check_count("dimension", dimension)
    V = check_count("classes", classes, least=2)
    size = check_count("support", support)
    if size > V:
        raise InvalidInputError(
            "support", f"{size} tokens of {V} cannot be chosen", f"Give at most {V}"
        )
    embeddings, probabilities = np.zeros((instances, m, d)), np.zeros((instances, m, V))
    for i in range(instances):
        random = generator(seed, i, m, d, V, size, purpose="contexts")
        embeddings[i] = random.normal(size=(m, d))
        chosen = random.permuted(np.tile(np.arange(V), (m, 1)), axis=1)[:, :size]
        np.put_along_axis(probabilities[i], chosen, random.dirichlet(np.ones(size), m), axis=1)
    return EmbeddedContexts(embeddings, probabilities)


def planar_contexts(*, seed: int = 0) -> PlanarContexts:
    """Draws three contexts in the plane with five tokens, until they are separable.

    Each context is followed by three tokens (``PLANAR_SUPPORTS``). Embeddings are standard normal
    and probabilities uniform on the simplex of each support. There are more contexts than
    dimensions, so that not every draw is separable; those that are not are counted.

    Args:
        seed: Names the draw.

    Raises:
        InvalidInputError: If the seed is none.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), experiment in two dimensions; which tokens follow which contexts is in its picture.
    """
    seed = check_seed("seed", seed)
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

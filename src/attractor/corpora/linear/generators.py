"""Random contexts with soft labels."""

from __future__ import annotations

import numpy as np

from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import generator


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

"""The graphs of what attention settled on, for heads and losses that are not convex."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.checks import check_kinds, check_number
from attractor.errors import InvalidInputError
from attractor.next_token.corpus import Corpus
from attractor.next_token.graphs import QueryGraphs
from attractor.next_token.mechanics.contexts import Contexts
from attractor.precision import as_float64


def local_priority_graphs(
    corpus: Corpus,
    probabilities: Any,
    *,
    selected: float = 0.01,
    negligible: float = 0.009,
) -> QueryGraphs:
    """Pseudo token-priority graphs: those of the tokens that keep attention mass.

    In the graph of its query, every token that a sample keeps has an edge to every other token of
    the context, so that the tokens a sample keeps lie on a cycle. The solution of their
    ``graph_problem`` is where training is predicted to converge locally, whatever the head.
    Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081), local
    convergence of gradient descent.

    Args:
        corpus: The corpus.
        probabilities: Final softmax weights, ``(samples, length)`` or ``(samples, 1, length)``;
            those of a token that stands in a context several times are added up.
        selected: A token is kept whose mass is larger.
        negligible: A token is left behind whose mass is at most this; one between the two is
            ignored, as the published experiment does.

    Raises:
        InvalidInputError: If the shape is different, a context is left without a token that is
            kept, or the thresholds are not in order.
    """
    check_kinds(corpus=(corpus, Corpus))
    selected = check_number("selected", selected, least=0.0, below=1.0, example=0.01)
    negligible = check_number("negligible", negligible, least=0.0, below=1.0, example=0.009)
    if negligible > selected:
        raise InvalidInputError(
            "selected",
            f"it is {selected}, with {negligible} negligible",
            "Give 0 <= negligible <= selected < 1",
        )
    contexts = Contexts.of(corpus, np.zeros((corpus.vocabulary_size, 1)))
    weights = as_float64("probabilities", probabilities)
    if weights.ndim == 3 and weights.shape[1] == 1:
        weights = weights[:, 0]
    if weights.shape != contexts.ids.shape:
        raise InvalidInputError(
            "probabilities", f"the shape is {weights.shape}", f"Give {contexts.ids.shape}"
        )
    mass = _mass_of_tokens(contexts, weights)
    kept, left = mass > selected, mass <= negligible
    if not kept.any(1).all():
        raise InvalidInputError(
            "selected",
            f"no token of sample {np.flatnonzero(~kept.any(1))[0]} has more mass than {selected}",
            "Give a smaller one",
        )
    there = _in_context(contexts)
    pairs = kept[:, :, None] & (there & (kept | left))[:, None, :]
    sample, better, other = np.nonzero(pairs & ~np.eye(corpus.vocabulary_size, dtype=bool))
    edges = np.stack([corpus.queries[sample], better, other], axis=1)
    return QueryGraphs(np.unique(edges, axis=0), corpus.vocabulary)


def ambiguous_tokens(
    corpus: Corpus, probabilities: Any, *, selected: float = 0.01, negligible: float = 0.009
) -> Bool[np.ndarray, "samples K"]:
    """The tokens of each context that ``local_priority_graphs`` ignores."""
    contexts = Contexts.of(corpus, np.zeros((corpus.vocabulary_size, 1)))
    weights = np.asarray(probabilities).reshape(contexts.ids.shape)
    mass = _mass_of_tokens(contexts, weights)
    return _in_context(contexts) & (mass > negligible) & (mass <= selected)


def _mass_of_tokens(
    contexts: Contexts, weights: Float[np.ndarray, "samples length"]
) -> Float[np.ndarray, "samples K"]:
    mass = np.zeros((len(contexts), contexts.corpus.vocabulary_size))
    sample, place = np.nonzero(contexts.present)
    np.add.at(mass, (sample, contexts.ids[sample, place]), weights[sample, place])
    return mass


def _in_context(contexts: Contexts) -> Bool[np.ndarray, "samples K"]:
    there = np.zeros((len(contexts), contexts.corpus.vocabulary_size), dtype=bool)
    sample, place = np.nonzero(contexts.present)
    there[sample, contexts.ids[sample, place]] = True
    return there

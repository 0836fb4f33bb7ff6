"""The margin problem that token-priority graphs pose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.corpora.structures.graphs import QueryGraphs
from attractor.margin import MarginProblem
from attractor.support.checks import one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64


def graph_problem(graphs: QueryGraphs | Sequence[QueryGraphs], embeddings: Any) -> MarginProblem:
    """The smallest matrix that scores tokens as the graphs order them (Graph-SVM).

        min ||W||   subject to   (e_i - e_j)^T W e_k  = 0   for i, j in one component,
                                 (e_i - e_j)^T W e_k >= 1   for edges i -> j across components

    in the graph of every query k. Equalities tie one token of a component to every other,
    which makes all its tokens equal; edges make paths, so that a token that reaches another one
    through several edges is ahead of it by one at least. Source: *Mechanics of Next Token
    Prediction with Self-Attention* (arXiv 2403.08081), Graph-SVM.

    Linearly independent embeddings, which take ``K <= d``, always leave a solution. Without them
    the constraints may contradict each other: ``solve`` then answers *infeasible*, and says which.

    Args:
        graphs: The graphs, or one set of them for each instance.
        embeddings: ``(K, d)``, or ``(instances, K, d)``.

    Raises:
        InvalidInputError: If the embeddings do not fit the graphs.
    """
    listed, several = one_or_several("graphs", graphs, QueryGraphs)
    vectors = _vectors(listed, embeddings)
    parts = [_constraints(one) for one in listed]
    most = max(1, *(len(better) for better, *_ in parts))
    shape = (len(listed), most, vectors.shape[-1])
    left, right = np.zeros(shape), np.zeros(shape)
    equality, present = np.zeros(shape[:2], dtype=bool), np.zeros(shape[:2], dtype=bool)
    for i, (better, worse, query, equal) in enumerate(parts):
        count = len(better)
        left[i, :count] = vectors[i][better] - vectors[i][worse]
        right[i, :count] = vectors[i][query]
        equality[i, :count], present[i, :count] = equal, True
    bounds = np.where(equality, 0.0, 1.0)
    problem = MarginProblem(left, right, bounds, equality, present)
    return problem if several else problem[0]


def component_pairs(graphs: QueryGraphs) -> Int[np.ndarray, "pairs 3"]:
    """``(query, token, other)``: the first token of each component with every other one of it."""
    order = np.argsort(graphs.components, kind="stable")
    component = graphs.components[order]
    first = order[np.searchsorted(component, component)]
    query, token = graphs.nodes[order].T
    reference = graphs.nodes[first, 1]
    return np.stack([query, reference, token], axis=1)[token != reference]


def _constraints(
    graphs: QueryGraphs,
) -> tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"], Int[np.ndarray, "m"], Bool[np.ndarray, "m"]]:
    """Tokens ahead and behind, the query, and whether the two are to be equal."""
    ties = component_pairs(graphs)
    across = graphs.edges[~graphs.cyclic]
    query, better, worse = np.concatenate([ties, across]).T
    return better, worse, query, np.arange(len(query)) < len(ties)


def _vectors(graphs: list[QueryGraphs], embeddings: Any) -> Float[np.ndarray, "instances K d"]:
    vectors = as_float64("embeddings", embeddings)
    sizes = {one.size for one in graphs}
    allowed = [(size,) for size in sizes] + [(len(graphs), size) for size in sizes]
    fits = len(sizes) == 1 and vectors.ndim in (2, 3) and vectors.shape[:-1] in allowed
    if not fits or not vectors.shape[-1]:
        raise InvalidInputError(
            "embeddings",
            f"the shape is {vectors.shape}, for graphs on {sorted(sizes)} tokens",
            "Give (K, d), or (instances, K, d), with one vocabulary of K tokens for all graphs",
        )
    return np.broadcast_to(vectors, (len(graphs), *vectors.shape[-2:]))

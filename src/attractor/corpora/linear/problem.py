"""The limits of training a linear decoder: a direction to infinity, and a finite part."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from attractor.corpora.linear._support_space import anchors, support_space
from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.margin import MarginProblem
from attractor.support.checks import check_kinds


def decoder_problem(contexts: EmbeddedContexts) -> MarginProblem:
    """The margin problem of a decoder trained on soft labels (NTP-SVM).

        min ||W||  subject to  (e_z - e_z')^T W h_j = 0   for z, z' in S_j,
                               (e_z - e_v)^T W h_j >= 1   for z in S_j, v not in S_j.

    The likeliest token of a context represents its support: given the equalities one inequality
    for each token outside implies all others. With supports of one token it is the multiclass
    support vector machine. Constraints are numbered by ``sequence``, the context, and ``token``,
    the token compared with the likeliest.

    Args:
        contexts: The data sets.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), NTP-SVM.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    equal = _others(contexts, contexts.support)
    m, V = contexts.count, contexts.classes
    best, token = anchors(contexts)[..., None], _others(contexts, _numbers(contexts))
    unit = np.eye(V)
    lead = best.shape[:-2]
    slots = (*lead, m * (V - 1))

    def slot(array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, (*lead, m, V - 1)).reshape(slots)

    return MarginProblem(
        unit[slot(best)] - unit[slot(token)],
        np.repeat(contexts.embeddings, V - 1, axis=-2),
        slot(1.0 - equal),
        slot(equal),
        sequence=slot(np.arange(m)[:, None]),
        query=0,
        token=slot(token),
        matrix="decoder",
    )


def finite_part(contexts: EmbeddedContexts) -> Float[np.ndarray, "*instances V d"]:
    """``W*``, the only matrix of the subspace F of the supports that has all their log-odds.

        (e_z - e_z')^T W* h_j = log(p_jz / p_jz')   for z, z' in S_j,  and  P_F W* = W*.

    It is the solution of smallest Frobenius norm, from singular values of the equations, and zero
    where every support has one token. Where no matrix has all log-odds (``compatibility``) it is
    that of least squares.

    Args:
        contexts: The data sets.

    Raises:
        InvalidInputError: If the system of equations is too large; see ``support_space``.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), regularization path and gradient descent.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    return support_space(contexts).solution


def _numbers(contexts: EmbeddedContexts) -> Int[np.ndarray, "*instances m V"]:
    return np.broadcast_to(np.arange(contexts.classes), contexts.probabilities.shape)


def _others(contexts: EmbeddedContexts, array: np.ndarray) -> np.ndarray:
    """Entries of all tokens but the anchor of each context, ``(*instances, m, V - 1)``."""
    kept = _numbers(contexts) != anchors(contexts)[..., None]
    return array[kept].reshape(*array.shape[:-1], array.shape[-1] - 1)

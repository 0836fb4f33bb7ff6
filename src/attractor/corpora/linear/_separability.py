"""Separability: whether a linear decoder separates the supports of contexts from other tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from attractor.corpora.linear._support_space import anchors, reduced_embeddings, support_projection
from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError

LARGEST_PROGRAM = 2 * 10**6
"""Nonzeros of the constraints of the largest linear program that is solved."""
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Separability:
    """Whether supports can be separated, with what proves it either way.

    With ``z_j`` the likeliest token of context j, separating matrices have

        (e_{z_j} - e_z)^T W h_j = 0     for z in S_j,
        (e_{z_j} - e_v)^T W h_j >= 1    for v not in S_j.

    Attributes:
        separable: Whether there is one, and proved, ``(*instances)``.
        inseparable: Whether there is none, and proved. Neither is where the linear program was
            not solved to working precision.
        W: A separating matrix; NaN where none was found.
        margins: ``(e_{z_j} - e_v)^T W h_j``, for all contexts and tokens, ``(*instances, m, V)``.
        multipliers: Where there is none, numbers ``lambda_jv``, nonnegative outside the support
            with sum one there, and such that ``sum_jv lambda_jv (e_{z_j} - e_v) h_j^T`` vanishes,
            ``(*instances, m, V)``; else zero.
        residual: Frobenius norm of that sum relative to that of its largest term; infinite
            without multipliers.
    """

    separable: Bool[np.ndarray, "*instances"]
    inseparable: Bool[np.ndarray, "*instances"]
    W: Float[np.ndarray, "*instances V d"]
    margins: Float[np.ndarray, "*instances m V"]
    multipliers: Float[np.ndarray, "*instances m V"]
    residual: Float[np.ndarray, "*instances"]

    def __repr__(self) -> str:
        if np.ndim(self.separable):
            yes, no = int(self.separable.sum()), int(self.inseparable.sum())
            return f"Separability({yes} of {self.separable.size} instances separable, {no} not)"
        if self.separable:
            return f"Separability(separable: a matrix of norm {np.linalg.norm(self.W):.4g} does it)"
        if self.inseparable:
            used = int((self.multipliers != 0).sum())
            return f"Separability(not separable: {used} constraints contradict each other)"
        return "Separability(not known: the linear program was not solved to working precision)"


def separability(contexts: EmbeddedContexts) -> Separability:
    """Decides whether there is W that ties each support and puts all other tokens below it.

    By a linear program (SciPy's HiGHS): the largest margin t <= 1. Either answer is proved by the
    matrix or by multipliers, which are checked apart from the solver.

    Args:
        contexts: The data sets.

    Raises:
        InvalidInputError: If an instance has a program with more than 2e6 nonzeros: twice the
            rank of the embeddings for each of ``m (V - 1)`` constraints. ``solve`` of the
            ``decoder_problem`` decides larger ones.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), separable data.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    whole = contexts.batched()
    with single_blas_thread():
        found = [_of_one(one) for one in whole]
    place = 0 if contexts.instances is None else np.s_[:]
    fields = [np.stack(column)[place] for column in zip(*found, strict=True)]
    return Separability(*(np.asarray(field) for field in fields))


def _of_one(contexts: EmbeddedContexts) -> tuple[np.ndarray, ...]:
    """Fields of the answer for a single instance."""
    V, m, best = contexts.classes, contexts.count, anchors(contexts)
    lengths = np.linalg.norm(contexts.embeddings, axis=-1)
    scale = np.where(lengths > 0, lengths, 1)
    coordinates, turn = reduced_embeddings(contexts.embeddings / scale[:, None])
    rank = len(turn)
    nonzeros = 2 * rank * m * (V - 1)
    if nonzeros > LARGEST_PROGRAM:
        raise InvalidInputError(
            "contexts",
            f"the linear program has {nonzeros:,} nonzeros",
            f"Give at most {LARGEST_PROGRAM:,}, or let solve(decoder_problem(contexts)) decide",
        )
    others = np.arange(V) != best[:, None]
    inner = np.nonzero(contexts.support & others)
    outer = np.nonzero(~contexts.support)
    nothing = np.zeros((m, V))
    if not len(outer[0]):
        zero = np.zeros((V, contexts.dimension))
        return np.array(True), np.array(False), zero, nothing, nothing, np.array(np.inf)
    from scipy.optimize import linprog

    equal = _differences(coordinates, best, inner, V, 0.0)
    above = _differences(coordinates, best, outer, V, -1.0)
    found = linprog(
        np.append(np.zeros(V * rank), -1),
        A_ub=-above,
        b_ub=np.zeros(len(outer[0])),
        A_eq=equal if len(inner[0]) else None,
        b_eq=np.zeros(len(inner[0])) if len(inner[0]) else None,
        bounds=[(None, None)] * (V * rank) + [(None, 1)],
        method="highs",
    )
    W, multipliers = np.zeros((V, contexts.dimension)), nothing
    if found.x is not None:
        W = found.x[:-1].reshape(V, rank) @ turn
        multipliers[outer] = np.maximum(-found.ineqlin.marginals, 0) / scale[outer[0]]
        if len(inner[0]):
            multipliers[inner] = found.eqlin.marginals / scale[inner[0]]
    return _proved(contexts, W, multipliers)


def _differences(
    coordinates: Float[np.ndarray, "m r"],
    best: Int[np.ndarray, "m"],
    pairs: tuple[np.ndarray, ...],
    V: int,
    last: float,
) -> sparse.csr_array:
    """Rows ``(e_{z_j} - e_v) h_j^T``, flat, and a last column for the margin."""
    context, token = pairs
    count, rank = len(context), coordinates.shape[1]
    row = np.repeat(np.arange(count), rank)
    along = np.tile(np.arange(rank), count)
    values = coordinates[context].ravel()
    columns = [np.repeat(t, rank) * rank + along for t in (best[context], token)]
    rows = np.concatenate([row, row, np.arange(count)])
    places = np.concatenate([*columns, np.full(count, V * rank)])
    entries = np.concatenate([values, -values, np.full(count, last)])
    return sparse.coo_array((entries, (rows, places)), shape=(count, V * rank + 1)).tocsr()


def _proved(
    contexts: EmbeddedContexts, W: Float[np.ndarray, "V d"], multipliers: Float[np.ndarray, "m V"]
) -> tuple[np.ndarray, ...]:
    """The fields of the answer that a matrix and multipliers prove, whoever found them."""
    support, embeddings, best = contexts.support, contexts.embeddings, anchors(contexts)
    # Equalities hold but for the tolerance of a solver; without their part they hold to rounding.
    W = W - support_projection(contexts, W)
    margins = _margins(W, embeddings, best)
    least = margins[~support].min()
    reach = np.linalg.norm(embeddings, axis=-1).max() * np.linalg.norm(W, axis=-1).max()
    if least > _ROUNDING * reach:
        W, margins = W / least, margins / least
        yes, no = np.array(True), np.array(False)
        return yes, no, W, margins, np.zeros_like(multipliers), np.array(np.inf)
    total = np.where(support, 0, multipliers).sum()
    nothing = np.full_like(W, np.nan), np.full_like(multipliers, np.nan)
    if not total > 0:
        zeros = np.zeros_like(multipliers)
        return np.array(False), np.array(False), *nothing, zeros, np.array(np.inf)
    multipliers = multipliers / total
    weights = -multipliers
    weights[np.arange(len(best)), best] += multipliers.sum(-1)
    terms = np.sqrt(2) * np.abs(multipliers) * np.linalg.norm(embeddings, axis=-1)[:, None]
    largest = terms.max()
    size = np.linalg.norm(weights.T @ embeddings)
    residual = size / largest if largest > 0 else 0.0  # an embedding of zero separates nothing
    no = np.array(residual <= _ROUNDING)
    return np.array(False), no, *nothing, multipliers, np.array(residual)


def _margins(
    W: Float[np.ndarray, "V d"], embeddings: Float[np.ndarray, "m d"], best: Int[np.ndarray, "m"]
) -> Float[np.ndarray, "m V"]:
    logits = embeddings @ W.T
    return logits[np.arange(len(best)), best, None] - logits

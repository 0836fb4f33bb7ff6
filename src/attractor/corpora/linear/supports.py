"""What supports decide: log-odds, separability, compatibility; random contexts that have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.optimize import linprog

from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64
from attractor.support.randomness import generator

LARGEST_SYSTEM = 10**7
"""Entries of the largest system of equations that is decomposed: equations times unknowns."""
_ROUNDINGS = 16
"""Roundings, per equation, of the largest singular value below which others count as zero."""


@dataclass(frozen=True, eq=False)
class SupportSpace:
    """``F = span{ (e_z - e_z') h_j^T : z, z' in S_j }``, with the unique solution it holds.

    The odds of tokens that follow the same context determine every matrix of F. Decoders W
    with the probabilities of all of them agree on F.

    Attributes:
        basis: Orthonormal matrices that span it, ``(*instances, f, V, d)``, filled up with zeros
            where instances have spaces of different dimension.
        dimension: Its dimension f, ``(*instances)``.
        solution: ``W*``, the matrix of F whose log-odds ``(e_z - e_z')^T W h_j`` are nearest to
            ``log(p_jz / p_jz')`` for every anchor z' and other z of a support, each equation
            divided by the length of its ``h_j``; the only solution where there is one.
        residuals: The residual of the equations of each context at ``W*``, the largest
            ``|(e_z - e_z')^T W* h_j - log(p_jz / p_jz')|``, ``(*instances, m)``.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), the subspace of compatible data.
    """

    basis: Float[np.ndarray, "*instances f V d"]
    dimension: Int[np.ndarray, "*instances"]
    solution: Float[np.ndarray, "*instances V d"]
    residuals: Float[np.ndarray, "*instances m"]

    def project(self, W: Float[np.ndarray, "*batch V d"]) -> Float[np.ndarray, "*batch V d"]:
        """The nearest matrices of F.

        Args:
            W: Matrices; with several instances, axes between that of instances and the last two
                count matrices of one instance.
        """
        W, lead = as_float64("W", W), self.basis.shape[:-3]
        if W.shape[-2:] != self.basis.shape[-2:] or W.shape[: len(lead)] != lead:
            raise InvalidInputError(
                "W", f"the shape is {W.shape}", f"Give {(*lead, '...', *self.basis.shape[-2:])}"
            )
        flat = W.reshape(*lead, -1, *W.shape[-2:])
        coordinates = np.einsum("...fvd,...bvd->...bf", self.basis, flat)
        return np.einsum("...bf,...fvd->...bvd", coordinates, self.basis).reshape(W.shape)


def support_space(contexts: EmbeddedContexts) -> SupportSpace:
    """The subspace of every instance, from singular values of its equations.

    Args:
        contexts: The data sets.

    Raises:
        InvalidInputError: If an instance has more than 1e7 entries in its system of equations:
            equations ``sum_j (|S_j| - 1)`` times unknowns ``V rank(h)``.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    whole = contexts.batched()
    found = [_of_one(one) for one in whole]
    most = max(len(basis) for basis, *_ in found)
    shape = (whole.classes, whole.dimension)
    bases = [np.concatenate([basis, np.zeros((most - len(basis), *shape))]) for basis, *_ in found]
    place = 0 if contexts.instances is None else np.s_[:]
    return SupportSpace(
        np.stack(bases)[place],
        np.asarray(np.array([len(basis) for basis, *_ in found])[place]),
        np.stack([solution for _, solution, _ in found])[place],
        np.stack([residuals for *_, residuals in found])[place],
    )


def support_projection(
    contexts: EmbeddedContexts, W: Float[np.ndarray, "*batch V d"]
) -> Float[np.ndarray, "*batch V d"]:
    """``P_F W``: the orthogonal projection of matrices on the subspace of the supports.

    Args:
        contexts: The data sets.
        W: Matrices, with the leading axis of instances where contexts have one; further axes may
            follow it.

    Raises:
        InvalidInputError: If shapes do not fit, or the system is too large.
    """
    return support_space(contexts).project(as_float64("W", W))


def anchors(contexts: EmbeddedContexts) -> Int[np.ndarray, "*instances m"]:
    """The likeliest token of each context, which all others are compared with."""
    return contexts.probabilities.argmax(-1)


def reduced_embeddings(
    embeddings: Float[np.ndarray, "m d"],
) -> tuple[Float[np.ndarray, "m r"], Float[np.ndarray, "r d"]]:
    """Embeddings in an orthonormal basis of their span, and the basis, of one vector at least.

    Each counts at length one, so that a short one is not taken for rounding of a long one.
    """
    lengths = np.linalg.norm(embeddings, axis=-1, keepdims=True)
    units = embeddings / np.where(lengths > 0, lengths, 1)
    _, values, turn = np.linalg.svd(units, full_matrices=False)
    basis = turn[: max(1, _above_rounding(values, len(units)).sum())]
    return embeddings @ basis.T, basis


def _of_one(
    contexts: EmbeddedContexts,
) -> tuple[Float[np.ndarray, "f V d"], Float[np.ndarray, "V d"], Float[np.ndarray, "m"]]:
    """Basis, solution and residuals of a single instance."""
    V = contexts.classes
    coordinates, turn = reduced_embeddings(contexts.embeddings)
    r, best = len(turn), anchors(contexts)
    lengths = np.linalg.norm(coordinates, axis=-1)
    compared = contexts.support & (np.arange(V) != best[:, None]) & (lengths > 0)[:, None]
    context, token = np.nonzero(compared)
    if len(context) * V * r > LARGEST_SYSTEM:
        raise InvalidInputError(
            "contexts",
            f"their supports make {len(context):,} equations in {V * r:,} unknowns",
            f"The product may be {LARGEST_SYSTEM:,} at most: give fewer contexts or tokens",
        )
    # One equation for each token of a support but the anchor, divided by the length of its context.
    units = coordinates[context] / lengths[context, None]
    equations = np.zeros((len(context), V, r))
    number = np.arange(len(context))
    equations[number, token] = units
    equations[number, best[context]] = -units
    logs = np.log(np.where(contexts.support, contexts.probabilities, 1.0))
    odds = np.where(contexts.support, logs - logs[np.arange(len(best)), best, None], 0)

    left, values, right = np.linalg.svd(equations.reshape(len(context), V * r), full_matrices=False)
    kept = _above_rounding(values, max(equations.shape[0], V * r))
    left, values, right = left[:, kept], values[kept], right[kept]
    wanted = odds[context, token] / lengths[context]
    reduced = (right.T @ (left.T @ wanted / values)).reshape(V, r)
    solution, basis = reduced @ turn, right.reshape(len(right), V, r) @ turn

    logits = coordinates @ reduced.T
    found = logits - logits[np.arange(len(best)), best, None]
    lacking = np.where(contexts.support, np.abs(found - odds), 0).max(-1)
    return basis, solution, lacking


def _above_rounding(values: Float[np.ndarray, "k"], count: int) -> np.ndarray:
    """Singular values that are not rounding of the largest."""
    least = _ROUNDINGS * count * np.finfo(float).eps * values.max(initial=0)
    return (values > least) & (values > 0)


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
        found = [_separability_of_one(one) for one in whole]
    place = 0 if contexts.instances is None else np.s_[:]
    fields = [np.stack(column)[place] for column in zip(*found, strict=True)]
    return Separability(*(np.asarray(field) for field in fields))


def _separability_of_one(contexts: EmbeddedContexts) -> tuple[np.ndarray, ...]:
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


_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Compatibility:
    """Whether some matrix has every log-odds within supports, and which contexts prevent it.

    Attributes:
        compatible: Whether ``residual`` is at most 1e-9, ``(*instances)``.
        residual: The largest ``|(e_z - e_z')^T W* h_j - log(p_jz / p_jz')|``, relative to one plus
            the largest log-odds, ``(*instances)``.
        context: The context that has it, or -1 where data are compatible, ``(*instances)``.
        residuals: That of each context, not relative, ``(*instances, m)``.
        solution: ``W*``: the matrix of smallest norm that lacks least in the sense of least
            squares, ``(*instances, V, d)``.
    """

    compatible: Bool[np.ndarray, "*instances"]
    residual: Float[np.ndarray, "*instances"]
    context: Int[np.ndarray, "*instances"]
    residuals: Float[np.ndarray, "*instances m"]
    solution: Float[np.ndarray, "*instances V d"]

    @property
    def reason(self) -> Any:
        """Why data are not compatible, in words, empty where they are; for instances, a list."""
        if np.ndim(self.context):
            pairs = zip(self.context, self.residuals, strict=True)
            return [_reason(int(context), lacking) for context, lacking in pairs]
        return _reason(int(self.context), self.residuals)

    def __repr__(self) -> str:
        if np.ndim(self.context):
            met = int(self.compatible.sum())
            return f"Compatibility({met} of {self.compatible.size} instances compatible)"
        answer = "compatible" if self.compatible else f"not compatible: {self.reason}"
        return f"Compatibility({answer}; relative residual {self.residual:.2g})"


def compatibility(contexts: EmbeddedContexts) -> Compatibility:
    """Decides whether there is W with ``(e_z - e_z')^T W h_j = log(p_jz / p_jz')`` in supports.

    Where there is none, the cross-entropy stays away from the entropy of the contexts. Linearly
    independent embeddings always are compatible.

    Args:
        contexts: The data sets.

    Raises:
        InvalidInputError: If the system of equations is too large; see ``support_space``.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), compatible data.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    space = support_space(contexts)
    logs = np.log(np.where(contexts.support, contexts.probabilities, 1.0))
    most = np.abs(logs - logs.max(-1, keepdims=True, where=contexts.support, initial=-np.inf))
    size = 1 + np.where(contexts.support, most, 0).max((-1, -2))
    residual = np.asarray(space.residuals.max(-1) / size)
    met = residual <= _TOLERANCE
    context = np.where(met, -1, space.residuals.argmax(-1))
    return Compatibility(np.asarray(met), residual, context, space.residuals, space.solution)


def _reason(context: int, residuals: Float[np.ndarray, "m"]) -> str:
    if context < 0:
        return ""
    others = int((residuals > _TOLERANCE).sum()) - 1
    beside = f" and those of {others} other contexts" if others > 0 else ""
    return (
        f"no matrix has the log-odds of context {context}{beside} together: the nearest lacks "
        f"{residuals[context]:.3g} there, as its embedding is a combination of others"
    )


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

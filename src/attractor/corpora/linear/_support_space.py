"""The subspace determined by log-odds within supports, and projection on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

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

"""An attention head, scores ``x^T U z`` and values ``V x``, as an operator on measures.

With ``a = U z`` and the tilt ``(Lambda, m_a, C_a)`` of the law of the tokens,

    T(z) = V m_a,    dT/dz = V C_a U,    D_V T . H = H m_a,    D_U T . H = V C_a H z,

for infinitely many tokens and for the tokens of a finite prompt alike (arXiv 2512.11784, attention
as an operator on measures). Every function takes queries with any leading axes, works under
``jit``, ``grad`` and ``vmap``, and gives NumPy float64 where all its arguments are NumPy.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from attractor.prompts.measures.arithmetic import checked, numpy_in_double
from attractor.prompts.measures.contract import Measure
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import check_broadcast


class HeadGradients(NamedTuple):
    """Derivative of ``sum <cotangent, T(z)>`` over all queries.

    Attributes:
        score_matrix: In ``U``: ``sum C_a V^T g z^T``.
        value_matrix: In ``V``: ``sum g m_a^T``.
        query: In each query: ``U^T C_a V^T g``.
    """

    score_matrix: Float[Any, "d e"]
    value_matrix: Float[Any, "v d"]
    query: Float[Any, "*batch e"]


def output(
    measure: Measure, head: AttentionHead, query: Float[Any, "*batch e"] | Any
) -> Float[Any, "*rows v"]:
    """Attention over tokens drawn from a measure: ``T(z) = V m_a`` with ``a = U z``.

    Args:
        measure: The law of the tokens; ``Empirical`` for a finite prompt.
        head: The head.
        query: ``z``, with any leading axes.

    Raises:
        InvalidInputError: If shapes do not fit, an entry is not finite, or ``E exp(x^T U z)`` is
            infinite, so that there is no attention over infinitely many tokens. Under ``jit`` the
            latter gives NaN.
    """
    return _output(measure, head, _admissible(measure, head, query))


def output_jacobian(
    measure: Measure, head: AttentionHead, query: Float[Any, "*batch e"] | Any
) -> Float[Any, "*rows v e"]:
    """Derivative of the output in the query, ``V C_a U``; arguments and errors as ``output``."""
    return _output_jacobian(measure, head, _admissible(measure, head, query))


def head_gradients(
    measure: Measure,
    head: AttentionHead,
    query: Float[Any, "*batch e"] | Any,
    cotangent: Float[Any, "*#batch v"] | Any,
) -> HeadGradients:
    """Gradient of ``sum <g, T(z)>`` in the score matrix, the value matrix and the queries.

    The tilted covariance is never formed.

    Args:
        measure: The law of the tokens; ``Empirical`` for a finite prompt.
        head: The head.
        query: ``z``, with any leading axes, those of the measure's prompts included.
        cotangent: ``g``, the gradient of a loss in the outputs.

    Raises:
        InvalidInputError: As ``output``.
    """
    query = _admissible(measure, head, query)
    cotangent = checked("cotangent", cotangent, ("v",), batched=True)
    if cotangent.shape[-1] != head.value_matrix.shape[0]:
        wanted = f"Give (..., {head.value_matrix.shape[0]}): an entry for every entry of the output"
        raise InvalidInputError("cotangent", f"the shape is {cotangent.shape}", wanted)
    if cotangent.ndim > query.ndim:
        wanted = f"Give at most the axes of the query, {query.shape[:-1]}, and one of the output"
        raise InvalidInputError("cotangent", f"the shape is {cotangent.shape}", wanted)
    check_broadcast("cotangent", cotangent.shape[:-1], query.shape[:-1])
    return _head_gradients(measure, head, query, cotangent)


def _admissible(measure: Measure, head: AttentionHead, query: Any) -> Any:
    """The query, checked as ``output`` says."""
    check_kinds(measure=(measure, Measure), head=(head, AttentionHead))
    _check_tokens(measure, head)
    query = checked("query", query, ("e",), batched=True)
    if query.shape[-1] != head.query_dimension:
        wanted = f"Give (..., {head.query_dimension}): the score matrix has so many columns"
        raise InvalidInputError("query", f"the shape is {query.shape}", wanted)
    measure.admissible(query @ head.score_matrix.T)
    return query


def _check_tokens(measure: Measure, head: AttentionHead) -> None:
    if measure.dimension != head.token_dimension:
        raise InvalidInputError(
            "head",
            f"its score matrix is for tokens with {head.token_dimension} entries",
            f"Give one with {measure.dimension} rows, the dimension of the measure",
        )


@numpy_in_double
def _output(measure: Measure, head: AttentionHead, query: Any) -> Any:
    return measure.tilted_mean(query @ head.score_matrix.T) @ jnp.asarray(head.value_matrix).T


@numpy_in_double
def _output_jacobian(measure: Measure, head: AttentionHead, query: Any) -> Any:
    covariance = measure.tilt(query @ head.score_matrix.T).covariance
    return jnp.asarray(head.value_matrix) @ covariance @ head.score_matrix


@numpy_in_double
def _head_gradients(
    measure: Measure, head: AttentionHead, query: Any, cotangent: Any
) -> HeadGradients:
    direction = query @ head.score_matrix.T
    mean = measure.tilted_mean(direction)
    pull = measure.covariance_product(direction, cotangent @ head.value_matrix)
    shape = mean.shape[:-1]
    cotangent = jnp.broadcast_to(cotangent, (*shape, cotangent.shape[-1]))
    query = jnp.broadcast_to(query, (*shape, query.shape[-1]))
    return HeadGradients(
        jnp.einsum("...d,...e->de", pull, query),
        jnp.einsum("...v,...d->vd", cotangent, mean),
        pull @ head.score_matrix,
    )


class AttentionHead(eqx.Module):
    """One attention head: a token ``x`` has score ``x^T U z`` for a query ``z``, and value ``V x``.

    Keys and queries enter attention through ``U = K^T Q`` alone (arXiv 2512.11784, attention as an
    operator on measures).

    Attributes:
        score_matrix: ``U``, ``(d, e)`` for tokens in R^d and queries in R^e.
        value_matrix: ``V``, ``(v, d)``.
    """

    score_matrix: Float[Any, "d e"]
    value_matrix: Float[Any, "v d"]

    def __init__(
        self, score_matrix: Float[Any, "d e"] | Any, value_matrix: Float[Any, "v d"] | Any
    ) -> None:
        """Checks and stores the two matrices.

        Raises:
            InvalidInputError: If shapes do not fit, or an entry is not finite.
        """
        self.score_matrix = checked("score_matrix", score_matrix, ("d", "e"))
        self.value_matrix = checked("value_matrix", value_matrix, ("v", "d"))
        d = self.score_matrix.shape[0]
        if self.value_matrix.shape[1] != d:
            raise InvalidInputError(
                "value_matrix",
                f"the shape is {self.value_matrix.shape}",
                f"Give (v, {d}): the score matrix is for tokens with {d} entries",
            )

    @classmethod
    def from_factors(
        cls,
        *,
        keys: Float[Any, "k d"] | Any,
        queries: Float[Any, "k e"] | Any,
        values: Float[Any, "v d"] | Any,
        divide_by_sqrt_head_dimension: bool,
    ) -> AttentionHead:
        """The head whose keys are ``K x``, whose queries are ``Q z`` and whose values are ``V x``.

        Args:
            keys: ``K``, ``(k, d)``.
            queries: ``Q``, ``(k, e)``.
            values: ``V``, ``(v, d)``.
            divide_by_sqrt_head_dimension: Whether scores are ``(K x)^T Q z / sqrt(k)``, as in most
                software, or ``(K x)^T Q z``, as in the paper.

        Raises:
            InvalidInputError: If shapes do not fit, or an entry is not finite.
        """
        keys, queries, scale = _checked_factors(keys, queries, divide_by_sqrt_head_dimension)
        values = checked("values", values, ("v", "d"))
        if values.shape[1] != keys.shape[1]:
            raise InvalidInputError(
                "values", f"the shape is {values.shape}", f"Give (v, {keys.shape[1]})"
            )
        return cls(keys.T @ queries * scale, values)

    @property
    def token_dimension(self) -> int:
        """Number of entries of a token."""
        return self.score_matrix.shape[-2]

    @property
    def query_dimension(self) -> int:
        """Number of entries of a query."""
        return self.score_matrix.shape[-1]


def _checked_factors(
    keys: Any, queries: Any, divide_by_sqrt_head_dimension: bool
) -> tuple[Any, Any, float]:
    """Key and query matrices, and the factor of scores.

    Raises:
        InvalidInputError: If shapes do not fit, an entry is not finite, or the last argument is
            not a bool.
    """
    keys = checked("keys", keys, ("k", "d"))
    queries = checked("queries", queries, ("k", "e"))
    if keys.shape[0] != queries.shape[0]:
        raise InvalidInputError(
            "queries",
            f"the shape is {queries.shape}",
            f"Give ({keys.shape[0]}, e): the key matrix has {keys.shape[0]} rows",
        )
    if not isinstance(divide_by_sqrt_head_dimension, bool):
        raise InvalidInputError(
            "divide_by_sqrt_head_dimension",
            f"it is {divide_by_sqrt_head_dimension!r}",
            "Give True for scores divided by the root of the head dimension, else False",
        )
    return keys, queries, 1 / math.sqrt(keys.shape[0]) if divide_by_sqrt_head_dimension else 1.0

"""The affine map that attention over Gaussian tokens is."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jaxtyping import Float

from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.arithmetic.arrays import checked
from attractor.prompts.measures.contract import Measure
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError


class AffineLimit(eqx.Module):
    """``z -> V m + V Gamma U z``: attention over infinitely many Gaussian tokens, as an object.

    It can replace a head: it takes queries with any leading axes, and is a pytree
    that works under ``jit``, ``grad`` and ``vmap``. For tokens that are not Gaussian it is the
    limit for those with their mean and covariance. Source: *Softmax as Linear Attention in the
    Large-Prompt Regime* (arXiv 2512.11784), attention over Gaussian tokens is affine.

    Attributes:
        matrix: ``V Gamma U``, ``(v, e)``.
        offset: ``V m``, ``(v,)``.
    """

    matrix: Float[Any, "v e"]
    offset: Float[Any, "v"]

    def __init__(self, head: AttentionHead, tokens: Measure) -> None:
        """Computes matrix and offset.

        Args:
            head: The head.
            tokens: The law of the tokens, of which mean and covariance alone matter.

        Raises:
            InvalidInputError: If the dimensions of the two differ.
        """
        check_kinds(head=(head, AttentionHead), tokens=(tokens, Measure))
        if tokens.dimension != head.token_dimension:
            raise InvalidInputError(
                "tokens",
                f"their dimension is {tokens.dimension}",
                f"Give {head.token_dimension}, the rows of the score matrix",
            )
        self.matrix = head.value_matrix @ tokens.covariance @ head.score_matrix
        self.offset = head.value_matrix @ tokens.mean

    def __call__(self, query: Float[Any, "*batch e"] | Any) -> Float[Any, "*batch v"]:
        """The output for queries.

        Args:
            query: ``z``, with any leading axes.

        Raises:
            InvalidInputError: If the last axis does not fit, or an entry is not finite.
        """
        query = checked("query", query, ("e",), batched=True)
        if query.shape[-1] != self.matrix.shape[1]:
            raise InvalidInputError(
                "query", f"the shape is {query.shape}", f"Give (..., {self.matrix.shape[1]})"
            )
        return query @ self.matrix.T + self.offset

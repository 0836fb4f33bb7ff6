"""Matrix decompositions for arrays of any library."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float

from attractor.loaded import is_of_loaded


def singular_values(W: Float[Any, "*batch d e"]) -> Float[Any, "*batch k"]:
    """Singular values in descending order, k = min(d, e) of them."""
    if is_of_loaded(W, "jax", "Array"):
        from attractor.geometry import jax_decompositions

        return jax_decompositions.singular_values(W)
    return W.__array_namespace__().linalg.svdvals(W)


def singular_value_decomposition(
    W: Float[Any, "*batch d e"],
) -> tuple[Float[Any, "*batch d k"], Float[Any, "*batch k"], Float[Any, "*batch k e"]]:
    """The thin decomposition ``W = U diag(s) V``, k = min(d, e)."""
    if is_of_loaded(W, "jax", "Array"):
        from attractor.geometry import jax_decompositions

        return jax_decompositions.singular_value_decomposition(W)
    return W.__array_namespace__().linalg.svd(W, full_matrices=False)

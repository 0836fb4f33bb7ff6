"""Matrix decompositions for arrays of any library."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from jaxtyping import Float

from attractor.support.loaded import is_of_loaded


def _of_jax() -> Any:
    """The same functions for arrays of JAX."""
    from attractor.geometry import jax_decompositions

    return jax_decompositions


def singular_values(W: Float[Any, "*batch d e"]) -> Float[Any, "*batch k"]:
    """Singular values in descending order, k = min(d, e) of them."""
    if is_of_loaded(W, "jax", "Array"):
        return _of_jax().singular_values(W)
    return W.__array_namespace__().linalg.svdvals(W)


def singular_value_decomposition(
    W: Float[Any, "*batch d e"],
) -> tuple[Float[Any, "*batch d k"], Float[Any, "*batch k"], Float[Any, "*batch k e"]]:
    """The thin decomposition ``W = U diag(s) V``, k = min(d, e).

    Of NumPy's arrays it is found where LAPACK's divide and conquer fails, too.
    """
    if is_of_loaded(W, "jax", "Array"):
        return _of_jax().singular_value_decomposition(W)
    try:
        return W.__array_namespace__().linalg.svd(W, full_matrices=False)
    except np.linalg.LinAlgError:
        if not np.isfinite(W).all():
            raise
        return _by_iterations(W)


def _by_iterations(
    W: Float[np.ndarray, "*batch d e"],
) -> tuple[
    Float[np.ndarray, "*batch d k"], Float[np.ndarray, "*batch k"], Float[np.ndarray, "*batch k e"]
]:
    """The same by iterations of the QR decomposition, slower and surer."""
    flat = W.reshape(-1, *W.shape[-2:])
    parts = [scipy.linalg.svd(one, full_matrices=False, lapack_driver="gesvd") for one in flat]
    U, values, V = (np.stack(each) for each in zip(*parts, strict=True))
    batch = W.shape[:-2]
    left, right = U.reshape(*batch, *U.shape[1:]), V.reshape(*batch, *V.shape[1:])
    return left, values.reshape(*batch, -1), right


def singular_power(W: Float[Any, "*batch d e"], exponent: int) -> Float[Any, "*batch d e"]:
    """``U s^exponent V^T`` with ``W = U s V^T``, whose largest entry is one or zero.

    Values that rounding alone could have made count as zero.

    Args:
        W: Matrices.
        exponent: 0 or 2.
    """
    if is_of_loaded(W, "jax", "Array"):
        return _of_jax().singular_power(W, exponent)
    xp = W.__array_namespace__()
    U, values, V = singular_value_decomposition(W)
    kept = values > sum(W.shape[-2:]) * xp.finfo(values.dtype).eps * values[..., :1]
    powers = xp.where(kept, values**exponent, xp.zeros_like(values))
    return (U * powers[..., None, :]) @ V

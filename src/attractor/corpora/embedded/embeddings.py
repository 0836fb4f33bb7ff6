"""Embeddings of a vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_shaped
from attractor.support.randomness import generator

_ORTHONORMAL = 1e-10
_MOST = 2**14
"""Tokens or dimensions; a square of them has 2 GB."""


def one_hot(size: int) -> Float[np.ndarray, "V V"]:
    """The unit vectors: orthonormal embeddings of a vocabulary of V tokens."""
    return np.eye(_counted("size", size))


def gaussian(size: int, dimension: int, seed: int = 0) -> Float[np.ndarray, "V d"]:
    """Random embeddings: independent Gaussian vectors of unit length.

    Args:
        size: Number V of tokens.
        dimension: Dimension d; may be smaller than V.
        seed: Names what is random.
    """
    size, dimension = _counted("size", size), _counted("dimension", dimension)
    drawn = generator(seed, purpose="embeddings").standard_normal((size, dimension))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def _counted(argument: str, value: int) -> int:
    """A number of tokens or of dimensions, whose square can be an array."""
    return check_count(argument, value, 1, _MOST)


def check_embeddings(
    embeddings: Any, size: int, *, instances: int | None = None
) -> Float[np.ndarray, "*instances V d"]:
    """The embeddings of a vocabulary; the unit vectors if None.

    Raises:
        InvalidInputError: If there is not one vector for every token.
    """
    if embeddings is None:
        return one_hot(size)
    array = as_float64("embeddings", embeddings)
    leads = {()} if instances is None else {(), (instances,)}
    if array.ndim < 2 or not array.size or array.shape[:-2] not in leads or array.shape[-2] != size:
        raise InvalidInputError(
            "embeddings",
            f"the shape is {array.shape}",
            f"Give ({size}, d): a vector for every token of the vocabulary"
            + ("" if instances is None else f", or ({instances}, {size}, d)"),
        )
    if not array.any(-1).all():
        raise InvalidInputError(
            "embeddings", "a token has the zero vector", "Give every token a vector of its own"
        )
    return array


def orthonormality_error(embeddings: Float[np.ndarray, "*instances V d"]) -> float:
    """The distance of embeddings from orthonormal: the largest entry of ``|E E^T - I|``.

    The theory of next-token prediction assumes that it is zero, which needs as many dimensions as
    there are tokens (*Non-asymptotic Convergence of Training Transformers for Next-token
    Prediction*, arXiv 2409.17335).
    """
    embeddings = as_shaped("embeddings", embeddings, ("...", "V", "d"))
    with np.errstate(over="ignore", invalid="ignore"):
        products = embeddings @ np.swapaxes(embeddings, -1, -2)
        error = np.abs(products - np.eye(embeddings.shape[-2]))
    return float(np.nan_to_num(error, nan=np.inf, posinf=np.inf).max())


def are_orthonormal(embeddings: Float[np.ndarray, "*instances V d"]) -> bool:
    """Whether embeddings are orthonormal to rounding."""
    return orthonormality_error(embeddings) < _ORTHONORMAL

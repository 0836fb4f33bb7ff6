"""Whether a norm and a dual norm belong together, on a few matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attractor.geometry.contract import Geometry
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import seeded

_ROUNDING = 1e-9


@seeded(purpose="a norm that is tried")
def check_duality(geometry: Geometry) -> None:
    """Checks that no product exceeds ``||W|| ||G||_dual``, where one that does is easily found.

    Certificates rest on it: with a dual norm that is too small they prove what is not so. Tried are
    a random matrix and those that make the product largest in familiar norms.

    Raises:
        InvalidInputError: If two matrices are found with a larger product.
    """
    G = np.random.default_rng(0).normal(size=(3, 4))
    for W in _directions(G):
        for one, other in ((W, G), (G, W)):
            product = float((one * other).sum())
            bound = float(geometry.norm(one)) * float(geometry.dual_norm(other))
            if product > bound * (1 + _ROUNDING):
                raise InvalidInputError(
                    "geometry",
                    f"norm and dual_norm of {geometry.name} do not belong together: there are "
                    f"matrices with <W, G> = {product:.4g}, above ||W|| ||G||_dual = {bound:.4g}",
                    "Let dual_norm be the largest <W, G> over all W with norm(W) <= 1",
                )


def _directions(G: Float[np.ndarray, "d e"]) -> Iterator[Float[np.ndarray, "d e"]]:
    """Matrices whose product with another is the largest there is, each in some norm."""
    U, _, V = np.linalg.svd(G, full_matrices=False)
    largest = np.abs(G) == np.abs(G).max()
    rows, columns = (np.linalg.norm(G, axis=axis, keepdims=True) for axis in (1, 0))
    yield from (G, np.sign(G), G * largest, U @ V, U[:, :1] @ V[:1])
    yield from (G / rows, G / columns, G * (rows == rows.max()), G * (columns == columns.max()))

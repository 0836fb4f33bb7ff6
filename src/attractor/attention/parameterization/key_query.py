"""Key and query matrices as what is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.parameterization.contract import Parameterization
from attractor.attention.rows import Rows
from attractor.checks import check_count
from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius, Geometry, Nuclear


class KeyQueryFactors(NamedTuple):
    """The factors of ``W = K Q^T``.

    Attributes:
        K: Turns tokens into keys.
        Q: Turns queries into what keys are held against.
    """

    K: Float[Any, "*trials d width"]
    Q: Float[Any, "*trials e width"]


@dataclass(frozen=True)
class KeyQuery(Parameterization):
    """Key and query matrices are trained apart: ``W = K Q^T``.

    Gradient descent in the factors leads to small nuclear norm of ``W``, as ``min (||K||_F^2 +
    ||Q||_F^2) / 2`` over all factors of ``W`` is its nuclear norm, as long as the width is no less
    than the rank. Source: *Transformers as Support Vector Machines* (arXiv 2308.16898).

    Attributes:
        width: Number of columns m of both factors; None for the dimension d of the keys.
    """

    name: ClassVar[str] = "KQ"
    width: int | None = None

    def __post_init__(self) -> None:
        """Checks the width.

        Raises:
            InvalidInputError: If it is not a positive integer.
        """
        if self.width is not None:
            check_count("width", self.width)

    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """``K`` and ``Q``."""
        width = d if self.width is None else int(self.width)
        return {"K": (d, width), "Q": (e, width)}

    def from_arrays(self, arrays: Mapping[str, Any]) -> KeyQueryFactors:
        """``K`` and ``Q``."""
        return KeyQueryFactors(arrays["K"], arrays["Q"])

    def to_arrays(self, parameters: KeyQueryFactors) -> dict[str, Any]:
        """``K`` and ``Q``."""
        return parameters._asdict()

    def scores(
        self, parameters: KeyQueryFactors, rows: Rows
    ) -> Float[Array, "sequence query token"]:
        """Scores ``(K^T x_t)^T (Q^T z)``."""
        turned = (rows.queries @ parameters.Q) @ parameters.K.T
        return jnp.einsum("ntd,nkd->nkt", rows.keys, turned)

    def effective_matrix(self, parameters: KeyQueryFactors) -> Float[Array, "d e"]:
        """``K Q^T``."""
        return parameters.K @ parameters.Q.mT

    def from_matrix(self, W: Float[Any, "*trials d e"]) -> KeyQueryFactors:
        """Balanced factors ``U sqrt(s)`` and ``V sqrt(s)`` of ``W = U s V^T``.

        With a width below the rank of ``W`` they stand for the nearest matrix of that rank.
        """
        xp = W.__array_namespace__()
        width = self.shapes(*W.shape[-2:])["K"][1]
        U, values, V = xp.linalg.svd(W, full_matrices=False)
        kept = min(width, values.shape[-1])
        root = xp.sqrt(values[..., None, :kept])
        padding = [(0, 0)] * (W.ndim - 1) + [(0, width - kept)]
        K, Q = (U[..., :kept] * root, V[..., :kept, :].mT * root)
        return KeyQueryFactors(xp.pad(K, padding), xp.pad(Q, padding))

    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """Nuclear for Frobenius; for any other none is known."""
        return Nuclear() if geometry == Frobenius() else None

    def check_initial(self, arrays: Mapping[str, Any]) -> None:
        """Refuses ``K = Q = 0``.

        Raises:
            InvalidInputError: If both factors of a trial are zero.
        """
        zero = [~np.any(array, axis=(-2, -1)) for array in arrays.values()]
        if np.logical_and(*zero).any():
            raise InvalidInputError(
                "initial",
                "K = Q = 0 is a saddle point: the gradient is zero there and training never leaves",
                "Give a nonzero K or a nonzero Q",
            )

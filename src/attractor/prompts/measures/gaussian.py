"""Gaussian tokens: attention is affine."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from attractor.prompts.measures.arithmetic import (
    Generated,
    ScoreLine,
    checked,
    checked_dimension,
    checked_map,
    from_cumulants,
    square_root,
    traced,
)
from attractor.prompts.measures.contract import Measure, as_numpy
from attractor.support.errors import InvalidInputError


class Gaussian(Measure):
    """``N(m, Gamma)``, whose tilted mean is ``m + Gamma a`` and tilted covariance ``Gamma``.

    The covariance may be singular. Source: *Softmax as Linear Attention in the Large-Prompt Regime*
    (arXiv 2512.11784), attention over Gaussian tokens is affine.
    """

    _mean: Float[Any, "d"]
    _covariance: Float[Any, "d d"]

    def __init__(self, mean: Float[Any, "d"] | Any, covariance: Float[Any, "d d"] | Any) -> None:
        """Checks and stores the two moments.

        Args:
            mean: ``m``, ``(d,)``.
            covariance: ``Gamma``, ``(d, d)``, symmetric and positive semidefinite.

        Raises:
            InvalidInputError: If shapes do not fit, an entry is not finite, or the covariance is
                not symmetric or has a negative eigenvalue, beyond the rounding of its data type.
        """
        self._mean = checked("mean", mean, ("d",))
        d = self._mean.shape[0]
        matrix = checked("covariance", covariance, ("d", "d"))
        if matrix.shape != (d, d):
            raise InvalidInputError(
                "covariance", f"the shape is {matrix.shape}", f"Give ({d}, {d})"
            )
        if not traced(matrix):
            _check_semidefinite(np.asarray(matrix, dtype=np.float64), _rounding(covariance))
        self._covariance = (matrix + matrix.T) / 2

    @classmethod
    def isotropic(cls, dimension: int, variance: Float[Any, ""] | Any = 1.0) -> Gaussian:
        """``N(0, t^2 I)`` of a dimension and a variance ``t^2``.

        Raises:
            InvalidInputError: If the variance is not a number >= 0, or the dimension not an
                integer >= 1.
        """
        variance = checked("variance", variance, ())
        if not traced(variance) and variance < 0:
            raise InvalidInputError("variance", f"it is {float(variance):g}", "Give 0 or more")
        dimension = checked_dimension(dimension)
        return cls(np.zeros(dimension), variance * np.eye(dimension))

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self._mean.shape[-1]

    @property
    def mean(self) -> Float[Any, "d"]:
        """The mean of a token."""
        return self._mean

    @property
    def covariance(self) -> Float[Any, "d d"]:
        """The covariance of a token."""
        return self._covariance

    def with_noise(self, variance: Float[Any, ""] | Any) -> Gaussian:
        """``N(m, Gamma + t^2 I)``; see ``Measure.with_noise``."""
        noise = Gaussian.isotropic(self.dimension, variance)
        return Gaussian(self._mean, self._covariance + noise.covariance)

    def pushforward(
        self, matrix: Float[Any, "k d"] | Any, shift: Float[Any, "k"] | Any | None = None
    ) -> Gaussian:
        """``N(A m + b, A Gamma A^T)``; see ``Measure.pushforward``."""
        matrix, shift = checked_map(self.dimension, matrix, shift)
        return Gaussian(matrix @ self._mean + shift, matrix @ self._covariance @ matrix.T)

    def _log_normalizer(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows"]:
        return ((self._mean + self._image(direction) / 2) * direction).sum(-1)

    def _tilted_mean(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return self._mean + self._image(direction)

    def _tilted_covariance(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d d"]:
        d = self.dimension
        return jnp.broadcast_to(jnp.asarray(self._covariance), (*direction.shape[:-1], d, d))

    def _generated(self, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]) -> Generated:
        offset, covariance = as_numpy(self._mean) - line.center, as_numpy(self._covariance)
        a, P = line.direction, line.projection
        moved, turned = P @ offset, P @ covariance @ a
        return from_cumulants(
            q * (a @ offset) + q * q * (a @ covariance @ a / 2),
            moved[:, None, None] + q * turned[:, None, None],
            np.full(q.shape, np.trace(P @ covariance @ P.T)),
        )

    def _variance_proxy(self) -> float:
        return float(np.linalg.norm(as_numpy(self._covariance), 2))

    def _norm_moments(self, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "5"]:
        covariance = as_numpy(self._covariance)
        mean = as_numpy(self._mean) + covariance @ direction
        cumulants, power = [0.0], np.eye(len(mean))
        for n in range(1, 5):  # of |x|^2
            size = n * float(mean @ power @ mean)
            power = power @ covariance
            cumulants.append(2 ** (n - 1) * math.factorial(n - 1) * (float(np.trace(power)) + size))
        moments = [1.0]
        for n in range(1, 5):
            moments.append(
                sum(
                    math.comb(n - 1, k - 1) * cumulants[k] * moments[n - k] for k in range(1, n + 1)
                )
            )
        return np.array(moments)

    def _image(self, direction: Float[Array, "*batch d"]) -> Float[Array, "*rows d"]:
        return direction @ jnp.asarray(self._covariance)

    def _draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count d"]:
        factor = square_root(as_numpy(self._covariance))
        return as_numpy(self._mean) + random.normal(size=(count, self.dimension)) @ factor.T


def _rounding(given: Any) -> float:
    dtype = given.dtype if isinstance(given, np.ndarray | jax.Array) else np.dtype(np.float64)
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else float(np.finfo(np.float64).eps)


def centered(covariances: Float[np.ndarray, "law d d"]) -> Gaussian:
    """The laws ``N(0, Gamma)`` of many covariances as one, whose arrays have an axis of laws.

    Args:
        covariances: Symmetric and positive semidefinite matrices.

    Raises:
        InvalidInputError: If one is not, beyond rounding.
    """
    laws, d = covariances.shape[:2]
    transposed = np.swapaxes(covariances, 1, 2)
    symmetric = (covariances + transposed) / 2
    tolerance = _tolerance(covariances, _rounding(covariances))
    skew = np.abs(covariances - transposed).max((1, 2))
    refused = (skew > tolerance) | (np.linalg.eigvalsh(symmetric)[:, 0] < -tolerance)
    # Where one is refused, the law of it alone says why.
    one = Gaussian(np.zeros(d), covariances[int(refused.argmax())])
    return jax.tree.unflatten(jax.tree.structure(one), [np.zeros((laws, d)), symmetric])


def _tolerance(matrices: Float[np.ndarray, "*law d d"], rounding: float) -> Float[Any, "*law"]:
    return 100 * rounding * matrices.shape[-1] * np.abs(matrices).max((-2, -1))


def _check_semidefinite(matrix: Float[np.ndarray, "d d"], rounding: float) -> None:
    tolerance = _tolerance(matrix, rounding)
    skew = np.abs(matrix - matrix.T)
    if skew.max() > tolerance:
        row, column = (int(i) for i in np.unravel_index(skew.argmax(), skew.shape))
        raise InvalidInputError(
            "covariance",
            f"it is not symmetric: the entry at ({row}, {column}) is {matrix[row, column]:g}, "
            f"the one at ({column}, {row}) is {matrix[column, row]:g}",
            "Give a symmetric positive semidefinite matrix",
        )
    lowest = np.linalg.eigvalsh((matrix + matrix.T) / 2)[0]
    if lowest < -tolerance:
        raise InvalidInputError(
            "covariance",
            f"it has a negative eigenvalue, {lowest:g}",
            "Give a symmetric positive semidefinite matrix",
        )

"""Covariances of inputs that the literature uses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import ArrayLike, Float

from attractor.prompts.measures.arithmetic import square_root
from attractor.support.checks import as_number, check_count, check_flags, check_kinds, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64


def kac_murdock_szego(dimension: int, correlation: float) -> Float[np.ndarray, "d d"]:
    """The Kac-Murdock-Szego covariance: correlations that decay with distance.

    ``Sigma_ij = correlation^|i - j|``.

    Args:
        dimension: Number of inputs.
        correlation: Between neighbors, strictly between -1 and 1.

    Raises:
        InvalidInputError: If the dimension is not a positive integer, or the matrix would not be
            positive definite.
    """
    dimension = check_count("dimension", dimension, 1, 2**14)
    correlation = check_number("correlation", correlation, above=-1.0, below=1.0, example=0.5)
    places = np.arange(dimension)
    return correlation ** np.abs(places[:, None] - places)


_OFFICIAL_DIMENSION, _OFFICIAL_CORRELATION, _OFFICIAL_NOISE = 5, 0.5, 0.1
_LARGEST = 1e100
"""Beyond it the cubes of covariances, of which risks are made, leave floating point."""


@dataclass(frozen=True, eq=False)
class RegressionTask:
    """In-context linear regression: predict ``w^T x_q`` from a prompt of pairs ``(x, y)``.

    Weights ``w ~ N(0, weight_variance I)`` are drawn for each prompt and unknown. Its tokens are
    ``(x, y)`` with ``x ~ N(0, covariance)`` and ``y = w^T x + noise``, independent given ``w``. The
    query is ``(x_q, 0)`` with ``x_q ~ N(0, query_covariance)``, its label ``w^T x_q + noise``.

    The ``risk`` of a predictor is ``E (prediction - w^T x_q)^2 / 2``, with the half of the theory
    and without the noise of the query's label, which nothing can predict; ``mean_squared_error``
    gives what a training loop shows.

    Attributes:
        covariance: Covariance of the inputs of the prompt, positive definite.
        query_covariance: Covariance of the input of the query, positive semidefinite; that of the
            prompt if not given.
        weight_variance: Variance of each weight.
        label_noise: Variance of the noise in the labels of the prompt.
        query_noise: Variance of the noise in the label of the query.

    Raises:
        InvalidInputError: If a covariance is not symmetric, not (semi)definite or of another size
            than the other, the weights have no variance, or a variance of noise is negative.
    """

    covariance: Float[np.ndarray, "d d"]
    query_covariance: Float[np.ndarray, "d d"] = None  # pyright: ignore[reportAssignmentType]
    weight_variance: float = 1.0
    label_noise: float = 0.0
    query_noise: float = 0.0

    def __post_init__(self) -> None:
        """Casts and validates."""
        covariance = check_covariance("covariance", self.covariance)
        if np.linalg.eigvalsh(covariance)[0] <= _rounding(covariance):
            raise InvalidInputError(
                "covariance",
                "it is singular or not positive definite",
                "Give a positive definite matrix; drop inputs that are combinations of others",
            )
        queries = covariance
        if self.query_covariance is not None:
            queries = check_covariance("query_covariance", self.query_covariance)
        if queries.shape != covariance.shape:
            raise InvalidInputError(
                "query_covariance",
                f"its shape is {queries.shape}, that of covariance {covariance.shape}",
                "Give both as square matrices of one size",
            )
        if np.linalg.eigvalsh(queries)[0] < -_rounding(queries) or not queries.any():
            raise InvalidInputError(
                "query_covariance",
                "it is zero or has a negative eigenvalue",
                "Give a positive semidefinite matrix that is not zero",
            )
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "query_covariance", queries)
        for name in ("weight_variance", "label_noise", "query_noise"):
            object.__setattr__(self, name, _variance(name, getattr(self, name)))
        if self.weight_variance == 0:
            raise InvalidInputError(
                "weight_variance", "it is 0", "Give a positive variance; else all labels are noise"
            )

    @classmethod
    def official(cls, *, as_run: bool = False) -> RegressionTask:
        """The configuration of the code published with the large-prompt paper.

        Five inputs with the Kac-Murdock-Szego covariance of correlation 0.5, weights of variance
        1/5, noise of variance 0.1 in the labels of prompt and query.

        Args:
            as_run: Whether to follow the data as the published code draws them: it multiplies
                inputs of the prompt by the Cholesky factor ``R`` of the covariance twice, so that
                theirs is ``R Sigma R^T``, and inputs of the query never, so that theirs is ``I``.

        Source:
            The code of Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt
            Regime" (arXiv 2512.11784).
        """
        check_flags(as_run=as_run)
        covariance = kac_murdock_szego(_OFFICIAL_DIMENSION, _OFFICIAL_CORRELATION)
        queries = covariance
        if as_run:
            factor = np.linalg.cholesky(covariance)
            covariance, queries = factor @ covariance @ factor.T, np.eye(_OFFICIAL_DIMENSION)
        return cls(
            covariance,
            queries,
            weight_variance=1 / _OFFICIAL_DIMENSION,
            label_noise=_OFFICIAL_NOISE,
            query_noise=_OFFICIAL_NOISE,
        )

    def equals(self, other: RegressionTask) -> bool:
        """Whether another task has the same law of prompts and queries, number by number."""
        check_kinds(other=(other, RegressionTask))
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    @property
    def dimension(self) -> int:
        """Number of inputs; tokens have one entry more."""
        return len(self.covariance)

    @property
    def query_factor(self) -> Float[np.ndarray, "d d"]:
        """A square root ``R`` of the query's covariance ``R R^T``, which may be singular."""
        return square_root(self.query_covariance)

    def token_covariance(
        self, weights: Float[ArrayLike, "*batch d"]
    ) -> Float[np.ndarray, "*batch d+1 d+1"]:
        """Covariance of the tokens of a prompt, given its weights; their mean is zero.

        ``[[S, S w], [w^T S, w^T S w + label_noise]]``.

        Args:
            weights: The weights ``w``, of one prompt or more.

        Raises:
            InvalidInputError: If there are not as many weights as inputs.
        """
        w = as_float64("weights", weights, largest=LARGEST)
        if w.ndim < 1 or w.shape[-1] != self.dimension:
            raise InvalidInputError(
                "weights",
                f"their shape is {w.shape}",
                f"Give {self.dimension} along the last axis, one for each input",
            )
        correlation = w @ self.covariance
        label = np.sum(correlation * w, axis=-1) + self.label_noise
        result = np.empty((*w.shape[:-1], self.dimension + 1, self.dimension + 1))
        result[..., :-1, :-1] = self.covariance
        result[..., :-1, -1] = result[..., -1, :-1] = correlation
        result[..., -1, -1] = label
        return result

    def mean_squared_error(self, risk: Any) -> Any:
        """Mean squared error on noisy labels of queries, ``2 risk + query_noise``.

        Args:
            risk: One or more risks.
        """
        if not isinstance(risk, xr.DataArray | jax.Array):
            risk = as_float64("risk", risk, largest=LARGEST)
            risk = risk if risk.ndim else float(risk)
        return 2 * risk + self.query_noise

    @property
    def risk_of_zero(self) -> float:
        """Risk of predicting zero, ``weight_variance tr(query_covariance) / 2``."""
        return self.weight_variance * float(np.trace(self.query_covariance)) / 2


def check_covariance(argument: str, value: ArrayLike) -> np.ndarray:
    """A covariance that is square and symmetric, of entries whose powers floats hold."""
    matrix = as_float64(argument, value, largest=LARGEST)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InvalidInputError(
            argument, f"its shape is {matrix.shape}", "Give a square matrix, inputs by inputs"
        )
    largest = float(np.abs(matrix).max())
    if largest and not 1 / _LARGEST < largest < _LARGEST:
        raise InvalidInputError(
            argument,
            f"its largest entry is {largest:.3g}, and its powers leave floating point",
            "Give inputs in other units, so that it is near 1",
        )
    if np.abs(matrix - matrix.T).max() > 1e-8 * np.abs(matrix).max():
        raise InvalidInputError(
            argument, "it is not symmetric", "Give a covariance; (M + M^T) / 2 is symmetric"
        )
    symmetric = (matrix + matrix.T) / 2
    symmetric.setflags(write=False)
    return symmetric


def _rounding(matrix: np.ndarray) -> float:
    """The rounding error of the eigenvalues of a matrix."""
    return len(matrix) * np.finfo(np.float64).eps * float(np.abs(matrix).max())


def _variance(argument: str, value: Any) -> float:
    variance = as_number(value)
    if not 0 <= variance <= LARGEST:
        raise InvalidInputError(
            argument, f"it is {value!r}", f"Give a variance from 0 to {LARGEST:g}"
        )
    return variance

"""Variables of Newton's method in a smooth norm: the multipliers alone, or the matrix as well.

With ``M = sum_j lambda_j a_j b_j^T``, solutions have ``M`` equal to the gradient of
``||W||_p^2 / 2`` or, which is the same, W equal to that of ``||M||_q^2 / 2``. The one of the two
norms whose exponent exceeds two has a bounded second derivative. For p < 2 it is the dual norm,
and W follows from the multipliers. For p > 2 it is the norm itself: W is a variable beside the
multipliers, and M meets the gradient only in the end. Either way, what is left to solve is a
system in the multipliers.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from attractor.margin.batching.batches import Batch
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.smooth.norm_expansions import Expansion, kept_curvature

_LEAST_CURVATURE = 1e-8

_Matrices = Float[np.ndarray, "k d e"]
_Vectors = Float[np.ndarray, "k m"]
_Exponents = Float[np.ndarray, "k 1 1"]
_Residuals = Float[np.ndarray, "k"]
_System = tuple[Float[np.ndarray, "k m m"], _Vectors]


@runtime_checkable
class Expansions(Protocol):
    """Expansions of norms of one kind, for the constraints of a batch."""

    def choose(self, index: Any) -> Expansions:
        """Chooses instances."""
        ...

    def at(self, Z: _Matrices, exponent: _Exponents) -> Expansion:
        """The expansion at Z of the norm with such an exponent."""
        ...


@dataclass(frozen=True)
class Evaluation(Batch):
    """The margins, the residual of stationarity and the expansion of the norm at an iterate.

    Attributes:
        W: The matrices.
        margins: ``a_j^T W b_j``.
        strain: ``M`` less the gradient of ``||W||^2 / 2``.
        exponent: Of the smooth norm.
        expansion: Of the smooth norm.
    """

    W: _Matrices
    margins: _Vectors
    strain: _Matrices
    exponent: _Exponents
    expansion: Expansion


@dataclass(frozen=True)
class Variables(Batch, abc.ABC):
    """The linear algebra of one choice of variables.

    Attributes:
        scaled: The constraints.
        expansions: Of the norm that is smooth.
    """

    scaled: ScaledConstraints
    expansions: Expansions

    @abc.abstractmethod
    def evaluate(self, multipliers: _Vectors, W: _Matrices, exponent: _Exponents) -> Evaluation:
        """Evaluates the margins and the expansion at an iterate."""

    @abc.abstractmethod
    def system(self, evaluation: Evaluation, residual: _Residuals) -> _System:
        """Change of the margins by a Newton step: a matrix times that of multipliers, plus more."""

    @abc.abstractmethod
    def step(self, evaluation: Evaluation, residual: _Residuals, change: _Vectors) -> _Matrices:
        """The step of W that goes with a change of the multipliers."""


@dataclass(frozen=True)
class MultipliersAlone(Variables):
    """For p < 2: W is the gradient of half the squared dual norm."""

    def evaluate(self, multipliers: _Vectors, W: _Matrices, exponent: _Exponents) -> Evaluation:
        """The W that the multipliers make, whatever W was."""
        expansion = self.expansions.at(self.scaled.combine(multipliers), exponent)
        W = expansion.gradient
        return Evaluation(W, self.scaled.margins(W), np.zeros_like(W), exponent, expansion)

    def system(self, evaluation: Evaluation, residual: _Residuals) -> _System:
        """The Hessian of ``||M||_q^2 / 2`` in the multipliers."""
        expansion = evaluation.expansion
        matrix = expansion.frame.gram(_curvature(evaluation, residual))
        normal = evaluation.margins / expansion.norm[:, 0]
        matrix -= (evaluation.exponent - 2) * normal[:, :, None] * normal[:, None]
        return matrix, np.zeros_like(normal)

    def step(self, evaluation: Evaluation, residual: _Residuals, change: _Vectors) -> _Matrices:
        """Zero: W follows from the multipliers."""
        return np.zeros_like(evaluation.W)


@dataclass(frozen=True)
class MatrixAndMultipliers(Variables):
    """For p > 2: W is varied too, by the inverse of the Hessian of half its squared norm."""

    def evaluate(self, multipliers: _Vectors, W: _Matrices, exponent: _Exponents) -> Evaluation:
        """Evaluates at W and the multipliers."""
        expansion = self.expansions.at(W, exponent)
        strain = self.scaled.combine(multipliers) - expansion.gradient
        return Evaluation(W, self.scaled.margins(W), strain, exponent, expansion)

    def system(self, evaluation: Evaluation, residual: _Residuals) -> _System:
        """The inverse Hessian of ``||W||_p^2 / 2`` between the constraints."""
        inverse, along, factor = _inverse(evaluation, residual)
        frame = evaluation.expansion.frame
        matrix = frame.gram(inverse)
        normal = self.scaled.margins(frame.leave(along))
        matrix += (factor[:, 0] * normal)[:, :, None] * normal[:, None]
        return matrix, self.scaled.margins(_solve(evaluation, residual, evaluation.strain))

    def step(self, evaluation: Evaluation, residual: _Residuals, change: _Vectors) -> _Matrices:
        """The step that takes the strain away, to first order."""
        return _solve(evaluation, residual, self.scaled.combine(change) + evaluation.strain)


def _inverse(
    evaluation: Evaluation, residual: _Residuals
) -> tuple[np.ndarray, np.ndarray, _Exponents]:
    """D, u and f of the inverse Hessian ``diag(D) + f u u^T`` in the frame."""
    expansion, excess = evaluation.expansion, evaluation.exponent - 2
    inverse = 1 / _curvature(evaluation, residual)
    along = inverse * expansion.normal
    share = (along * expansion.normal).sum((-1, -2), keepdims=True)
    return inverse, along, excess / (1 - excess * share)


def _curvature(evaluation: Evaluation, residual: _Residuals) -> _Matrices:
    residual = residual[:, None, None]
    return kept_curvature(evaluation.expansion, evaluation.exponent, residual, _LEAST_CURVATURE)


def _solve(evaluation: Evaluation, residual: _Residuals, G: _Matrices) -> _Matrices:
    """The inverse Hessian at a matrix."""
    inverse, along, factor = _inverse(evaluation, residual)
    frame = evaluation.expansion.frame
    inside = frame.enter(G)
    projection = (along * inside).sum((-1, -2), keepdims=True)
    return frame.leave(inverse * inside + factor * projection * along)

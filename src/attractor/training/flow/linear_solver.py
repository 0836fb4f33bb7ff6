"""Linear systems of implicit steps, solved one at a time."""

from __future__ import annotations

from typing import Any

import jax
import lineax
from jaxtyping import Array, Float, Int

from attractor.geometry.jax_decompositions import one_at_a_time

_factorize = one_at_a_time(lambda matrix: jax.scipy.linalg.lu_factor(matrix))
_solve = one_at_a_time(lambda *system: jax.scipy.linalg.lu_solve(system[:2], system[2]))

_Factors = tuple[Float[Array, "k k"], Int[Array, "k"]]


class OneAtATimeLU(lineax.AbstractLinearSolver[_Factors]):
    """Lineax's LU, with no batched call of LAPACK that another program could wait for.

    Systems are square, and vectors are arrays.
    """

    def init(self, operator: lineax.AbstractLinearOperator, options: dict[str, Any]) -> _Factors:
        """Factorizes the matrix."""
        return _factorize(operator.as_matrix())

    def compute(
        self, state: _Factors, vector: Float[Array, "k"] | Any, options: dict[str, Any]
    ) -> tuple[Float[Array, "k"], lineax.RESULTS, dict[str, Any]]:
        """Solves for one right-hand side."""
        return _solve(*state, vector), lineax.RESULTS.successful, {}

    def transpose(
        self, state: _Factors, options: dict[str, Any]
    ) -> tuple[_Factors, dict[str, Any]]:
        """Not needed: nothing differentiates through the flow.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("the flow is not differentiated")

    def conj(self, state: _Factors, options: dict[str, Any]) -> tuple[_Factors, dict[str, Any]]:
        """The matrices are real."""
        return state, options

    def assume_full_rank(self) -> bool:
        """As any LU does."""
        return True

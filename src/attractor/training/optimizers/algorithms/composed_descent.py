"""Spectral descent of the product of keys and queries: it is the product whose steps have a length.

Sources: Bernstein and Newhouse, *Modular Duality in Deep Learning* (arXiv 2410.21265), for steps of
layers that are composed; Cesista et al., *LoRA-Muon* (arXiv 2606.12921), and Keigwin et al.,
*Towards Compositional Steepest Descent* (2026), for a half of the step for each factor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attractor.attention.gradients.conditional import cond_for_any
from attractor.attention.parameterization import KeyQueryFactors, Parameters
from attractor.attention.scaled import leaf_directions
from attractor.geometry import Spectral
from attractor.geometry.jax_decompositions import singular_value_decomposition
from attractor.support.checks import check_choice
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.leaves import as_scaled
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.schedules import Numbers
from attractor.training.optimizers.table import register_optimizer

_SPECTRAL = Spectral()
_polar_factor = _SPECTRAL.steepest_descent_direction


@register_optimizer("composed spectral descent", "composed", hyperparameters=("learning_rate",))
def composed_spectral_descent(learning_rate: Numbers, *, method: str = "exact") -> Optimizer:
    """Spectral descent of ``W = K Q^T`` by steps of K and Q: their change of W has a length.

    With G the gradient in W, those in the factors are ``G_K = G Q`` and ``G_Q = G^T K``. All steps
    have ``||dK Q^T + K dQ^T|| <= learning_rate`` in the spectral norm, which is how far W moves to
    first order, and turn with the factors: (K R, Q R) has the steps (dK R, dQ R), R orthogonal.

        "exact"   dK Q^T + K dQ^T = -learning_rate polar(G), by the smallest such dK and dQ
        "split"   dK = -learning_rate/2 polar(G_K C) C, C = (Q^T Q)^(-1/2); so does dQ
        "scaled"  dK = -learning_rate/2 polar(G_K) / ||Q||; so does dQ

    where ``polar(U s V^T) = U V^T``. The first is the steepest of all steps of that length, with
    ``dK = L Q``, ``dQ = L^T K`` and ``K K^T L + L Q Q^T = -learning_rate polar(G)``. Every matrix
    is such a sum if K or Q has independent rows, so that it needs a width of at least d or e; at a
    start where neither has, it is the second. That is the steepest step that gives each factor
    half of the length, at any width; where K and Q both have independent rows it moves W as the
    first does. The third needs no more than the two gradients. Rows of attention that are further
    ahead than others by a score gap of 36 are not moved: see ``spectral_descent``.

    Args:
        learning_rate: What W moves by in the spectral norm, to first order, positive.
        method: ``"exact"``, ``"split"`` or ``"scaled"``. In a loop of your own, the first two need
            the gradient in W: ``update(..., matrix_gradient=G)``.

    Raises:
        InvalidInputError: If an argument is out of its range; in training, if something else than
            keys and queries is trained, or ``"exact"`` is used with fewer columns than d and e.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> step = at.composed_spectral_descent(0.03)
        >>> run = at.train(tokens, head, step, steps=1000, parameterization="KQ")
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([0.86, 0.95])
    """
    check_choice("method", method, ("exact", "split", "scaled"))
    rises = {"exact": _exact, "split": _split, "scaled": _scaled}

    def init(params: PyTree) -> optax.EmptyState:
        factors = _factors(params)
        columns, rows = factors.K.shape[-1], min(len(factors.K), len(factors.Q))
        if method == "exact" and columns < rows:
            raise InvalidInputError(
                "parameterization",
                f"K and Q have {columns} columns, and no known formula gives the steepest step "
                f"of fewer than {rows}",
                f"Give a width of {rows} or more, or method='split' or 'scaled'",
            )
        return optax.EmptyState()

    def update(
        updates: PyTree,
        state: optax.EmptyState,
        params: PyTree | None = None,
        *,
        matrix_gradient: Any = None,
        **further: Any,
    ) -> tuple[PyTree, optax.EmptyState]:
        if params is None or (matrix_gradient is None and method != "scaled"):
            raise InvalidInputError(
                "matrix_gradient",
                "the step needs the factors, and the gradient in their product",
                "Call update(gradient, state, params, matrix_gradient=G)",
            )
        factors, slopes = _factors(params), _factors(updates)
        G = None if matrix_gradient is None else leaf_directions(as_scaled(matrix_gradient))
        step = [-learning_rate * array for array in rises[method](factors, slopes, G)]
        return jax.tree.unflatten(jax.tree.structure(params), step), state

    return Optimizer(
        init,
        update,
        geometry=None,
        gradient_scale="per_array",
        settings={"learning_rate": learning_rate, "method": method},
        needs=frozenset() if method == "scaled" else frozenset({"matrix_gradient"}),
        of_factors=True,
        matrix_geometry=_SPECTRAL if method == "exact" else None,
    )


def _factors(tree: PyTree) -> KeyQueryFactors:
    """The keys and queries that are all of some parameters.

    Raises:
        InvalidInputError: If they are something else.
    """
    inner = tree.attention if isinstance(tree, Parameters) and tree.head is None else tree
    if not isinstance(inner, KeyQueryFactors) or inner.K is None or inner.Q is None:
        raise InvalidInputError(
            "parameterization",
            "what is trained is not keys and queries alone, or they are empty",
            "Give 'KQ' with a fixed head; in a loop of your own, KeyQueryFactors(K, Q)",
        )
    return inner


class _Decomposed(NamedTuple):
    """A factor ``basis diag(values) turned``, all of its rows in the basis.

    Values that rounding alone could have made are zero.
    """

    basis: Float[Array, "d d"]
    values: Float[Array, "d"]
    turned: Float[Array, "d width"]


def _decomposed(F: Float[Array, "d width"]) -> _Decomposed:
    rows, width = F.shape
    padded = jnp.pad(F, [(0, 0), (0, max(0, rows - width))])
    basis, values, turned = singular_value_decomposition(padded)
    kept = values > (rows + width) * jnp.finfo(F.dtype).eps * values[0]
    return _Decomposed(basis, jnp.where(kept, values, 0), turned[:, :width])


def _exact(
    factors: KeyQueryFactors, slopes: KeyQueryFactors, G: Float[Array, "d e"]
) -> tuple[Array, Array]:
    """``D = L Q Q^T + K K^T L`` is diagonal in L in the bases of K and Q."""
    K, Q = _decomposed(factors.K), _decomposed(factors.Q)
    turned = K.basis.T @ _polar_factor(G) @ Q.basis
    sizes = jnp.hypot(K.values[:, None], Q.values)
    share = turned * _inverse(sizes)
    of_K = K.basis @ (share * (Q.values * _inverse(sizes))) @ Q.turned
    of_Q = Q.basis @ (share * (K.values[:, None] * _inverse(sizes))).T @ K.turned
    beyond = (K.values == 0).any() & (Q.values == 0).any()

    def halves(operand: tuple[Array, Array]) -> tuple[Array, Array]:
        split = _halves(K, Q, G)
        return jnp.where(beyond, split[0], operand[0]), jnp.where(beyond, split[1], operand[1])

    return cond_for_any(beyond, halves, lambda operand: operand, (of_K, of_Q))


def _split(
    factors: KeyQueryFactors, slopes: KeyQueryFactors, G: Float[Array, "d e"]
) -> tuple[Array, Array]:
    return _halves(_decomposed(factors.K), _decomposed(factors.Q), G)


def _halves(K: _Decomposed, Q: _Decomposed, G: Float[Array, "d e"]) -> tuple[Array, Array]:
    """``G_K C = G V R^T`` for ``Q = V q R^T``, of which directions with q = 0 are no part."""

    def half(other: _Decomposed, slope: Array) -> Array:
        along = _polar_factor(slope @ (other.basis * (other.values > 0)))
        return along * (_inverse(other.values) / 2) @ other.turned

    return half(Q, G), half(K, G.T)


def _scaled(
    factors: KeyQueryFactors, slopes: KeyQueryFactors, G: Float[Array, "d e"] | None
) -> tuple[Array, Array]:
    def half(other: Array, slope: Array) -> Array:
        return _polar_factor(slope) * (_inverse(_SPECTRAL.norm(other)) / 2)

    return half(factors.Q, slopes.K), half(factors.K, slopes.Q)


def _inverse(values: Float[Array, "..."]) -> Float[Array, "..."]:
    """``1 / values``, and zero for zero."""
    return jnp.where(values == 0, 0, 1 / jnp.where(values == 0, 1, values))

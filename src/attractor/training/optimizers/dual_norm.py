"""Gradients divided by their dual norms, each array by its own or all by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled, direction
from attractor.errors import InvalidInputError
from attractor.geometry import Lp, Schatten, singular_values
from attractor.geometry.exponent import positive_power
from attractor.training.optimizers.hyperparameters import Number
from attractor.training.optimizers.leaves import log_size, square_sum, unit


def unit_in_dual_norm(gradient: PyTree, geometries: PyTree, per_factor: bool) -> PyTree:
    """The gradient divided by its dual norm; zero stays zero.

    Args:
        gradient: Arrays.
        geometries: An l_p or Schatten geometry for each.
        per_factor: Whether each array is divided by the norm of its own; otherwise they have one
            geometry in common, and are divided by the norm of all together.
    """
    if per_factor:
        return jax.tree.map(
            lambda geometry, leaf: unit(leaf, _power_sum(geometry), geometry.q),
            geometries,
            gradient,
        )
    if not jax.tree.leaves(gradient):
        return gradient
    geometry = _only(geometries)
    return unit(gradient, _power_sum(geometry), geometry.q)


def unit_with_eps(
    gradient: PyTree[Scaled],
    geometries: PyTree,
    per_factor: bool,
    log_eps: Number,
) -> PyTree:
    """``G / (||G|| + eps)`` in the dual norm, of a gradient of any magnitude.

    Args:
        gradient: Arrays with their scales.
        geometries: An l_p or Schatten geometry for each.
        per_factor: As for ``unit_in_dual_norm``.
        log_eps: The logarithm of eps.
    """
    if per_factor:
        return jax.tree.map(
            lambda geometry, leaf: unit_with_eps(leaf, geometry, False, log_eps),
            geometries,
            gradient,
        )
    share = jax.nn.sigmoid(log_dual_norm(gradient, geometries) - log_eps)  # ||G|| / (||G|| + eps)
    whole = unit_in_dual_norm(direction(gradient), geometries, False)
    return jax.tree.map(lambda leaf: leaf * share, whole)


def log_dual_norm(gradient: PyTree[Scaled], geometries: PyTree) -> Float[Array, ""]:
    """The logarithm of the dual norm of all arrays together, minus infinity for zero.

    Raises:
        InvalidInputError: If their geometries differ.
    """
    geometry = _only(geometries)
    return log_size(gradient, _power_sum(geometry), geometry.q)


def _power_sum(geometry: Lp | Schatten) -> Callable[[Array], Array]:
    """The q-th power of the dual norm."""

    def apply(matrix: Array) -> Array:
        if isinstance(geometry, Schatten) and geometry.q != 2:
            matrix = singular_values(matrix)[None]
        if geometry.q == 2:
            return square_sum(matrix)
        return positive_power(abs(matrix), geometry.q).sum((-2, -1))

    return apply


def _only(geometries: PyTree) -> Any:
    """The one geometry of all arrays."""
    found = set(jax.tree.leaves(geometries))
    if len(found) > 1:
        raise InvalidInputError(
            "per_factor",
            "arrays with different p have no norm in common",
            "Set per_factor=True, or give all the same p",
        )
    return found.pop()

"""Steepest descent in any geometry: by signs, by one coordinate, by orthogonal matrices."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention.scaled import Scaled
from attractor.geometry import (
    BlockMaximum,
    BlockSum,
    Geometry,
    Lp,
    Schatten,
    Spectral,
    get_geometry,
)
from attractor.training.optimizers.algorithms.gradient_descent import time_of_unit_step
from attractor.training.optimizers.checks import Number
from attractor.training.optimizers.leaves import (
    as_matrix,
    as_scaled,
    largest_entry,
    memoryless,
    on_matrices,
    square_sum,
    unit,
    with_one_scale,
)
from attractor.training.optimizers.newton_schulz import (
    Coefficients,
    check_coefficients,
    polar_factor,
)
from attractor.training.optimizers.optimizer import SINGULAR_POWERS, GradientScale, Optimizer
from attractor.training.optimizers.schedules import Numbers
from attractor.training.optimizers.table import register_optimizer


@register_optimizer(
    "steepest descent",
    "steepest",
    hyperparameters=("learning_rate", "weight_decay"),
    geometry=lambda _, norm: get_geometry(norm),
)
def steepest_descent(
    learning_rate: Numbers, geometry: Geometry | str, *, weight_decay: Numbers = 0.0
) -> Optimizer:
    """Steepest descent ``W <- W - learning_rate * argmax {<grad L(W), D> : ||D|| <= 1}``.

    Every array of parameters takes a step of the same length in the norm of the geometry, and a
    zero step where its gradient is exactly zero. Vectors count as matrices of one column, and
    axes beyond the second as columns.

    In Schatten norms with p > 2, the spectral one among them, small singular values of the
    gradient count by their power ``1 / (p - 1)``, and they are no more exact than roundings of the
    largest: see ``spectral_descent``.

    Args:
        learning_rate: The length of a step, positive; or a schedule of it.
        geometry: The norm, or its name, such as "l_inf" or "spectral".
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If the learning rate is not a positive finite number, the weight decay
            is negative, or there is no such geometry.
    """
    norm = get_geometry(geometry)
    return Optimizer(
        **_parts(norm, learning_rate),
        settings={"learning_rate": learning_rate, "geometry": norm.name},
        weight_decay=weight_decay,
    )


@register_optimizer("sign descent", "sign", hyperparameters=("learning_rate", "weight_decay"))
def sign_descent(learning_rate: Numbers, *, weight_decay: Numbers = 0.0) -> Optimizer:
    """Sign descent ``W <- W - learning_rate * sign(grad L(W))``.

    This is steepest descent in the largest absolute entry. The signs are those of the true
    gradient, however far apart the magnitudes of its entries.

    Args:
        learning_rate: What every entry moves by, positive; or a schedule of it.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If the learning rate is not a positive finite number, or the weight
            decay is negative.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.sign_descent(0.03), steps=1000)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([0.95, 0.95])
    """
    return Optimizer(
        **_parts(Lp(math.inf), learning_rate),
        settings={"learning_rate": learning_rate},
        weight_decay=weight_decay,
    )


@register_optimizer(
    "greedy coordinate descent", "greedy", hyperparameters=("learning_rate", "weight_decay")
)
def greedy_coordinate_descent(learning_rate: Numbers, *, weight_decay: Numbers = 0.0) -> Optimizer:
    """Greedy coordinate descent: only the entry with the largest slope moves.

    This is steepest descent in the sum of absolute entries of all arrays together. Of several
    largest entries the first one moves, in the order of the arrays among the parameters.

    Args:
        learning_rate: What the entry moves by, positive; or a schedule of it.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If the learning rate is not a positive finite number, or the weight
            decay is negative.
    """

    def log_time_step(gradient: PyTree[Scaled], **further: Array) -> Float[Array, ""]:
        plain, scale = with_one_scale(gradient)
        sizes = [jnp.abs(leaf).max() for leaf in jax.tree.leaves(plain)]
        return time_of_unit_step(learning_rate, scale + jnp.log(jnp.stack(sizes).max()))

    return Optimizer(
        *memoryless(learning_rate, largest_entry),
        geometry=Lp(1),
        gradient_scale="global",
        settings={"learning_rate": learning_rate},
        log_time_step=log_time_step,
        weight_decay=weight_decay,
    )


@register_optimizer(
    "spectral descent",
    "spectral",
    hyperparameters=("learning_rate", "weight_decay"),
    coefficients=check_coefficients,
)
def spectral_descent(
    learning_rate: Numbers,
    *,
    method: str = "exact",
    iterations: int | None = None,
    coefficients: Coefficients = "muon",
    weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Spectral descent ``W <- W - learning_rate * U V^T`` with ``grad L(W) = U s V^T``.

    This is steepest descent in the largest singular value: Muon without its momentum.

    All singular values count alike, but the gradient is one array of floating point. A row of
    attention whose score gap is larger by m has a gradient of about ``exp(-m)`` beside the others,
    and a direction that depends on it alone is known to about ``1e-16 exp(m)``. From m = 36 on it
    is lost, and is not moved until the other gaps have grown. In exact arithmetic it would be moved
    as far as the first (docs/accuracy.md).

    Args:
        learning_rate: What every singular direction moves by, positive; or a schedule of it.
        method: ``"exact"`` gives ``U V^T`` as exactly as the roundings of the gradient leave it
            known: to about ``1e-15 s_1 / s_i`` along a singular value ``s_i``. Those that rounding
            alone could have made do not count. ``"newton-schulz"`` gives what Muon takes for it
            (``newton_schulz_values``), so that it descends the geometry only roughly.
        iterations: Number of Newton-Schulz iterations, 1 to 100; None for as many as there are
            triples of coefficients, and five of one. ``"exact"`` has none.
        coefficients: Those of the iterations, by name or as triples: see ``newton_schulz_values``.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range, or there are coefficients or
            iterations where the method is exact.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.spectral_descent(0.03), steps=1000)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([0.86, 0.95])
    """
    polar = polar_factor(method, coefficients, iterations)
    parts = _parts(Spectral(), learning_rate)
    if polar.triples is not None:
        _, update = memoryless(learning_rate, lambda gradient: on_matrices(polar, gradient))
        parts |= {"update": update, "log_time_step": None, "of_singular_values": False}
    return Optimizer(
        **parts,
        settings={"learning_rate": learning_rate, **polar.settings("iterations")},
        weight_decay=weight_decay,
    )


def _parts(geometry: Geometry, learning_rate: Number) -> dict[str, Any]:
    """What steepest descent in a norm is made of, but for its name and settings."""

    def log_time_step(gradient: PyTree[Scaled], **further: Array) -> Float[Array, ""]:
        plain, scale = with_one_scale(gradient)
        sizes = [_dual_norm(geometry, as_matrix(leaf)) for leaf in jax.tree.leaves(plain)]
        # Signs are the steepest direction of all leaves together; other steps of several leaves
        # are not those of one norm at one speed.
        if len(sizes) > 1 and geometry != Lp(math.inf):
            return jnp.asarray(jnp.nan)
        return time_of_unit_step(learning_rate, scale + jnp.log(sum(sizes)))

    gradient_scale, rise = _rise(geometry)
    init, update = memoryless(learning_rate, rise)
    return {
        "init": init,
        "update": update,
        "geometry": geometry,
        "gradient_scale": gradient_scale,
        "log_time_step": log_time_step,
        "steps_by_array": True,
        "of_singular_values": geometry in SINGULAR_POWERS,
    }


def _dual_norm(geometry: Geometry, G: Float[Array, "d e"]) -> Float[Array, ""]:
    """``||G||_dual``, which for a Schatten norm is taken from the steepest direction D: ``<G, D>``.

    A compiled step has the direction already, and is spared a second decomposition of G.
    """
    if not isinstance(geometry, Schatten) or geometry.p == 2:
        return geometry.dual_norm(G)
    scale = jnp.abs(G).max(initial=0)
    scale = jnp.where(scale == 0, 1, scale)
    return (G / scale * geometry.steepest_descent_direction(G)).sum() * scale


def _rise(geometry: Geometry) -> tuple[GradientScale, Any]:
    """The scale of gradients that the steepest direction takes, and the direction as a function."""
    if geometry == Lp(2):
        squares = functools.partial(unit, power_sum=square_sum, exponent=2)
        return "per_array", lambda gradient: jax.tree.map(squares, gradient)
    if geometry == Lp(math.inf):
        return "per_entry", lambda gradient: jax.tree.map(jnp.sign, gradient)
    if isinstance(geometry, Lp) and geometry.p > 2:
        # Roots bring together entries that are far apart: below rounding does not mean small.
        direction = functools.partial(_direction_of_entries, geometry)
        return "log_per_entry", lambda gradient: jax.tree.map(direction, as_scaled(gradient))
    if isinstance(geometry, (BlockMaximum, BlockSum)):
        direction = functools.partial(_direction_of_blocks, geometry)
        return "log_per_entry", lambda gradient: jax.tree.map(direction, as_scaled(gradient))
    function = geometry.steepest_descent_direction
    return "per_array", lambda gradient: on_matrices(function, gradient)


def _direction_of_entries(geometry: Lp, leaf: Scaled) -> Float[Array, "..."]:
    """``sign(G) (|G| / ||G||_q)^(q - 1)`` by logarithms, for entries of any magnitude."""
    sizes = jnp.log(jnp.abs(leaf.mantissa)) + leaf.log_scale
    largest = sizes.max()
    sizes = sizes - jnp.where(jnp.isneginf(largest), 0, largest)
    log_norm = jax.nn.logsumexp(geometry.q * sizes) / geometry.q
    log_norm = jnp.where(jnp.isneginf(log_norm), 0, log_norm)
    power = 1 / (geometry.p - 1)
    return jnp.sign(leaf.mantissa) * jnp.exp(power * (sizes - log_norm))


def _direction_of_blocks(geometry: BlockMaximum | BlockSum, leaf: Scaled) -> Float[Array, "..."]:
    """The steepest direction in a norm of blocks, each block at a scale of its own."""
    matrix = as_matrix(leaf.mantissa)
    scales = as_matrix(jnp.broadcast_to(leaf.log_scale, leaf.mantissa.shape))
    parts, sizes = [], []
    for block, M, scale in zip(
        geometry.blocks, geometry.cut(matrix), geometry.cut(scales), strict=True
    ):
        common = jnp.where(M != 0, scale, -jnp.inf).max((-2, -1), keepdims=True)
        plain = M * jnp.exp(scale - jnp.where(jnp.isneginf(common), 0, common))
        plain = jnp.where(M != 0, plain, 0)  # a scale of zero may be anything
        gradient_scale, _ = _rise(block.geometry)
        if block.geometry == Lp(math.inf):
            direction = jnp.sign(M)
        elif gradient_scale == "log_per_entry":
            assert isinstance(block.geometry, Lp)
            of_entries = functools.partial(_direction_of_entries, block.geometry)
            of_grid = jax.vmap(jax.vmap(lambda M, scale, rise=of_entries: rise(Scaled(M, scale))))
            direction = of_grid(M, scale - jnp.where(jnp.isneginf(common), 0, common))
        else:
            direction = block.geometry.steepest_descent_direction(plain)
        parts.append(direction / block.weight)
        size = jnp.log(block.geometry.dual_norm(plain) / block.weight) + common[..., 0, 0]
        sizes.append(size.ravel())
    if isinstance(geometry, BlockSum):
        parts = geometry.only_largest(parts, jnp.concatenate(sizes))
    return geometry.joined(parts, matrix).reshape(leaf.mantissa.shape)

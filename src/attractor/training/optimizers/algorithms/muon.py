"""Muon: momentum made orthogonal, exactly or by Newton-Schulz iterations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from attractor.geometry import Spectral
from attractor.training.optimizers.declared import with_rescaled_state
from attractor.training.optimizers.leaves import as_matrix
from attractor.training.optimizers.newton_schulz import (
    Coefficients,
    check_coefficients,
    polar_factor,
)
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.schedules import Numbers
from attractor.training.optimizers.table import register_optimizer


class MuonState(NamedTuple):
    """The state of Muon.

    Attributes:
        steps: The number of steps taken.
        momentum: The average of gradients.
    """

    steps: Int[Array, ""]
    momentum: PyTree[Float[Array, "..."]]


@register_optimizer(
    "Muon",
    "muon",
    hyperparameters=("learning_rate", "momentum", "weight_decay"),
    coefficients=check_coefficients,
)
def muon(
    learning_rate: Numbers,
    momentum: Numbers = 0.95,
    *,
    nesterov: bool = True,
    method: str = "newton-schulz",
    newton_schulz_iterations: int | None = None,
    coefficients: Coefficients = "muon",
    bias_correction: bool = True,
    shape_factor: bool = True,
    weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Muon, steepest descent in the spectral norm on momentum, exactly or approximately.

        m <- momentum m + (1 - momentum) grad L(W)
        W <- W - learning_rate sqrt(max(1, e / d)) orthogonalize(m)    for W in R^(d x e)

    By default it is ``optax.contrib.muon`` with its quintic iteration, whose singular values do
    not end at one (``newton_schulz_values``), but with eps = 0: a step does not depend on the size
    of the gradient. A vector is a column here, not handed to Adam (``by_parameter`` does so). With
    ``method="exact"`` the step is along ``U V^T`` of ``m = U s V^T``, that of
    ``spectral_descent``, which has no momentum. Source: Jordan et al., *Muon* (2024); Bernstein and
    Newhouse, *Old Optimizer, New Norm* (arXiv 2409.20325).

    ``torch.optim.Muon`` is ``bias_correction=False`` in half precision, with the shape factor of
    the transposed weights, which PyTorch holds as (out, in), and a weight decay that multiplies
    the parameters themselves.

    Args:
        learning_rate: The step size, positive; or a schedule of it.
        momentum: What remains of the memory after a step, in [0, 1).
        nesterov: Whether to look ahead with the gradient: what is made orthogonal is
            ``momentum m + (1 - momentum) grad L(W)``.
        method: ``"newton-schulz"``, or ``"exact"`` for the polar factor itself, as exactly as the
            roundings of the memory leave it known: see ``spectral_descent``, also for rows of
            attention that are further ahead than others by 36, which are not moved.
        newton_schulz_iterations: Number of iterations, 1 to 100; None for as many as there are
            triples of coefficients, and five of one. From about 25 on, roundings of singular values
            that are zero come near one, too.
        coefficients: Those of the iteration, by name or as triples: see ``newton_schulz_values``.
        bias_correction: Whether memory and gradient are divided by ``1 - momentum^t`` before they
            are added to look ahead, the memory by that of the next step, as optax does. It changes
            the first steps of ``nesterov`` alone.
        shape_factor: Whether the step is multiplied by ``sqrt(max(1, e / d))``.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range, or there are coefficients or
            iterations where the method is exact.

    Example:
        >>> import attractor as at
        >>> at.muon(0.03).geometry
        Spectral()
        >>> at.muon(0.03, coefficients="you").settings["newton_schulz_iterations"]
        6
    """
    polar = polar_factor(method, coefficients, newton_schulz_iterations, "newton_schulz_iterations")

    def init(params: PyTree) -> MuonState:
        return MuonState(jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(
        updates: PyTree, state: Any, params: PyTree | None = None
    ) -> tuple[PyTree, MuonState]:
        count = jnp.asarray(optax.safe_increment(state.steps))
        memory = optax.tree.update_moment(updates, state.momentum, momentum, 1)
        ahead = memory
        if nesterov:
            # Without looking ahead, the correction would be a factor that no step depends on.
            late, now = memory, updates
            if bias_correction:
                late = optax.tree.bias_correction(memory, momentum, count + 1)
                now = optax.tree.bias_correction(updates, momentum, count)
            ahead = jax.tree.map(lambda m, g: momentum * m + (1 - momentum) * g, late, now)
        return jax.tree.map(step, ahead), MuonState(count, memory)

    def step(ahead: Float[Array, "..."]) -> Float[Array, "..."]:
        matrix = as_matrix(ahead)
        d, e = matrix.shape
        factor = math.sqrt(max(1, e / d)) if shape_factor else 1.0
        return (-learning_rate * (factor * polar(matrix))).reshape(ahead.shape)

    optimizer = with_rescaled_state(
        optax.GradientTransformation(init, update),
        geometry=Spectral(),
        by="leaf",
        name="Muon",
        settings={
            "learning_rate": learning_rate,
            "momentum": momentum,
            "nesterov": nesterov,
            **polar.settings("newton_schulz_iterations"),
            **({} if bias_correction else {"bias_correction": False}),
            **({} if shape_factor else {"shape_factor": False}),
        },
        weight_decay=weight_decay,
    )
    optimizer.rule = optimizer.rule._replace(of_singular_values=polar.triples is None)
    return optimizer

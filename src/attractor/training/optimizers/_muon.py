"""Muon: momentum made orthogonal by Newton-Schulz iterations."""

from __future__ import annotations

from typing import Any

import jax
import optax
import optax.contrib
from jaxtyping import PyTree

from attractor.checks import check_count, check_flag
from attractor.geometry import Spectral
from attractor.training.optimizers.hyperparameters import Number, Numbers, hyperparameters
from attractor.training.optimizers.leaves import as_matrix
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.registry import register_optimizer
from attractor.training.optimizers.rescaled_state import with_rescaled_state


@register_optimizer("muon")
def muon(
    learning_rate: Numbers,
    momentum: Numbers = 0.95,
    *,
    nesterov: bool = True,
    newton_schulz_iterations: int = 5,
    weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Muon, steepest descent in the spectral norm on momentum, approximately.

        m <- momentum m + (1 - momentum) grad L(W)
        W <- W - learning_rate sqrt(max(1, e / d)) orthogonalize(m)    for W in R^(d x e)

    It is ``optax.contrib.muon`` with its quintic iteration, whose singular values end between
    0.5 and 1.5 rather than at one, but with eps = 0: a step does not depend on the size of the
    gradient. A vector is a column here, not handed to Adam. ``spectral_descent`` takes the exact
    step, without momentum. Source: Jordan et al., *Muon* (2024); Bernstein and Newhouse, *Old
    Optimizer, New Norm* (arXiv 2409.20325).

    Args:
        learning_rate: The step size, positive; or a schedule of it.
        momentum: What remains of the memory after a step, in [0, 1).
        nesterov: Whether to look ahead with the gradient.
        newton_schulz_iterations: Number of iterations, 1 to 100.
        weight_decay: Multiple of the parameters to add to the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.

    Example:
        >>> import attractor as at
        >>> at.muon(0.03).geometry
        Spectral()
    """
    nesterov = check_flag("nesterov", nesterov)
    iterations = check_count("newton_schulz_iterations", newton_schulz_iterations, most=100)
    return _muon(learning_rate, momentum, nesterov, iterations, weight_decay)


@hyperparameters("learning_rate", "momentum", "weight_decay")
def _muon(
    learning_rate: Number, momentum: Number, nesterov: bool, iterations: int, weight_decay: Number
) -> Optimizer:
    of_matrices = optax.contrib.muon(
        learning_rate,
        ns_steps=iterations,
        beta=momentum,
        eps=0.0,
        nesterov=nesterov,
        muon_weight_dimension_numbers=_rows_and_columns,
    )
    return with_rescaled_state(
        _on_matrices(of_matrices),
        geometry=Spectral(),
        by="leaf",
        name="Muon",
        settings={
            "learning_rate": learning_rate,
            "momentum": momentum,
            "nesterov": nesterov,
            "newton_schulz_iterations": iterations,
        },
        weight_decay=weight_decay,
    )


def _rows_and_columns(matrices: PyTree) -> PyTree:
    return jax.tree.map(lambda _: optax.contrib.MuonDimensionNumbers(), matrices)


def _on_matrices(transformation: optax.GradientTransformation) -> optax.GradientTransformation:
    """Hands every array to a transformation as one matrix."""

    def init(params: PyTree) -> PyTree:
        return transformation.init(jax.tree.map(as_matrix, params))

    def update(updates: PyTree, state: PyTree, params: PyTree | None = None) -> tuple[PyTree, Any]:
        matrices, weights = (jax.tree.map(as_matrix, tree) for tree in (updates, params))
        steps, state = transformation.update(matrices, state, weights)
        return jax.tree.map(lambda step, like: step.reshape(like.shape), steps, updates), state

    return optax.GradientTransformation(init, update)

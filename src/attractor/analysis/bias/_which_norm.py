"""``which_norm``: one optimizer in, the norm whose margin it maximizes out."""

from __future__ import annotations

from typing import Any

from attractor.analysis.bias._bias_matrix import bias_matrix
from attractor.analysis.bias.bring_your_own import as_method
from attractor.analysis.bias.result import BiasMatrix
from attractor.attention import Head, Parameterization
from attractor.checks import check_flags
from attractor.tokens import Tokens


def which_norm(
    tokens: Tokens,
    head: Head,
    optimizer: Any,
    *,
    parameterization: str | Parameterization = "W",
    steps: int = 6000,
    seed: int = 0,
    matched: bool = False,
    progress: bool = False,
) -> BiasMatrix:
    """Finds which norm's margin an optimizer maximizes.

    Prints as the matrix of one row with the answer below; ``.answer(method)`` is that answer,
    and the rules it follows are described at ``attractor.analysis.bias.answer.answer``.

    Args:
        tokens: Data sets with labels, along an axis of instances; eight or more for an answer.
        head: The fixed head.
        optimizer: An optax transformation, an ``Optimizer``, or a ``TorchOptimizer``.
        parameterization: What it trains.
        steps: Number of steps.
        seed: Seed of the random initial weights.
        matched: Whether to start from a matrix that keeps the optimal tokens.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been trained then.
    """
    check_flags(matched=matched)
    name = getattr(optimizer, "name", "the optimizer")
    return bias_matrix(
        tokens,
        head,
        methods=[as_method(optimizer, name, parameterization)],
        steps=steps,
        seed=seed,
        matched=matched,
        progress=progress,
    )

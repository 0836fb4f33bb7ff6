"""``which_norm``: which norm's margin an optimizer maximizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attractor.attention import Head, Parameterization
from attractor.geometry import Geometry
from attractor.maps.bias._bias_matrix import bias_matrix
from attractor.maps.bias.methods import NORMS
from attractor.maps.bias.result import BiasMatrix
from attractor.support.checks import check_flags, check_items
from attractor.tokens import Tokens
from attractor.training.optimizers.optimizer import UNNAMED
from attractor.training.own.bring_your_own import as_method


def which_norm(
    tokens: Tokens,
    head: Head,
    optimizer: Any,
    *,
    parameterization: str | Parameterization = "W",
    geometries: Sequence[Geometry | str] = (),
    steps: int = 6000,
    most_steps: int | None = None,
    seed: int = 0,
    matched: bool = False,
    progress: bool = False,
) -> BiasMatrix:
    """Finds which norm's margin an optimizer maximizes.

    Prints as the matrix of one row with the answer below; ``.answer(method)`` is that answer,
    and the rules it follows are described at ``attractor.maps.bias.answer.answer``.

    Args:
        tokens: Data sets with labels, along an axis of instances; eight or more for an answer.
        head: The fixed head.
        optimizer: An optax transformation, an ``Optimizer``, or a ``TorchOptimizer``.
        parameterization: What it trains.
        geometries: Norms to compare besides those of the matrix, such as one's own.
        steps: Number of steps.
        most_steps: Doubles the steps up to this many while they may bring another answer; None for
            ``steps`` alone.
        seed: Seed of the random initial weights.
        matched: Whether to start from a matrix that keeps the optimal tokens.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been trained then.

    Example:
        >>> import optax
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(4, 4, 8, seeds=8)
        >>> matrix = at.which_norm(tokens, head, optax.sign_sgd(0.1), steps=4000)
        >>> answer = matrix.answer("the optimizer")
        >>> answer.outcome, answer.norm
        ('maximizes', 'l_inf')
    """
    check_flags(matched=matched)
    own = check_items("geometries", geometries, Geometry | str)
    name = getattr(optimizer, "name", UNNAMED)
    name = "the optimizer" if name == UNNAMED else name
    return bias_matrix(
        tokens,
        head,
        methods=[as_method(optimizer, name, parameterization)],
        norms=[*NORMS, *own],
        steps=steps,
        most_steps=most_steps,
        seed=seed,
        matched=matched,
        progress=progress,
    )

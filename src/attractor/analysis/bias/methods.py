"""The rows of the bias matrix: optimizers, what they train, and step sizes fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attractor.attention import Parameterization, get_parameterization
from attractor.attention.multi_head import one_attention_head
from attractor.checks import (
    check_choice,
    check_function,
    check_kinds,
    check_number,
    check_steps,
    check_text,
)
from attractor.geometry import Frobenius, Geometry, Lp, Nuclear, Spectral
from attractor.training import (
    Optimizer,
    adam,
    gradient_descent,
    greedy_coordinate_descent,
    lion,
    mirror_descent,
    momentum,
    muon,
    normalized_gradient_descent,
    normalized_momentum,
    polyak_step,
    schatten_mirror_descent,
    sign_descent,
    sign_momentum,
    spectral_descent,
)
from attractor.training.optimizers.optimizer import GradientScale

if TYPE_CHECKING:
    from attractor.torch import TorchOptimizer

NORMS: tuple[Geometry, ...] = (
    Frobenius(), Nuclear(), Spectral(), Lp(float("inf")), Lp(1), Lp(1.75), Lp(3),
)  # fmt: skip
"""The norms that every direction is measured in."""

_IN_WORDS: dict[GradientScale, str] = {
    "absolute": "magnitude of the gradient",
    "global": "direction of the gradient",
    "per_array": "direction of each array of the gradient",
    "per_entry": "sign of each entry of the gradient",
    "log_per_array": "gradient with the logarithm of its scale",
    "log_per_entry": "gradient with the logarithm of the scale of each entry",
}
_GREEDY_STEPS = 10 / 3
"""Greedy coordinate descent moves one entry a step, and takes this many times the steps."""


def gradients_of(optimizer: Optimizer | TorchOptimizer) -> str:
    """How an optimizer is given gradients, in words."""
    if isinstance(optimizer, Optimizer):
        return _IN_WORDS[optimizer.gradient_scale]
    return optimizer.reads


@dataclass(frozen=True)
class Method:
    """One row of the matrix.

    Attributes:
        name: What tables and figures call it.
        optimizer: The step.
        parameterization: What is trained: ``"W"``, ``"KQ"``, or another one of the same tokens.
        steps: How many steps it takes; None for as many as the others.
        reads: How it is given gradients, in words; empty for what its optimizer says.
        step_size: Its step size, where that is known.
        with_step_size: The same method with another step size, where that can be had.
        raised_from: The name of the row whose step size was raised for it; empty for none.
    """

    name: str
    optimizer: Optimizer | TorchOptimizer
    parameterization: str | Parameterization = "W"
    steps: int | None = None
    reads: str = ""
    step_size: float | None = None
    with_step_size: Callable[[float], Method] | None = field(
        default=None, compare=False, repr=False
    )
    raised_from: str = ""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            InvalidInputError: If one is of another kind.
        """
        check_text("name", self.name)
        if not hasattr(self.optimizer, "factory"):  # which PyTorch's have
            check_kinds(optimizer=(self.optimizer, Optimizer))
            get_parameterization(self.parameterization)
        else:
            one_attention_head(self.parameterization, "training by a PyTorch optimizer")
        if self.steps is not None:
            check_steps("steps", self.steps)
        check_kinds(reads=(self.reads, str), raised_from=(self.raised_from, str))
        if self.step_size is not None:
            check_number("step_size", self.step_size, above=0.0, example=0.1)
        if self.with_step_size is not None:
            check_function("with_step_size", self.with_step_size, "Give a function of a step size")

    @property
    def layer(self) -> Parameterization:
        """The parameterization itself."""
        return get_parameterization(self.parameterization)

    @property
    def own_norm(self) -> Geometry | None:
        """The norm of ``W`` that it is known to descend, or None."""
        if isinstance(self.optimizer, Optimizer):
            return self.optimizer.effective_geometry(self.layer)
        return self.layer.effective_geometry(self.optimizer.geometry)

    @property
    def settings(self) -> str:
        """Step size and other settings, in words."""
        given = ", ".join(f"{key} = {value}" for key, value in self.optimizer.settings.items())
        return given.replace("learning_rate", "step").replace("_", " ")


def standard_methods(size: str = "paper", steps: int = 6000) -> tuple[Method, ...]:
    """The methods of the matrix, each with its step size.

    No step size was chosen by looking at a margin ratio. Those of the methods with a known norm
    are given in advance; each other one has that of its nearest relative.

    Args:
        size: ``"paper"`` for all of them, ``"quick"`` for one a norm.
        steps: How many steps most of them take; greedy coordinate descent takes 10/3 of that.

    Raises:
        InvalidInputError: If the size is not known.
    """
    steps = check_steps("steps", steps)
    per_factor = normalized_gradient_descent(0.1, per_factor=True)
    decayed = normalized_gradient_descent(0.1, per_factor=True, weight_decay=2.2e-16)
    greedy_steps = round(_GREEDY_STEPS * steps)
    one_a_norm = (
        Method("normalized GD", normalized_gradient_descent(0.3)),
        Method("(K, Q) normalized GD", per_factor, "KQ"),
        Method("spectral descent", spectral_descent(0.3)),
        Method("sign descent", sign_descent(0.1)),
        Method("greedy coordinate", greedy_coordinate_descent(0.3), steps=greedy_steps),
        Method("mirror descent, p = 1.75", mirror_descent(0.1, 1.75)),
        Method("mirror descent, p = 3", mirror_descent(100, 3)),
    )
    check_choice("size", size, ("quick", "paper"))
    if size == "quick":
        return one_a_norm
    return (
        *one_a_norm,
        Method("mirror descent, p = 2", mirror_descent(0.3, 2)),
        Method("Schatten mirror descent, p = 1.5", schatten_mirror_descent(0.1, 1.5)),
        Method("(K, Q) with weight decay", decayed, "KQ"),
        Method("spectral, Newton-Schulz", spectral_descent(0.3, method="newton-schulz")),
        Method("Muon", muon(0.3)),
        Method("gradient descent", gradient_descent(0.3)),
        Method("momentum", momentum(0.3)),
        Method("normalized momentum", normalized_momentum(0.3)),
        Method("Polyak step", polyak_step()),
        Method("sign momentum", sign_momentum(0.1)),
        Method("Lion", lion(0.1)),
        Method("Adam, eps = 0", adam(0.1)),
        Method("Adam, eps = 1e-8", adam(0.1, eps=1e-8)),
    )

"""The rows of the bias matrix: optimizers, what they train, and step sizes fixed beforehand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from attractor.attention import Parameterization, get_parameterization
from attractor.attention.multi_head import one_attention_head
from attractor.geometry import Frobenius, Geometry, Lp, Nuclear, Spectral
from attractor.maps.bias.probe import Probe
from attractor.support.checks import (
    check_choice,
    check_function,
    check_kinds,
    check_number,
    check_steps,
    check_text,
)
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
    from attractor.training.optimizers.schedules import Schedule

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
        step_size: Its step size, at the first step, where that is known.
        with_step_size: The same method with another step size or a schedule of it, where that can
            be had; None where it cannot.
        decay: The power of the step that its step size falls with.
        setting_of: The name of the row that it is with another step size; empty for none.
        probe: Finds what it does at zero and at tiny gradients; None for what its optimizer says.
    """

    name: str
    optimizer: Optimizer | TorchOptimizer
    parameterization: str | Parameterization = "W"
    steps: int | None = None
    reads: str = ""
    step_size: float | None = None
    with_step_size: Callable[[float | Schedule], Method | None] | None = field(
        default=None, compare=False, repr=False
    )
    decay: float = 0.0
    setting_of: str = ""
    probe: Callable[[], Probe] | None = field(default=None, compare=False, repr=False)

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
        check_kinds(reads=(self.reads, str), setting_of=(self.setting_of, str))
        check_number("decay", self.decay, least=0.0, example=0.5)
        if self.step_size is not None:
            check_number("step_size", self.step_size, above=0.0, example=0.1)
        if self.with_step_size is not None:
            check_function("with_step_size", self.with_step_size, "Give a function of a step size")
        if self.probe is not None:
            check_function("probe", self.probe, "Give a function that returns a Probe")

    @property
    def at_tiny_gradients(self) -> Probe:
        """What it does at zero and at tiny gradients."""
        if self.probe is not None:
            return self.probe()
        eps = self.optimizer.settings.get("eps", 0.0)
        decays = isinstance(self.optimizer, Optimizer) and self.optimizer.decays_weights
        return Probe(decays, float(eps) if isinstance(eps, int | float) else 0.0)

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
    per_factor = functools.partial(normalized_gradient_descent, per_factor=True)
    greedy_steps = round(_GREEDY_STEPS * steps)
    one_a_norm = (
        _standard("normalized GD", normalized_gradient_descent, 0.3),
        _standard("(K, Q) normalized GD", per_factor, 0.1, "KQ"),
        _standard("spectral descent", spectral_descent, 0.3),
        _standard("sign descent", sign_descent, 0.1),
        _standard("greedy coordinate", greedy_coordinate_descent, 0.3, steps=greedy_steps),
        _standard("mirror descent, p = 1.75", functools.partial(mirror_descent, p=1.75), 0.1),
        _standard("mirror descent, p = 3", functools.partial(mirror_descent, p=3), 100),
    )
    check_choice("size", size, ("quick", "paper"))
    if size == "quick":
        return one_a_norm
    schatten = functools.partial(schatten_mirror_descent, p=1.5)
    decayed = functools.partial(per_factor, weight_decay=2.2e-16)
    newton_schulz = functools.partial(spectral_descent, method="newton-schulz")
    return (
        *one_a_norm,
        _standard("mirror descent, p = 2", functools.partial(mirror_descent, p=2), 0.3),
        _standard("Schatten mirror descent, p = 1.5", schatten, 0.1),
        _standard("(K, Q) with weight decay", decayed, 0.1, "KQ"),
        _standard("spectral, Newton-Schulz", newton_schulz, 0.3),
        _standard("Muon", muon, 0.3),
        _standard("Muon, exact", functools.partial(muon, method="exact"), 0.3),
        _standard("gradient descent", gradient_descent, 0.3),
        _standard("momentum", momentum, 0.3),
        _standard("normalized momentum", normalized_momentum, 0.3),
        Method("Polyak step", polyak_step()),
        _standard("sign momentum", sign_momentum, 0.1),
        _standard("Lion", lion, 0.1),
        _standard("Adam, eps = 0", adam, 0.1),
        _standard("Adam, eps = 1e-8", functools.partial(adam, eps=1e-8), 0.1),
    )


def _standard(
    name: str,
    make: Callable[[float | Schedule], Optimizer],
    step_size: float,
    parameterization: str = "W",
    *,
    steps: int | None = None,
) -> Method:
    """A row whose step size can be another one."""

    def another(other: float | Schedule) -> Method:
        return replace(row, optimizer=make(other))

    row = Method(
        name,
        make(step_size),
        parameterization,
        steps,
        step_size=step_size,
        with_step_size=another,
    )
    return row

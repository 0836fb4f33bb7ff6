"""``Method``: an optimizer, what it trains, and its step size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attractor.attention import Parameterization, get_parameterization
from attractor.attention.multi_head import one_attention_head
from attractor.geometry import Geometry
from attractor.support.checks import (
    check_function,
    check_kinds,
    check_number,
    check_steps,
    check_text,
)
from attractor.training import (
    Optimizer,
)
from attractor.training.optimizers.optimizer import GradientScale
from attractor.training.own.bridges import ForeignOptimizer
from attractor.training.own.probe import Probe

if TYPE_CHECKING:
    from attractor.training.optimizers.schedules import Schedule

_IN_WORDS: dict[GradientScale, str] = {
    "absolute": "magnitude of the gradient",
    "global": "direction of the gradient",
    "per_array": "direction of each array of the gradient",
    "per_entry": "sign of each entry of the gradient",
    "log_per_array": "gradient with the logarithm of its scale",
    "log_per_entry": "gradient with the logarithm of the scale of each entry",
}


def gradients_of(optimizer: Optimizer | ForeignOptimizer) -> str:
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
    optimizer: Optimizer | ForeignOptimizer
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

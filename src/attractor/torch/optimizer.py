"""A PyTorch optimizer, and the form in which it can receive gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from attractor.geometry import Geometry
from attractor.support.errors import AttractorWarning, InvalidInputError
from attractor.support.randomness import seeded

DIRECTION = "directions of the gradient, exact at every magnitude"
MAGNITUDE = "true magnitudes, which end where floating point does, at e^-745"

Factory = Callable[[Any], torch.optim.Optimizer]

_FACTORS = (1.0, 4.0**-30, 4.0**30, 4.0**-120)
_TRIED = "an optimizer that is tried"


@dataclass(frozen=True)
class TorchOptimizer:
    """A factory of PyTorch optimizers, one for each trial.

    Attributes:
        factory: Takes a list of parameters and returns a ``torch.optim.Optimizer``.
        name: Its name in tables and figures.
        reads: The form in which it receives gradients, in words.
        settings: Its hyperparameters.
        geometry: None: which norm it descends is not known.
    """

    factory: Factory
    name: str
    reads: str
    settings: dict[str, Any] = field(default_factory=dict)
    geometry: Geometry | None = None

    @classmethod
    def tried(cls, factory: Factory, name: str) -> TorchOptimizer:
        """Tries a factory on random gradients, and on the same at other magnitudes.

        An optimizer that keeps no tensors and whose steps do not depend on the magnitude of the
        gradient is given directions, which are exact however small gradients become. Any other
        is given true magnitudes.

        Args:
            factory: Takes a list of parameters and returns a ``torch.optim.Optimizer``.
            name: What to call it.

        Raises:
            InvalidInputError: If it raises, or returns something else.
        """
        try:
            with warnings.catch_warnings(), seeded(purpose=_TRIED) as seed:
                # Gradients of other magnitudes are nothing that anybody means to train with.
                warnings.simplefilter("ignore", AttractorWarning)
                steps = []
                for factor in _FACTORS:
                    seed()  # what is drawn is no reason for other steps
                    steps.append(_steps(factory, factor))
                made = factory([torch.nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))])
        except Exception as error:  # a user's factory can raise anything
            raise InvalidInputError(
                "optimizer",
                f"{name} raised {type(error).__name__}: {error}",
                "Give a function of a list of torch parameters, or one without arguments",
            ) from error
        invariant = all(np.allclose(found, steps[0][0], rtol=1e-12, atol=0) for found, _ in steps)
        memoryless = not any(remembers for _, remembers in steps)
        settings = {
            key: value
            for key, value in made.defaults.items()
            if isinstance(value, int | float | str | tuple) and value not in (False, 0, "")
        }
        return cls(factory, name, DIRECTION if invariant and memoryless else MAGNITUDE, settings)

    def step(
        self,
        arrays: Sequence[Float[np.ndarray, "..."]],
        gradients: Sequence[Float[np.ndarray, "..."]],
    ) -> list[Float[np.ndarray, "..."]]:
        """The arrays after the first step of an optimizer of its own."""
        made, parameters = make(self.factory, arrays)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.from_numpy(gradient)
        made.step()
        return [one.detach().numpy() for one in parameters]


def make(factory: Factory, arrays: Sequence[Float[np.ndarray, "..."]]) -> tuple[Any, list[Any]]:
    """An optimizer of a factory, and the parameters it was given: float64 copies of arrays.

    Raises:
        TypeError: If the factory returns something else.
    """
    parameters = [torch.nn.Parameter(torch.from_numpy(np.array(array))) for array in arrays]
    optimizer = factory(parameters)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"it returned a {type(optimizer).__name__}, not a torch.optim.Optimizer")
    return optimizer, parameters


def _steps(factory: Factory, factor: float) -> tuple[Float[np.ndarray, "..."], bool]:
    """The change by a few steps, and whether the state of the optimizer holds a tensor."""
    random = np.random.default_rng(0)
    optimizer, (parameter,) = make(factory, [random.normal(size=(3, 3))])
    start = parameter.detach().clone()
    for _ in range(3):
        parameter.grad = torch.from_numpy(random.normal(size=(3, 3)) * factor)
        optimizer.step()
    memories = [
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.ndim
    ]
    return (parameter.detach() - start).numpy(), bool(memories)

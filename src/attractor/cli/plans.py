"""How a token file is trained, as it says or the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attractor import training
from attractor.support.errors import InvalidInputError
from attractor.training import own

if TYPE_CHECKING:
    from attractor.files import LoadedTokens
    from attractor.training import Optimizer
    from attractor.training.own import Method

OPTIMIZER = "normalized gradient descent"
STEPS = 5000
SEEDS = 10
"""The training where neither the file nor the command line sets it."""


class Plan(NamedTuple):
    """A training: optimizer, what it trains, steps and starts.

    Attributes:
        method: The optimizer by name, and what it trains.
        optimizer: The optimizer itself.
        steps: Number of steps.
        seeds: Number of starts.
    """

    method: Method
    optimizer: Optimizer
    steps: int
    seeds: int


def plan(
    loaded: LoadedTokens,
    *,
    optimizer: str | None = None,
    lr: float | None = None,
    steps: int | None = None,
    seeds: int | None = None,
) -> Plan:
    """The training set by the command line; else by the file; else as documented.

    A start in the file is one start, so that one seed is trained from it.

    Raises:
        InvalidInputError: If there is no such optimizer, or it is one of PyTorch.
    """
    method = own.load_method(
        optimizer or loaded.optimizer or OPTIMIZER,
        learning_rate=lr,
        parameterization=loaded.parameterization,
    )
    if not isinstance(method.optimizer, training.Optimizer):
        raise InvalidInputError(
            "optimizer",
            f"{method.name} is a PyTorch optimizer",
            "Give one of optax; `attractor matrix` takes PyTorch optimizers",
        )
    own_seeds = SEEDS if loaded.initial is None else 1
    return Plan(method, method.optimizer, steps or loaded.steps or STEPS, seeds or own_seeds)

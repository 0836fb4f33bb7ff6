"""Training by a PyTorch optimizer, on gradients that are exact or in another form it can take."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from jaxtyping import Array, Float, PyTree

from attractor.attention import Head, Parameterization
from attractor.attention.multi_head import one_attention_head
from attractor.attention.scaled import direction, magnitude
from attractor.geometry import Geometry
from attractor.support.checks import check_steps
from attractor.support.errors import AttractorWarning, InvalidInputError, TrialStatus
from attractor.support.precision import double_precision
from attractor.support.progress import progress_bar
from attractor.support.randomness import seeded, traced
from attractor.tokens import Tokens
from attractor.training import Trajectory, declare
from attractor.training.attention_training import AttentionData, AttentionState, AttentionTraining
from attractor.training.inputs import Inputs, check_inputs
from attractor.training.loop import Records
from attractor.training.objective import status_of
from attractor.training.recording import record_steps

DIRECTION = "directions of the gradient, exact at every magnitude"
MAGNITUDE = "true magnitudes, which end where floating point does, at e^-745"

Factory = Callable[[Any], torch.optim.Optimizer]

_FACTORS = (1.0, 4.0**-30, 4.0**30, 4.0**-120)
_TRIED = "an optimizer that is tried"
_DRAWN = "what an optimizer of PyTorch draws"


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


def train_with_torch(
    tokens: Tokens,
    head: Head,
    optimizer: TorchOptimizer,
    *,
    steps: int,
    seeds: int = 1,
    seed: int = 0,
    initial: Any = None,
    loss: str = "logistic",
    parameterization: str | Parameterization = "W",
    record: Any = None,
    progress: bool = False,
) -> Trajectory:
    """Trains as ``train`` does, with steps taken by PyTorch, trial by trial.

    Every trial has an optimizer of its own, with float64 parameters. Gradients are those of
    ``train``; see ``TorchOptimizer.reads`` for how they are handed over. What an optimizer draws
    from the generators of PyTorch, NumPy or Python follows from seed, instance and step alone, and
    these generators are afterwards as they were. A trial whose last step changed nothing ends as
    stationary if its gradient is exactly zero, else as below rounding.

    Args:
        tokens: Data sets with labels.
        head: The head: fixed, or where its training starts.
        optimizer: The optimizer.
        steps: Number of steps.
        seeds: Number of initial parameters per instance.
        seed: The first seed.
        initial: Initial parameters, as for ``train``.
        loss: The loss.
        parameterization: What is trained.
        record: Steps to record, as for ``train``.
        progress: Whether to show a progress bar.

    Raises:
        InvalidInputError: If an argument cannot be used, or the optimizer raises.
    """
    layer = one_attention_head(parameterization, "training by a PyTorch optimizer")
    inputs = check_inputs(tokens, head, loss, layer, initial, seeds, seed)
    steps = check_steps("steps", steps)
    recorded = record_steps(steps, record)
    inputs.check_memory(len(recorded), copies=2)  # step by step, and of all steps together
    # The step is PyTorch's; what is measured along the way is the same as ever.
    unused = declare(optax.identity(), geometry=None, name=optimizer.name)
    training = AttentionTraining(inputs.parameterization, inputs.loss, unused)
    with progress_bar("training", inputs.count * steps, enabled=progress) as advance:
        run = _Run(training, inputs, optimizer)
        measured = []
        for step in range(steps + 1):
            if step in recorded:
                measured.append(run.measure())
            if step < steps:
                run.step()
                advance(inputs.count)
    series = {name: np.stack([one[name] for one in measured], axis=1) for name in measured[0]}
    records = Records(series, status_of(training, measured[-1], run.status()), run.steps_taken)
    return inputs.trajectory(
        records,
        recorded,
        optimizer=optimizer.name,
        geometry=None,
        settings={
            "steps": steps,
            "dtype": "float64",
            "optimizer": {"reads": optimizer.reads, **optimizer.settings},
        },
    )


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


class _Run:
    """All trials, each with its optimizer; gradients are computed for all of them at once."""

    def __init__(
        self, training: AttentionTraining, inputs: Inputs, optimizer: TorchOptimizer
    ) -> None:
        self.training, self.directions = training, optimizer.reads == DIRECTION
        count, trials = inputs.count, inputs.trials(training, training.optimizer)
        with double_precision():
            self.state, self.data = jax.tree.map(jnp.asarray, trials(np.arange(count)))
        leaves, self.structure = jax.tree.flatten(self.state.parameters)
        self.leaves = [np.array(leaf) for leaf in leaves]
        instances = np.repeat(inputs.tokens.instance_numbers, inputs.seeds)
        self.streams = list(
            zip(np.resize(inputs.seed_numbers, count), np.resize(instances, count), strict=True)
        )
        self.name, self.taken, self.workers = optimizer.name, 0, []
        with seeded(purpose=_DRAWN) as seed:
            for trial, stream in enumerate(self.streams):
                seed(*stream, self.taken)
                start = [leaf[trial] for leaf in self.leaves]
                self.workers.append(_guarded(self.name, make, optimizer.factory, start))
        self.steps_taken = np.zeros(count, dtype=np.int64)
        self.sloped = np.zeros(count, dtype=bool)

    def step(self) -> None:
        """One step of every trial."""
        with double_precision():
            slopes, sloped = _gradients(self.training, self._state(), self.data, self.directions)
        gradients = [np.array(leaf) for leaf in jax.tree.leaves(slopes)]
        self.sloped, self.taken = np.asarray(sloped), self.taken + 1
        with seeded(purpose=_DRAWN) as seed:
            for trial, (optimizer, parameters) in enumerate(self.workers):
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.grad = torch.from_numpy(gradient[trial])
                seed(*self.streams[trial], self.taken)
                _guarded(self.name, optimizer.step)
        for trial, (_, parameters) in enumerate(self.workers):
            moved = False
            for leaf, parameter in zip(self.leaves, parameters, strict=True):
                new = parameter.detach().numpy()
                moved |= bool((leaf[trial] != new).any())
                leaf[trial] = new
            if moved:
                self.steps_taken[trial] = self.taken

    def measure(self) -> dict[str, np.ndarray]:
        """The measurements of every trial."""
        with double_precision():
            return jax.tree.map(np.asarray, _measure(self.training, self._state(), self.data))

    def status(self) -> np.ndarray:
        """The status of every trial."""
        finite = np.all(
            [np.isfinite(leaf).all(tuple(range(1, leaf.ndim))) for leaf in self.leaves], axis=0
        )
        unmoved = np.where(self.sloped, TrialStatus.BELOW_ROUNDING, TrialStatus.STATIONARY)
        status = np.where(self.steps_taken == self.taken, TrialStatus.TRAINED, unmoved)
        return np.where(finite, status, TrialStatus.DIVERGED).astype(np.int32)

    def _state(self) -> AttentionState:
        parameters = self.structure.unflatten([jnp.asarray(leaf) for leaf in self.leaves])
        return self.state._replace(parameters=parameters)


@functools.partial(jax.jit, static_argnums=(0, 3))
@traced
def _gradients(
    training: AttentionTraining, state: AttentionState, data: AttentionData, directions: bool
) -> tuple[PyTree[Float[Array, "..."]], Array]:
    """Gradients of all trials as plain arrays, and whether they are other than zero."""

    def one(state: AttentionState, data: AttentionData) -> tuple[PyTree, Array]:
        gradient = training.recorder.gradient(state.parameters, data.head, data.rows)
        slopes = jax.tree.map(lambda leaf: (leaf.mantissa != 0).any(), gradient)
        read = direction if directions else magnitude
        return read(gradient), jnp.stack(jax.tree.leaves(slopes)).any()

    return jax.vmap(one)(state, data)


@functools.partial(jax.jit, static_argnums=0)
@traced
def _measure(
    training: AttentionTraining, state: AttentionState, data: AttentionData
) -> dict[str, Array]:
    return jax.vmap(training.record)(state, data)


def _guarded(name: str, function: Any, *arguments: Any) -> Any:
    """Calls a user's code; an exception of it becomes an error that names the optimizer."""
    try:
        return function(*arguments)
    except Exception as error:
        raise InvalidInputError(
            "optimizer",
            f"{name} raised {type(error).__name__}: {error}",
            "Mend it, and try it alone first",
        ) from error


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

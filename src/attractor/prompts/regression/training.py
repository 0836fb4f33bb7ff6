"""Training of heads on in-context regression, as the loop sees it, and their parameters."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, UInt32

from attractor.attention.scaled import Scaled
from attractor.prompts.regression.attended import DRAWS, Draw, of_covariance
from attractor.prompts.regression.batches import PromptLaw, derived_key, draw_prompts
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.prediction import (
    Estimate,
    HeldOut,
    gradient_in_blocks,
    held_out_risk,
    key_words,
    predict,
)
from attractor.prompts.regression.risks.infinite_prompts import infinite_risk_of
from attractor.prompts.regression.risks.linear_attention import (
    LinearOptimum,
    linear_attention_optimum,
    linear_attention_risk_of,
)
from attractor.prompts.regression.task import RegressionTask
from attractor.support.errors import TrialStatus
from attractor.support.precision import double_precision
from attractor.support.randomness import generator
from attractor.training.loop import Objective
from attractor.training.optimizers import Optimizer


@dataclass(frozen=True)
class Model(abc.ABC):
    """A parameterization of the blocks of the heads.

    Attributes:
        dimension: Number of inputs ``d``; tokens have one entry more.
        heads: Number of heads, whose predictions add up.
    """

    dimension: int
    heads: int

    @property
    def name(self) -> str:
        """The name of the parameterization."""
        return next(name for name, kind in PARAMETERIZATIONS.items() if kind is type(self))

    @abc.abstractmethod
    def blocks(self, parameters: PyTree) -> Blocks:
        """The blocks of parameters, with one axis of heads."""

    def default(self, rng: np.random.Generator) -> dict[str, Float[np.ndarray, "..."]]:
        """Random parameters, as layers of PyTorch start."""
        return self.of_blocks(_default_blocks(self, rng))

    @abc.abstractmethod
    def of_blocks(self, blocks: Blocks) -> dict[str, Float[np.ndarray, "..."]]:
        """Parameters with given blocks, one axis of heads in front."""

    def gradient(self, parameters: PyTree, of_blocks: Blocks) -> PyTree:
        """The gradient in the parameters, from that in the blocks."""
        _, pull_back = jax.vjp(self.blocks, parameters)
        return pull_back(of_blocks)[0]


@dataclass(frozen=True)
class KeyQueryAndLabel(Model):
    """Trains ``A`` and ``b``; ``c`` and ``v`` stay zero, as they do from the balanced start."""

    def blocks(self, parameters: PyTree) -> Blocks:
        """The blocks of parameters, with one axis of heads."""
        zeros = jnp.zeros((self.heads, self.dimension))
        return Blocks(parameters["key_query"], zeros, zeros, parameters["value_label"])

    def of_blocks(self, blocks: Blocks) -> dict[str, Float[np.ndarray, "..."]]:
        """Parameters with given blocks, one axis of heads in front."""
        return {"key_query": blocks.key_query, "value_label": blocks.value_label}


@dataclass(frozen=True)
class AllBlocks(Model):
    """Trains all blocks: ``A``, ``c``, ``v`` and ``b``."""

    def blocks(self, parameters: PyTree) -> Blocks:
        """The blocks of parameters, with one axis of heads."""
        return Blocks(**parameters)

    def of_blocks(self, blocks: Blocks) -> dict[str, Float[np.ndarray, "..."]]:
        """Parameters with given blocks, one axis of heads in front."""
        return blocks._asdict()


@dataclass(frozen=True)
class Factors(Model):
    """Trains keys, queries, values and the output, bias-free linear layers of every head.

    ``U = K^T Q / sqrt(d + 1)`` and the last row of ``V`` is ``o^T W`` for values ``W`` and output
    ``o``. Keys, queries and values of a head have ``d + 1`` rows each.
    """

    def blocks(self, parameters: PyTree) -> Blocks:
        """The blocks of parameters, with one axis of heads."""
        queries = parameters["queries"][..., : self.dimension]
        scores = jnp.einsum("hai,haj->hij", parameters["keys"], queries)
        scores = scores / math.sqrt(self.dimension + 1)
        values = jnp.einsum("ha,hai->hi", parameters["output"], parameters["values"])
        return Blocks(scores[:, :-1], scores[:, -1], values[:, :-1], values[:, -1])

    def default(self, rng: np.random.Generator) -> dict[str, Float[np.ndarray, "..."]]:
        """Uniform on [-1/sqrt(d + 1), 1/sqrt(d + 1)], as layers of PyTorch start."""
        entries = self.dimension + 1
        shapes = {
            name: (self.heads, entries, entries) for name in ("keys", "queries", "values")
        } | {"output": (self.heads, entries)}
        bound = 1 / math.sqrt(entries)
        return {name: rng.uniform(-bound, bound, shape) for name, shape in shapes.items()}

    def of_blocks(self, blocks: Blocks) -> dict[str, Float[np.ndarray, "..."]]:
        """Balanced factors with given blocks: ``K K^T = Q Q^T`` and ``W W^T = o o^T``."""
        entries = self.dimension + 1
        scores, values = blocks.matrices()
        left, sizes, right = np.linalg.svd(math.sqrt(entries) * scores)
        roots = np.sqrt(sizes)[..., None]
        last = values[..., -1, :]
        size = np.linalg.norm(last, axis=-1)[:, None]
        output = np.zeros((self.heads, entries))
        output[:, -1:] = np.sqrt(size)
        rows = np.zeros((self.heads, entries, entries))
        rows[:, -1] = last / np.where(size > 0, np.sqrt(size), 1)
        return {
            "keys": roots * np.swapaxes(left, -1, -2),
            "queries": roots * right,
            "values": rows,
            "output": output,
        }


PARAMETERIZATIONS: dict[str, type[Model]] = {
    "factors": Factors,
    "blocks": KeyQueryAndLabel,
    "all_blocks": AllBlocks,
}
"""The parameterizations by name."""


def _default_blocks(model: Model, rng: np.random.Generator) -> Blocks:
    """The blocks of four random layers."""
    factors = Factors(model.dimension, model.heads)
    parameters = factors.default(rng)
    queries = parameters["queries"][..., : model.dimension]
    scores = np.swapaxes(parameters["keys"], -1, -2) @ queries / math.sqrt(model.dimension + 1)
    values = np.einsum("ha,hai->hi", parameters["output"], parameters["values"])
    return Blocks(scores[:, :-1], scores[:, -1], values[:, :-1], values[:, -1])


_QUERIES, _TOKENS = 0, 1


class InContextState(NamedTuple):
    """The state of a trial.

    Attributes:
        parameters: Those of the model.
        memory: The optimizer's state.
        step: Number of the next step, which names its prompts.
    """

    parameters: PyTree
    memory: PyTree
    step: Int[Array, ""]


class InContextData(NamedTuple):
    """The constants of a trial.

    Attributes:
        key: The key that the keys of all steps are derived from.
        held_out: Prompts that the risk is measured on, where it has no closed form.
        numbers: The optimizer's hyperparameters.
        law: The law of prompts and queries.
        optimum: The best head of linear attention, which records are compared with.
    """

    key: UInt32[Any, "2"]
    held_out: HeldOut | None
    numbers: dict[str, Float[Any, ""]]
    law: PromptLaw
    optimum: LinearOptimum


@dataclass(frozen=True)
class InContextTraining(Objective):
    """Descends ``E (prediction - label)^2``, or half of it, by prompts drawn anew at every step.

    Attributes:
        model: The parameterization.
        attention: ``"softmax"`` or ``"linear"``.
        draw: ``"tokens"``, ``"projections"`` or ``"moments"``: the way attended means
            are drawn.
        length: Number of tokens of a prompt, or infinity.
        batch: Number of prompts of a step.
        half: Whether the loss has the factor 1/2.
        optimizer: The step, with placeholders for hyperparameters.
        dtype: Precision within a prompt; parameters are in double precision.
    """

    defining: ClassVar[tuple[str, ...]] = ("risk",)
    largest_block: ClassVar[int | None] = 1  # prompts of a step fill the processor already

    model: Model
    attention: str
    draw: str
    length: float
    batch: int
    half: bool
    optimizer: Optimizer
    dtype: str = "float32"

    def start(self, parameters: PyTree, data: InContextData) -> InContextState:
        """The state before the first step."""
        memory = self.optimizer.with_numbers(data.numbers).init(parameters)
        return InContextState(parameters, memory, jnp.zeros((), "int64"))

    def step(self, state: InContextState, data: InContextData) -> tuple[InContextState, Array]:
        """Takes one step on new prompts; the status is ``DIVERGED`` if it is not finite."""
        loss_gradient = self.gradient(state.parameters, data.law, data.key, state.step)
        gradient = jax.tree.map(self._scaled, loss_gradient)
        optimizer = self.optimizer.with_numbers(data.numbers)
        parameters, memory = optimizer.step(gradient, state.memory, state.parameters)
        finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(parameters)]
        diverged = ~jnp.stack(finite).all()
        moved = InContextState(parameters, memory, state.step + 1)
        kept = jax.tree.map(lambda new, old: jnp.where(diverged, old, new), moved, state)
        return kept, jnp.where(diverged, TrialStatus.DIVERGED, TrialStatus.TRAINED)

    def gradient(
        self,
        parameters: PyTree,
        law: PromptLaw,
        key: UInt32[Array, "2"],
        step: Int[Array, ""] | int,
    ) -> PyTree:
        """Gradient of the loss of one step's prompts in the parameters."""
        step_key = derived_key(key, step)
        prompts = draw_prompts(law, derived_key(step_key, _QUERIES), self.batch)
        blocks, tokens = self.model.blocks(parameters), derived_key(step_key, _TOKENS)
        found = predict(law, blocks, prompts, self._draw, tokens, self.length, self.dtype)
        factor = (1 if self.half else 2) / self.batch
        multiples = factor * (found.values - prompts.labels)
        of_blocks = gradient_in_blocks(found, prompts.queries, multiples)
        return self.model.gradient(parameters, of_blocks)

    def record(self, state: InContextState, data: InContextData) -> dict[str, Array]:
        """Risk, what is above the optimum, and the blocks."""
        blocks = self.model.blocks(state.parameters)
        risk = self._risk(blocks, data)
        product, least = data.optimum
        products = jnp.einsum("h,hij->ij", blocks.value_label, blocks.key_query)
        return {
            "risk": risk.value,
            "risk_error": risk.standard_error,
            "infinite_risk": infinite_risk_of(data.law.arrays, blocks),
            "gap": risk.value - least,
            "product_distance": jnp.linalg.norm(products - product) / jnp.linalg.norm(product),
            "key_query_norm": jnp.sqrt((blocks.key_query**2).sum((-2, -1))),
            "balance": blocks.balance,
            **blocks._asdict(),
        }

    @property
    def exact(self) -> bool:
        """Whether the risk has a closed form."""
        return math.isinf(self.length) or self.attention == "linear"

    @property
    def _draw(self) -> Draw:
        if math.isinf(self.length):
            return of_covariance
        return DRAWS[self.attention, self.draw]

    @property
    def optimum_length(self) -> float:
        """The length whose linear attention the gap is measured from; for softmax, infinity."""
        return self.length if self.attention == "linear" else math.inf

    def _risk(self, blocks: Blocks, data: InContextData) -> Estimate:
        if data.held_out is not None:
            return held_out_risk(data.law, blocks, data.held_out, self._draw, self.length)
        risk = linear_attention_risk_of(data.law.arrays, blocks, 1 / self.optimum_length)
        return Estimate(risk, jnp.zeros_like(risk))

    def _scaled(self, leaf: Float[Array, "..."]) -> Scaled:
        return Scaled(leaf, jnp.zeros_like(leaf) if self.optimizer.by_entry else jnp.zeros(()))


class InContextTrials:
    """Trials of all seeds: returns the initial state and the data of any of them."""

    def __init__(
        self,
        training: InContextTraining,
        task: RegressionTask,
        optimizer: Optimizer,
        initial: dict[str, np.ndarray] | None,
        *,
        seed: int,
        held_out: int,
    ) -> None:
        """Draws and computes what trials have in common.

        Args:
            training: The objective.
            task: The law of prompts and queries.
            optimizer: The optimizer.
            initial: Initial parameters of all trials; None for random ones.
            seed: The first seed.
            held_out: Number of prompts to measure the risk on, where it has no closed form.
        """
        self.training, self.optimizer, self.initial = training, optimizer, initial
        self.seed, law = seed, PromptLaw.of(task)
        prompts = None if training.exact else HeldOut.draw(law, held_out, seed)
        optimum = linear_attention_optimum(task, training.optimum_length)
        self._shared = prompts, law, jax.tree.map(np.asarray, optimum)

    def __call__(self, trials: Int[np.ndarray, "block"]) -> tuple[InContextState, InContextData]:
        """State and data, with a leading axis of trials on every leaf."""
        seeds, initial = [self.seed + int(trial) for trial in trials], self.initial
        parameters = [
            initial_parameters(self.training.model, seed) if initial is None else initial
            for seed in seeds
        ]
        stacked: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *parameters)
        numbers = self.optimizer.numbers(np.zeros_like(trials), np.float64)
        shared = jax.tree.map(lambda leaf: np.stack([leaf] * len(seeds)), self._shared)
        held_out, law, optimum = shared
        with double_precision():
            keys = np.stack([key_words(seed, "prompts") for seed in seeds])
            data = InContextData(keys, held_out, numbers, law, optimum)
            return jax.vmap(self.training.start)(stacked, data), data


def initial_parameters(model: Model, seed: int) -> dict[str, np.ndarray]:
    """The random parameters that a seed starts from."""
    return model.default(generator(seed, purpose="initial parameters"))

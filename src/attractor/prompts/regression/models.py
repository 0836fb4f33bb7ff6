"""Parameterizations: the blocks of heads themselves, or four linear layers."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from attractor.prompts.regression.blocks import Blocks


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

"""The initial state and the data of every trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PyTree

from attractor.attention import Head, Parameterization, attention_rows
from attractor.support.precision import double_precision
from attractor.support.randomness import key_data
from attractor.tokens import Tokens
from attractor.training.attention_training import AttentionData, AttentionState, AttentionTraining
from attractor.training.optimizers import Optimizer
from attractor.training.programs.blocks import LARGEST_BLOCK
from attractor.training.programs.compilation import kept_program

_INITIAL = "initial weights"
_BATCHES = "mini-batches"
_FILLED = 2**24
"""Bytes of a block that is filled up for the sake of one trial."""


class Trials:
    """Trials of all instances and seeds: returns the initial state and the data of any of them.

    Those of a trial depend on the numbers of its instance, its seed, its hyperparameters and the
    scale of its start alone. Trials with the same hyperparameters follow each other, and among
    them those of the same scale.
    """

    def __init__(
        self,
        training: AttentionTraining,
        optimizer: Optimizer,
        tokens: Tokens,
        head: Head,
        initial: Mapping[str, np.ndarray] | None,
        seeds: int,
        seed: int,
        dtype: str,
        scales: Float[np.ndarray, "scale"] | None = None,
    ) -> None:
        """Casts the data once.

        Args:
            training: What is trained.
            optimizer: The optimizer, with one value of each hyperparameter or several.
            tokens: The data sets.
            head: The head.
            initial: Initial attention parameters by name, ``(instances, seeds, ...)``; None for
                random ones.
            seeds: Number of seeds.
            seed: The first of them.
            dtype: Precision of the training.
            scales: What random parameters are multiplied by.
        """
        self.training, self.optimizer = training, optimizer
        self.initial, self.seeds, self.seed = initial, seeds, seed
        self.dtype, self.scales = np.dtype(dtype), scales
        rows = attention_rows(tokens, self.dtype, head)
        self.rows = rows if tokens.instances is not None else jax.tree.map(lambda a: a[None], rows)
        self.head = jax.tree.map(lambda leaf: np.asarray(leaf, self.dtype), head)
        self.numbers = tokens.instance_numbers
        self.shape = (tokens.key_dimension, tokens.query_dimension)
        shapes = training.parameterization.shapes(*self.shape).values()
        trained = self.dtype.itemsize * sum(map(math.prod, shapes))
        data = sum(leaf.nbytes for leaf in jax.tree.leaves(self.rows)) / len(self.numbers)
        self.small = LARGEST_BLOCK * (trained + data) <= _FILLED

    def __call__(self, trials: Int[np.ndarray, "block"]) -> tuple[AttentionState, AttentionData]:
        """State and data, with a leading axis of trials on every leaf."""
        if len(trials) < LARGEST_BLOCK and self.small:  # a block's program does for fewer
            filled = self(np.pad(trials, (0, LARGEST_BLOCK - len(trials)), mode="edge"))
            return jax.tree.map(lambda leaf: _first(leaf, len(trials)), filled)
        rest, repeat = np.divmod(trials, self.seeds)
        rest, instance = np.divmod(rest, len(self.numbers))
        variant, scale = np.divmod(rest, 1 if self.scales is None else len(self.scales))
        seeds, numbers = self.seed + repeat, self.numbers[instance]
        layer = self.training.parameterization
        head = self.head.for_instances(instance)
        with double_precision():
            if self.initial is None:
                attention = layer.in_gauge(initial_parameters(layer, seeds, numbers, *self.shape))
                if self.scales is not None:
                    attention = _multiplied(attention, self.scales[scale])
            else:
                attention = layer.from_arrays(
                    {name: array[instance, repeat] for name, array in self.initial.items()}
                )
            attention = jax.tree.map(lambda leaf: np.asarray(leaf, self.dtype), attention)
            rows = jax.tree.map(lambda leaf: leaf[instance], self.rows)
            settings = self.optimizer.numbers(variant, self.dtype)
            data = AttentionData(rows, head, key_data(seeds, numbers, _BATCHES), settings)
            # Compiled as a whole: else JAX compiles it operation by operation.
            start = kept_program(_started, (self.training,), (attention, data))
            return start(attention, data), data


def _first(leaf: Any, count: int) -> Any:
    """The first entries along the axis of trials; NumPy takes them without compiling anything."""
    keys = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return (leaf if keys else np.asarray(leaf))[:count]


def _multiplied(tree: PyTree[Any], factors: Float[np.ndarray, "trial"]) -> PyTree[Any]:
    """Leaves with a leading axis of trials, each times its factor."""
    return jax.tree.map(lambda leaf: (leaf.T * factors).T, tree)


def _started(training: AttentionTraining, attention: PyTree, data: AttentionData) -> AttentionState:
    return jax.vmap(training.start)(attention, data)


def initial_parameters(
    parameterization: Parameterization,
    seeds: Int[np.ndarray, "trial"],
    instances: Int[np.ndarray, "trial"],
    d: int,
    e: int,
) -> PyTree[Any]:
    """Random initial attention parameters of trials, with a leading axis on every leaf."""
    with double_precision():
        return parameterization.initial(key_data(seeds, instances, _INITIAL), d, e)

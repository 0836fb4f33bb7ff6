"""The setting of a study of basins: one data set, a fixed head, a loss and an optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from attractor.attention import Head, Loss, Parameterization, Parameters
from attractor.attention.multi_head import one_attention_head
from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory
from attractor.support.precision import LARGEST, as_float64, double_precision
from attractor.tokens import Tokens
from attractor.training import Optimizer, Trajectory, train
from attractor.training.inputs import check_inputs
from attractor.training.validation import check_optimizer, refuse_weights

_COPIES = 6
"""Copies of the matrices of all starts: drawn, to begin with, trained, followed, labeled."""
Starts = dict[str, np.ndarray]
"""Initial attention parameters by name, with a leading axis of starts."""


@dataclass(frozen=True)
class BasinProblem:
    """A single data set and how it is trained on.

    Attributes:
        given: The data set as the user gave it.
        tokens: The same as the parameterization prepares it.
        head: The fixed head.
        optimizer: The step.
        loss: The loss.
        layer: What is trained.
        geometry: The norm in which margin problems are solved.
    """

    given: Tokens
    tokens: Tokens
    head: Head
    optimizer: Optimizer
    loss: Loss
    layer: Parameterization
    geometry: Geometry

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the effective matrix."""
        return self.tokens.key_dimension, self.tokens.query_dimension

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the trained arrays."""
        return self.layer.shapes(*self.size)

    @cached_property
    def memoryless(self) -> bool:
        """Whether a step depends on nothing but the parameters, so that a run can be resumed."""
        with double_precision():
            arrays = {name: np.zeros(shape) for name, shape in self.shapes.items()}
            trained: Any = Parameters(self.layer.from_arrays(arrays), None)
            return not jax.tree.leaves(jax.eval_shape(self.optimizer.init, trained))

    def check_memory(self, argument: str, starts: int, give: Callable[[int], str]) -> None:
        """Refuses more starts than fit into memory.

        Args:
            argument: The argument that says how many.
            starts: How many.
            give: What to give instead, from the number that would fit.

        Raises:
            InvalidInputError: If they do not fit.
        """
        d, e = self.size
        entries = d * e + sum(math.prod(shape) for shape in self.shapes.values())
        each = _COPIES * 8 * (entries + self.tokens.mask[..., 0].size)
        require_memory(
            argument,
            f"{starts:,} starts with matrices of {d} x {e}",
            needed=float(each) * starts,
            remedy=lambda available: give(int(available // each)),
        )

    def starts_at(self, W: Float[np.ndarray, "start d e"]) -> Starts:
        """The parameters with given effective matrices."""
        arrays = self.layer.to_arrays(self.layer.from_matrix(W))
        return {name: np.asarray(array) for name, array in arrays.items()}

    def matrices(self, starts: Starts) -> Float[np.ndarray, "start d e"]:
        """The effective matrix of every start."""
        with double_precision():
            found = jax.vmap(self.layer.effective_matrix)(self.layer.from_arrays(starts))
        return np.asarray(found)

    def as_matrix(self, argument: str, array: Any) -> Float[np.ndarray, "d e"]:
        """A matrix that the user gave; a prompt may be given as a vector.

        Raises:
            InvalidInputError: If its shape does not fit.
        """
        d, e = self.size
        found = as_float64(argument, array, largest=LARGEST)
        if found.shape == (d,) and e == 1:
            return found[:, None]
        if found.shape != (d, e):
            shape = (d,) if e == 1 else (d, e)
            raise InvalidInputError(argument, f"the shape is {found.shape}", f"Give {shape}")
        return found

    def train(self, starts: Starts, steps: int, *, progress: bool = False) -> Trajectory:
        """Trains all starts as one batch and keeps the end."""
        return train(
            self.given,
            self.head,
            self.optimizer,
            steps=steps,
            seeds=len(next(iter(starts.values()))),
            initial={name: array[None] for name, array in starts.items()},
            loss=self.loss,
            parameterization=self.layer,
            weights="last",
            record=[steps],
            progress=progress,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The attributes that results keep of it."""
        return {
            "optimizer": repr(self.optimizer),
            "geometry": self.geometry.name,
            "loss": self.loss.name,
            "parameterization": self.layer.name,
        }


def check_problem(
    tokens: Tokens,
    head: Head,
    optimizer: Optimizer,
    *,
    loss: Any,
    parameterization: Any,
    geometry: Geometry | str | None,
) -> BasinProblem:
    """Checks the arguments that all studies of basins share.

    Raises:
        InvalidInputError: If an argument cannot be used, the tokens have an axis of instances, or
            the head would be trained as well.
    """
    layer = one_attention_head(parameterization, "the search for basins")
    inputs = check_inputs(
        tokens, head, loss=loss, parameterization=layer, initial=None, seeds=1, seed=0
    )
    check_optimizer(optimizer)
    geometry = None if geometry is None else get_geometry(geometry)
    refuse_weights(inputs.tokens, "the search for basins")
    if inputs.tokens.instances is not None:
        raise InvalidInputError(
            "tokens", "they have an axis of instances", "Give one data set, such as tokens[0]"
        )
    if layer.trains_head:
        raise InvalidInputError(
            "parameterization",
            f"{layer.name!r} trains the head, and with it which tokens are best",
            "Give 'W', 'KQ' or 'p', with the head fixed",
        )
    descended = optimizer.effective_geometry(layer)
    return BasinProblem(
        given=tokens,
        tokens=inputs.tokens,
        head=inputs.head,
        optimizer=optimizer,
        loss=inputs.loss,
        layer=layer,
        geometry=descended or Frobenius() if geometry is None else geometry,
    )


def check_starts(starts: Any, shapes: Mapping[str, tuple[int, ...]], count: int) -> Starts:
    """Checks starts that a function of the user's drew.

    Raises:
        InvalidInputError: If a name or a shape is wrong.
    """
    given = starts if isinstance(starts, Mapping) else {next(iter(shapes)): starts}
    if set(given) != set(shapes):
        raise InvalidInputError(
            "sampler", f"it returns {sorted(given)}", f"Return arrays named {sorted(shapes)}"
        )
    arrays = {name: as_float64("sampler", given[name]) for name in shapes}
    for name, shape in shapes.items():
        if arrays[name].shape != (count, *shape):
            raise InvalidInputError(
                "sampler",
                f"asked for {count} starts it returns {name} of shape {arrays[name].shape}",
                f"Return {(count, *shape)}",
            )
    return arrays

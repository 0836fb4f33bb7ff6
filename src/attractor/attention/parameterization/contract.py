"""What a parameterization of attention is."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from attractor.attention.heads import Head
from attractor.attention.rows import Rows
from attractor.geometry import Geometry
from attractor.randomness import fold_in, unit_interval
from attractor.tokens import Tokens


class Parameters(NamedTuple):
    """Everything that is trained, as optimizers see it.

    Attributes:
        attention: The parameters of the attention layer.
        head: The head, where it is trained as well; None where it is fixed.
    """

    attention: PyTree
    head: Head | None


class Parameterization(abc.ABC):
    """How trained parameters make up the attention matrix ``W``.

    Instances are hashable, and those that are equal share compiled code.

    Attributes:
        name: What a user calls it.
        trains_head: Whether the head is trained beside the attention layer.
    """

    name: ClassVar[str]
    trains_head: bool = False

    @abc.abstractmethod
    def shapes(self, d: int, e: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the trained arrays, for keys in R^d and queries in R^e."""

    @abc.abstractmethod
    def from_arrays(self, arrays: Mapping[str, Any]) -> PyTree:
        """The attention parameters made of arrays with the names of ``shapes``."""

    @abc.abstractmethod
    def to_arrays(self, parameters: PyTree) -> dict[str, Any]:
        """The arrays that make up attention parameters, by name."""

    @abc.abstractmethod
    def scores(self, parameters: PyTree, rows: Rows) -> Float[Array, "sequence query token"]:
        """Scores ``x_t^T W z`` of every token for every query of one data set."""

    @abc.abstractmethod
    def effective_matrix(self, parameters: PyTree) -> Float[Array, "d e"]:
        """The attention matrix ``W`` that the parameters stand for."""

    @abc.abstractmethod
    def from_matrix(self, W: Float[Any, "*trials d e"]) -> PyTree:
        """Parameters that stand for given matrices, or come as near as any can."""

    @abc.abstractmethod
    def effective_geometry(self, geometry: Geometry | None) -> Geometry | None:
        """The norm of ``W`` that descending ``geometry`` in the parameters minimizes, if known."""

    def initial(self, key: Any, d: int, e: int) -> PyTree:
        """Random parameters of a trial, or of several.

        Entries are independent and uniform on ``[-1/sqrt(f), 1/sqrt(f)]``, where f is the first
        dimension of the array: the default of a linear layer. They are those of ``jax.random``.

        Args:
            key: A key, or an array of them: every leaf then has a leading axis of trials.
            d: Dimension of keys.
            e: Dimension of queries.
        """
        typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        data = np.asarray(jax.random.key_data(key) if typed else key)
        words = data[..., 0], data[..., 1]
        shapes = self.shapes(d, e)
        arrays = {}
        for number, (name, shape) in enumerate(shapes.items()):
            own = words if len(shapes) == 1 else fold_in(words, number)
            arrays[name] = np.asarray(_between(unit_interval(own, shape), shape[0] ** -0.5))
        return self.from_arrays(arrays)

    def check_initial(self, arrays: Mapping[str, Any]) -> None:  # noqa: B027 - most have nothing
        """Checks initial arrays beyond their shapes.

        Raises:
            InvalidInputError: If training could not leave them.
        """

    def prepare(self, tokens: Tokens) -> Tokens:
        """The tokens whose rows and whose ``W`` this parameterization speaks of.

        Raises:
            InvalidInputError: If the tokens do not suit it.
        """
        return tokens


@jax.jit
def _between(unit: Float[Array, "..."], bound: float) -> Float[Array, "..."]:
    """Numbers on [0, 1) moved to [-bound, bound], in the arithmetic of ``jax.random.uniform``."""
    return jnp.maximum(-bound, unit * (bound + bound) - bound)

"""A head made of the user's own Equinox module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float, PyTree

from attractor.attention.heads.head import Head
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, double_precision
from attractor.support.randomness import traced

_REMEDY = "Give an Equinox module that maps one vector (v,) to one number, or to (C,) logits"


class ModuleHead(Head):
    """Any Equinox module that maps one output vector to one number, or to C logits.

    Its floating-point arrays are the parameters; whatever else it holds is fixed. A result of
    length one counts as a number. Derivatives are those JAX finds: they are as exact as the
    module's own, so that a unit that saturates (``1 - tanh(x)^2`` beyond 19) has derivative zero.
    Files keep its arrays, not the module. Heads for several instances are stacked, leaf by leaf:
    ``jax.tree.map(lambda *leaves: np.stack(leaves), *heads)``.

    Attributes:
        parameters: The module with everything but its floating-point arrays left out.
    """

    name: ClassVar[str] = "module"
    parameters: PyTree[Any]
    _rest: _Rest = eqx.field(static=True)
    _dimension: int = eqx.field(static=True)
    _classes: int | None = eqx.field(static=True)

    def __init__(self, module: Any, input_dimension: int) -> None:
        """Takes a module apart and tries its shapes.

        Args:
            module: Maps ``(v,)`` to a number or to ``(C,)``, as Equinox layers do.
            input_dimension: The dimension v.

        Raises:
            InvalidInputError: If it is no Equinox module, does not accept such a vector or gives
                something else, or holds arrays that are not finite real numbers.
        """
        if not isinstance(module, eqx.Module) or not callable(module):
            raise InvalidInputError("head", f"{type(module).__name__} cannot be called", _REMEDY)
        parameters, rest = eqx.partition(module, eqx.is_inexact_array)
        self.parameters = jax.tree.map(_checked, parameters)
        axes = [leaf.ndim for leaf in jax.tree.leaves(parameters)]
        self._rest = _take_apart(rest, axes[0] if axes else 0)
        self._dimension = input_dimension
        self._classes = _try_shapes(self.module, input_dimension)

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """The module's results, row by row."""
        if isinstance(outputs, np.ndarray):
            with double_precision():
                return np.asarray(self.predict(jnp.asarray(outputs)))
        if self.instances is not None:
            return jax.vmap(lambda head, rows: head.predict(rows))(self, outputs)
        flat = outputs.reshape(-1, outputs.shape[-1])
        found = jax.vmap(self.module)(flat)
        classes = () if self.classes is None else (self.classes,)
        return found.reshape(*outputs.shape[:-1], *classes)

    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters by their path in the module, such as ``layers.0.weight``.

        A slash, which files read as a folder, becomes a vertical bar.
        """
        leaves = jax.tree_util.tree_leaves_with_path(self.parameters)
        return {
            jax.tree_util.keystr(path, simple=True, separator=".").replace("/", "|"): np.asarray(x)
            for path, x in leaves
        }

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the module."""
        leaves = jax.tree.leaves(self.parameters)
        if not leaves or leaves[0].ndim == self._rest.axes:
            return None
        return leaves[0].shape[0]

    @property
    def input_dimension(self) -> int:
        """Dimension v of the outputs it reads."""
        return self._dimension

    @property
    def classes(self) -> int | None:
        """Number of logits it gives for each output, or None where it gives one prediction."""
        return self._classes

    @property
    def module(self) -> Any:
        """The module, with the parameters as they are now; for one instance."""
        module = eqx.combine(self.parameters, self._rest.tree)

        def call(x: Any) -> Any:
            found = module(x)
            return found.reshape(()) if found.shape == (1,) else found

        return call


@dataclass(frozen=True)
class _Rest:
    """Everything a module holds beside its parameters; hashable, so that JAX can compare it.

    Attributes:
        structure: How the leaves make up the module.
        leaves: Settings, functions, and arrays that are not trained.
        axes: Number of axes of the first parameter, without that of instances.
    """

    structure: Any
    leaves: tuple[Any, ...]
    axes: int

    @property
    def tree(self) -> PyTree[Any]:
        """The module without its parameters."""
        leaves = [leaf.array if isinstance(leaf, _FixedArray) else leaf for leaf in self.leaves]
        return jax.tree.unflatten(self.structure, leaves)


class _FixedArray:
    """An array that is compared by its contents."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self._contents = (self.array.dtype.str, self.array.shape, self.array.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FixedArray) and self._contents == other._contents

    def __hash__(self) -> int:
        return hash(self._contents)


def _take_apart(rest: PyTree[Any], axes: int) -> _Rest:
    leaves, structure = jax.tree.flatten(rest)
    held = _Rest(structure, tuple(_FixedArray(x) if eqx.is_array(x) else x for x in leaves), axes)
    try:
        hash(held)
    except TypeError as error:
        raise InvalidInputError(
            "head", f"it has a static field that cannot be hashed: {error}", _REMEDY
        ) from error
    return held


def _checked(leaf: Any) -> Any:
    """A parameter in float64; one that JAX is just tracing stays as it is."""
    return leaf if isinstance(leaf, Tracer) else as_float64("head", leaf)


@traced
def _try_shapes(module: Any, dimension: int) -> int | None:
    """The number of logits a module gives, None for one number."""
    with double_precision():
        one = jax.ShapeDtypeStruct((dimension,), np.float64)
        try:
            result = jax.eval_shape(module, one)
            fits = result.ndim < 2 and np.issubdtype(result.dtype, np.floating)
        except Exception as error:  # the user's own code may raise anything
            raise InvalidInputError(
                "head", f"it does not accept a vector of dimension {dimension}: {error}", _REMEDY
            ) from error
    if not fits:
        raise InvalidInputError(
            "head", f"for a vector it gives {result.dtype} of shape {result.shape}", _REMEDY
        )
    return result.shape[0] if result.ndim else None

"""The heads of this library, by what a user or a file calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.heads.head import Head, checked_array, share_instances
from attractor.attention.heads.module import ModuleHead
from attractor.attention.heads.prediction_heads import (
    PredictionHeads,
    arrays_of_each,
    names_of_each,
)
from attractor.attention.readout import LinearReadout
from attractor.geometry import lengths
from attractor.support.errors import InvalidInputError


class _ArrayHead(Head):
    """A head whose first array tells the number of instances and the dimension of the outputs.

    Attributes:
        first: Name of that array, and its number of axes without that of instances.
    """

    first: ClassVar[tuple[str, int]] = ("weight", 1)

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the head."""
        name, axes = self.first
        shape = getattr(self, name).shape
        return None if len(shape) == axes else shape[0]

    @property
    def input_dimension(self) -> int:
        """Length of the last axis of that array."""
        return getattr(self, self.first[0]).shape[-1]


class LinearHead(LinearReadout, Head):
    """The linear head ``h(x) = v^T x``.

    Attributes:
        weight: The vector ``v``, ``(v,)`` or ``(instances, v)``.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> head = at.LinearHead([1, -1])
        >>> head(np.array([3.0, 1.0])).item()
        2.0
    """

    name: ClassVar[str] = "linear"
    weight: Float[Any, "*instances v"]

    def __init__(self, weight: Any) -> None:
        """Checks and stores the vector.

        Args:
            weight: ``(v,)``, or ``(instances, v)`` for a vector per data set.

        Raises:
            InvalidInputError: If the shape is different, or an entry is not a finite number.
        """
        self.weight = checked_array(weight, ("v",))

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """``v`` itself."""
        return jnp.broadcast_to(self.weight, start.shape)


class ReLUHead(_ArrayHead):
    """A multilayer perceptron ``h(x) = c^T max(V^T x, 0)``.

    Its derivative is zero in a unit whose input ``(V^T x)_j`` is exactly zero. Source:
    *Transformers as Support Vector Machines* (arXiv 2308.16898), experiments on nonlinear heads,
    where ``c`` is all ones.

    Attributes:
        hidden: The matrix ``V``, ``(v, k)`` or ``(instances, v, k)``: a column a unit.
        weight: The vector ``c``, ``(k,)`` or ``(instances, k)``.
    """

    name: ClassVar[str] = "relu"
    first: ClassVar[tuple[str, int]] = ("hidden", 2)
    hidden: Float[Any, "*instances v k"]
    weight: Float[Any, "*instances k"]

    def __init__(self, hidden: Any, weight: Any = None) -> None:
        """Checks and stores both layers.

        Args:
            hidden: ``(v, k)``, or ``(instances, v, k)``.
            weight: ``(k,)``, or ``(instances, k)``; default: ones.

        Raises:
            InvalidInputError: If shapes are different, or an entry is not a finite number.
        """
        hidden = checked_array(hidden, ("v", "k"))
        units = hidden.shape[-1]
        weight = np.ones(units) if weight is None else checked_array(weight, ("k",))
        if weight.shape[-1] != units:
            raise InvalidInputError(
                "head",
                f"there are {units} hidden units, but weight has the shape {weight.shape}",
                f"Give weight ({units},): one number for each column of hidden",
            )
        self.hidden, self.weight = share_instances((hidden, 2), (weight, 1))

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``c^T max(V^T x, 0)``."""
        before = outputs @ self.hidden
        active = outputs.__array_namespace__().where(before > 0, before, 0)
        return (active @ self.weight[..., None])[..., 0]

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """``sum_j |c_j| ||V_j|| ||x||``."""
        return self._by_instance(self._norms, outputs)

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """Each unit counts by the share of the segment on which it is active."""
        a, b = start @ self.hidden, end @ self.hidden
        crosses = (a > 0) != (b > 0)
        part = jnp.maximum(a, b) / jnp.where(crosses, jnp.abs(a - b), 1)
        share = jnp.where(crosses, part, jnp.where(a > 0, 1, 0))
        return (share * self.weight) @ self.hidden.T

    @property
    def input_dimension(self) -> int:
        """Number of rows of the hidden layer's matrix."""
        return self.hidden.shape[-2]

    def _norms(self, outputs: Any) -> Any:
        columns = lengths(self.hidden, axis=-2)
        total = (abs(self.weight) * columns).sum(-1)
        return lengths(outputs) * (total[:, None] if self.hidden.ndim == 3 else total)


class ConcaveHead(_ArrayHead):
    """The concave head ``h(x) = v^T x - lambda ||x||^2``, which makes attention keep several.

    The penalty ``lambda`` is a setting, not a parameter: training the head leaves it alone.
    Source: *Transformers as Support Vector Machines* (arXiv 2308.16898), experiments on attention
    that keeps several tokens.

    Attributes:
        weight: The vector ``v``, ``(v,)`` or ``(instances, v)``.
        penalty: The factor ``lambda >= 0``, a number or ``(instances,)``.
    """

    name: ClassVar[str] = "concave"
    weight: Float[Any, "*instances v"]
    penalty: Float[Any, "*instances"]

    def __init__(self, weight: Any, penalty: Any) -> None:
        """Checks and stores the vector and the penalty.

        Args:
            weight: ``(v,)``, or ``(instances, v)``.
            penalty: A number at least 0, or ``(instances,)`` of them.

        Raises:
            InvalidInputError: If shapes are different, an entry is not a finite number, or the
                penalty is negative.
        """
        weight = checked_array(weight, ("v",))
        penalty = checked_array(penalty, ())
        if (penalty < 0).any():
            raise InvalidInputError(
                "penalty", f"it is {penalty.min():g}, and the head not concave", "Give 0 or more"
            )
        self.weight, self.penalty = share_instances((weight, 1), (penalty, 0))

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``v^T x - lambda ||x||^2``."""
        linear = (outputs @ self.weight[..., None])[..., 0]
        return linear - self._penalty(outputs) * (outputs**2).sum(-1)

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """``||v|| ||x|| + lambda ||x||^2``."""
        return self._by_instance(self._norms, outputs)

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """``v - lambda (start + end)``."""
        return self.weight - self._penalty(start) * (start + end)

    def _penalty(self, outputs: Any) -> Any:
        fixed = self.penalty
        if not isinstance(outputs, np.ndarray):
            fixed = jax.lax.stop_gradient(fixed)
        return fixed if self.weight.ndim == 1 else fixed[:, None]

    def _norms(self, outputs: Any) -> Any:
        length, vector = lengths(outputs), lengths(self.weight)
        vector = vector if self.weight.ndim == 1 else vector[:, None]
        return length * (vector + self._penalty(outputs) * length)


class VocabularyHead(_ArrayHead):
    """Logits ``h(x) = U x`` of C classes or words, for the cross-entropy loss.

    Attributes:
        weight: The matrix ``U``, ``(C, v)`` or ``(instances, C, v)``: a row a class.
    """

    name: ClassVar[str] = "vocabulary"
    first: ClassVar[tuple[str, int]] = ("weight", 2)
    weight: Float[Any, "*instances C v"]

    def __init__(self, weight: Any) -> None:
        """Checks and stores the matrix.

        Args:
            weight: ``(C, v)`` with two classes or more, or ``(instances, C, v)``.

        Raises:
            InvalidInputError: If the shape is different, or an entry is not a finite number.
        """
        self.weight = checked_array(weight, ("C", "v"))
        if self.weight.shape[-2] < 2:
            raise InvalidInputError(
                "head", "it has one class, so there is nothing to tell apart", "Give two or more"
            )

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``U x``."""
        return outputs @ self.weight.swapaxes(-1, -2)

    @property
    def classes(self) -> int | None:
        """Number of rows of the matrix."""
        return self.weight.shape[-2]


class ValueMatrix(_ArrayHead):
    """A value matrix before another head: ``h(V^T x)``.

    Attention averages values, so that multiplying the average is the same as multiplying every
    token: ``V^T sum_t p_t x_t = sum_t p_t V^T x_t``.

    Attributes:
        matrix: The matrix ``V``, ``(v, w)`` or ``(instances, v, w)``.
        head: The head ``h``, which reads vectors of dimension w.
    """

    kind: ClassVar[str] = "value_matrix"
    first: ClassVar[tuple[str, int]] = ("matrix", 2)
    matrix: Float[Any, "*instances v w"]
    head: Head

    def __init__(self, matrix: Any, head: Any) -> None:
        """Checks and stores the matrix and the head behind it.

        Args:
            matrix: ``(v, w)``, or ``(instances, v, w)``.
            head: A head for dimension w, or an Equinox module from ``(w,)`` to a prediction.

        Raises:
            InvalidInputError: If shapes are different, an entry is not a finite number, or the
                head does not read vectors of dimension w.
        """
        matrix = checked_array(matrix, ("v", "w"))
        head = as_head(head, matrix.shape[-1])
        if head.input_dimension != matrix.shape[-1]:
            raise InvalidInputError(
                "head",
                f"it reads vectors of dimension {head.input_dimension}, but the value matrix "
                f"gives {matrix.shape[-1]}",
                f"Give a matrix of shape ({matrix.shape[-2]}, {head.input_dimension})",
            )
        if matrix.ndim == 3 and head.instances is None:
            head = head.for_instances(np.zeros(matrix.shape[0], dtype=int))
        count = () if head.instances is None else (head.instances,)
        self.matrix, _ = share_instances((matrix, 2), (np.zeros(count), 0))
        self.head = head

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Its own name and that of the head behind it."""
        return f"{self.kind}.{self.head.name}"

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``h(V^T x)``."""
        return self.head.predict(outputs @ self.matrix)

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """That of the head, for the sizes of the terms that add up to ``V^T x``."""
        return self.head.reach(self._by_instance(lambda x: abs(x) @ abs(self.matrix), outputs))

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """``V`` times that of the head."""
        return self.head.mean_gradient(start @ self.matrix, end @ self.matrix) @ self.matrix.T

    def arrays(self) -> dict[str, np.ndarray]:
        """The matrix, and the arrays of the head behind it."""
        behind = {f"head.{name}": array for name, array in self.head.arrays().items()}
        return {"matrix": np.asarray(self.matrix), **behind}

    @property
    def input_dimension(self) -> int:
        """Number of rows of the matrix."""
        return self.matrix.shape[-2]

    @property
    def classes(self) -> int | None:
        """Number of logits of the head behind it."""
        return self.head.classes


_HEADS: dict[str, type[Head]] = {
    head.name: head for head in (LinearHead, ReLUHead, ConcaveHead, VocabularyHead)
}
_BEFORE = f"{ValueMatrix.kind}."


def as_head(head: Any, input_dimension: int) -> Head:
    """Returns a head as it is, and an Equinox module wrapped as one.

    Args:
        head: A ``Head``, or an Equinox module that maps one vector to a number or to logits; or
            a list of these, one for each attention head.
        input_dimension: Dimension of the vectors it is to read.

    Raises:
        InvalidInputError: If it is neither, or the module does not accept such vectors.
    """
    if isinstance(head, Head):
        return head
    several = isinstance(head, list | tuple) and len(head) > 0
    if several and all(isinstance(one, eqx.Module) for one in head):
        return PredictionHeads([as_head(one, input_dimension) for one in head])
    if isinstance(head, eqx.Module):
        return ModuleHead(head, input_dimension)
    hint = ", or wrap a function: equinox.nn.Lambda(function)" if callable(head) else ""
    raise InvalidInputError(
        "head",
        f"{type(head).__name__} is not a head",
        f"Give one, such as LinearHead(v) or an Equinox module{hint}",
    )


def is_linear(head: Head) -> bool:
    """Whether a head is linear in the outputs: a ``LinearHead``, perhaps behind value matrices."""
    while isinstance(head, ValueMatrix):
        head = head.head
    return isinstance(head, LinearHead)


def is_known(name: str) -> bool:
    """Whether a head with this name can be built again from its arrays alone."""
    if each := names_of_each(name):
        return all(not names_of_each(one) and is_known(one) for one in each)
    return name.removeprefix(_BEFORE) in _HEADS or (
        name.startswith(_BEFORE) and is_known(name.removeprefix(_BEFORE))
    )


def head_from_arrays(name: str, arrays: Mapping[str, Any]) -> Head:
    """Builds a head again from its name and its arrays.

    Raises:
        InvalidInputError: If no head has that name, or the arrays do not define one.
    """
    if not is_known(name):
        raise InvalidInputError(
            "head", f"there is none named {name!r}", f"Known heads: {', '.join(_HEADS)}"
        )
    try:
        if each := names_of_each(name):
            own = arrays_of_each(arrays, len(each))
            return PredictionHeads(
                [head_from_arrays(one, its) for one, its in zip(each, own, strict=True)]
            )
        if name.startswith(_BEFORE):
            own, behind = {}, {}
            for key, value in arrays.items():
                (behind if key.startswith("head.") else own)[key.removeprefix("head.")] = value
            return ValueMatrix(**own, head=head_from_arrays(name.removeprefix(_BEFORE), behind))
        return _HEADS[name](**arrays)
    except TypeError as error:
        raise InvalidInputError(
            "head", f"the arrays {sorted(arrays)} do not define {name!r}", str(error)
        ) from error

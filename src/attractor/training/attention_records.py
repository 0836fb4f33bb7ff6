"""What is recorded of an attention layer in training, in parts that runs have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from attractor.attention import mean_loss, scaled_gradient
from attractor.attention.gradients.entrywise import entrywise_gradient
from attractor.attention.gradients.plain import plain_gradient
from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Descent, Parameterization, Parameters
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled, log_norm
from attractor.attention.softmax import softmax_row
from attractor.geometry import Geometry
from attractor.support.errors import InvalidInputError


class Snapshot(NamedTuple):
    """One trial at a recorded step, the argument of metrics.

    With several attention heads ``W`` and ``probabilities`` have a leading axis of them.

    Attributes:
        W: The effective attention matrix.
        parameters: The attention parameters.
        head: The head.
        rows: The data set.
        probabilities: Attention weights.
        loss: The training loss over the whole data set.
        log_gradient_norm: Logarithm of the Euclidean norm of its gradient.
    """

    W: Float[Array, "*attention_head d e"]
    parameters: PyTree
    head: Head
    rows: Rows
    probabilities: Float[Array, "*attention_head sequence query token"]
    loss: Float[Array, ""]
    log_gradient_norm: Float[Array, ""]


Metric = Callable[[Snapshot], Array]


class Seen(NamedTuple):
    """What is measured of a trial.

    Attributes:
        parameters: What is trained.
        log_time: Logarithm of the time that its steps take without normalization.
        head: The head; where it is trained, the one training began with.
        rows: The rows of its data set.
    """

    parameters: Parameters
    log_time: Float[Array, ""]
    head: Head
    rows: Rows


@dataclass(frozen=True)
class AttentionRecorder:
    """Loss, gradient, what is attended to, parameters, and the user's metrics.

    Attributes:
        parameterization: What the attention parameters are, and whether the head is trained.
        loss: The loss.
        kernel: ``"exact"``, or ``"plain"`` for gradients that cancel as published code's do.
        by_entry: Whether every entry of the gradient has a scale of its own.
        metrics: What is recorded besides, with its name.
    """

    parameterization: Parameterization
    loss: Loss
    kernel: str
    by_entry: bool
    metrics: tuple[tuple[str, Metric], ...]

    def seen(self, state: Any, data: Any) -> tuple[Seen]:
        """Parameters, head and data set."""
        return (Seen(state.parameters, state.log_time, data.head, data.rows),)

    def record(self, seen: Seen) -> dict[str, Array]:
        """Measures one trial."""
        layer, rows = self.parameterization, seen.rows
        attention, head = seen.parameters.attention, head_of(seen.parameters, seen.head)
        gradient = self.gradient(seen.parameters, seen.head, rows)
        probabilities = _probabilities(layer, attention, rows)
        W = layer.effective_matrix(attention)
        loss = mean_loss(layer, self.loss, attention, head, rows)
        size = log_norm(gradient)
        snapshot = Snapshot(W, attention, head, rows, probabilities, loss, size)
        return {
            "loss": loss,
            "log_gradient_norm": size,
            "log_time": seen.log_time,
            "attended": probabilities.argmax(-1).astype(jnp.int32),
            "attended_probability": probabilities.max(-1),
            **self.weights(seen.parameters),
            **{name: _measured(name, metric, snapshot) for name, metric in self.metrics},
        }

    def weights(self, parameters: Parameters) -> dict[str, Any]:
        """Effective matrix, attention parameters and trained head, as named arrays."""
        arrays = dict(self.parameterization.to_arrays(parameters.attention))
        arrays["W"] = self.parameterization.effective_matrix(parameters.attention)
        if parameters.head is not None:
            arrays |= {f"head_{name}": leaf for name, leaf in _named_leaves(parameters.head)}
        return arrays

    def gradient(self, parameters: Parameters, fixed: Head, rows: Rows) -> PyTree[Scaled]:
        """The gradient of the loss in all that is trained, with scales by array or by entry.

        Args:
            parameters: What is trained.
            fixed: The head where it is not among them.
            rows: The data set, or a batch of it.
        """
        exact = entrywise_gradient if self.by_entry else scaled_gradient
        function = plain_gradient if self.kernel == "plain" else exact
        head = head_of(parameters, fixed)
        found = function(self.parameterization, self.loss, parameters.attention, head, rows)
        return Parameters(found.attention, None if parameters.head is None else found.head)


@dataclass(frozen=True)
class NormRecorder:
    """The norm of ``W`` that is descended, apart, as other optimizers descend other norms.

    Attributes:
        parameterization: What the attention parameters are.
        geometry: The norm that the optimizer descends in the parameters.
        matrix_geometry: The norm of ``W``, where it does not follow from that.
        steps_by_array: Whether every array takes a step of its own length.
        joins_heads: Whether the arrays of attention heads are one.
    """

    parameterization: Parameterization
    geometry: Geometry | None
    matrix_geometry: Geometry | None
    steps_by_array: bool
    joins_heads: bool

    @classmethod
    def of(cls, parameterization: Parameterization, optimizer: Descent) -> NormRecorder:
        """That of an optimizer."""
        return cls(
            parameterization,
            optimizer.geometry,
            optimizer.matrix_geometry,
            optimizer.steps_by_array,
            optimizer.joins_heads,
        )

    def seen(self, state: Any, data: Any) -> tuple[PyTree]:
        """The attention parameters."""
        return (state.parameters.attention,)

    def record(self, attention: PyTree) -> dict[str, Array]:
        """Measures one trial."""
        W = self.parameterization.effective_matrix(attention)
        return {"norm": self.parameterization.descended_norm(W, self)}


def head_of(parameters: Parameters, fixed: Head) -> Head:
    """The head that predicts: the trained one if there is one."""
    return fixed if parameters.head is None else parameters.head


def _probabilities(layer: Parameterization, parameters: PyTree, rows: Rows) -> Array:
    """Attention weights, with a leading axis of attention heads where parameters have one."""
    found = [
        softmax_row(one.scores(own, rows), rows.mask).probabilities
        for one, own in layer.by_head(parameters)
    ]
    return found[0] if layer.attention_heads is None else jnp.stack(found)


def _measured(name: str, metric: Metric, seen: Snapshot) -> Array:
    """The value of a user's metric for a snapshot."""
    try:
        return jnp.asarray(metric(seen))
    except Exception as error:
        raise InvalidInputError(
            "metrics",
            f"{name!r} fails: {type(error).__name__}: {error}",
            "Return one array of numbers, by functions of jax.numpy",
        ) from error


def _named_leaves(tree: PyTree) -> list[tuple[str, Array]]:
    """Leaves with their paths, such as ``layers_0_weight``."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="_"), leaf) for path, leaf in leaves]

"""Quadratic functions of the weights of a prompt, and the means of their products."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.task import RegressionTask


class Quadratic(NamedTuple):
    """``constant + linear^T w + curvature w^T S w``, a function of the weights ``w``.

    Attributes:
        constant: The value at zero.
        linear: The slope at zero.
        curvature: The multiple of the variance of a label without noise.
    """

    constant: Float[Any, "*batch"]
    linear: Float[Any, "*batch d"]
    curvature: Float[Any, "*batch"]


class TaskArrays(NamedTuple):
    """The parameters of a task that the risk depends on, as arrays that may be traced.

    Attributes:
        covariance: ``S``, of the inputs of the prompt.
        query_factor: ``R``; queries are ``R g`` with ``g`` standard normal.
        weight_variance: ``t``.
        label_noise: ``n``.
    """

    covariance: Float[Any, "d d"]
    query_factor: Float[Any, "d d"]
    weight_variance: Float[Any, ""]
    label_noise: Float[Any, ""]

    @classmethod
    def of(cls, task: RegressionTask) -> TaskArrays:
        """That of a task."""
        return cls(task.covariance, task.query_factor, task.weight_variance, task.label_noise)


class TokenForms:
    """Covariances ``p^T Gamma_w q`` of two functionals of a token, given the weights ``w``.

    Functionals are vectors of inputs, then label. They are quadratic in ``w``, which is Gaussian,
    so means of their products are closed forms.
    """

    def __init__(self, law: TaskArrays, blocks: Blocks) -> None:
        """Casts the law to the arrays of the blocks; these have one axis of heads.

        Args:
            law: Of prompts and queries.
            blocks: The heads.
        """
        xp = blocks.namespace
        law = TaskArrays(*(xp.asarray(part, dtype=blocks.key_query.dtype) for part in law))
        self._covariance, factor, self._variance, self._noise = law
        self._trace = xp.trace(law.covariance)
        self._square = (law.covariance**2).sum()
        labels = xp.reshape(blocks.value_label, (-1, 1))
        self.values = xp.concat([xp.asarray(blocks.value_inputs), labels], axis=-1)
        scores = xp.concat([blocks.key_query, blocks.label_row[:, None, :]], axis=-2)
        # A query is the factor times independent standard normal coordinates: a sum over these is
        # the mean over queries.
        self.scores = xp.matrix_transpose(scores @ factor)  # heads, coordinates, tokens
        self.target = Quadratic(
            xp.zeros_like(factor[0]), xp.matrix_transpose(factor), xp.zeros_like(factor[0])
        )

    def covariance(self, p: Float[Any, "*batch d+1"], q: Float[Any, "*batch d+1"]) -> Quadratic:
        """``p^T Gamma_w q``, as a function of the weights."""
        left, right = p[..., :-1] @ self._covariance, q[..., :-1] @ self._covariance
        inputs = (left * q[..., :-1]).sum(axis=-1)
        labels = p[..., -1] * q[..., -1]
        linear = p[..., -1:] * right + q[..., -1:] * left
        return Quadratic(inputs + self._noise * labels, linear, labels)

    def mean_product(self, f: Quadratic, g: Quadratic) -> Float[Any, "*batch"]:
        """Mean of the product of two quadratic functions of ``w ~ N(0, variance I)``."""
        variance, trace = self._variance, self._variance * self._trace
        fourth = trace**2 + 2 * variance**2 * self._square
        return (
            f.constant * g.constant
            + variance * (f.linear * g.linear).sum(axis=-1)
            + trace * (f.constant * g.curvature + f.curvature * g.constant)
            + fourth * f.curvature * g.curvature
        )

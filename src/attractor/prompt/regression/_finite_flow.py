"""Gradient flow of a softmax head on prompts of finite length, exactly, for any covariances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.blas import single_blas_thread
from attractor.checks import check_choice, check_kinds, check_number, naming
from attractor.errors import InvalidInputError
from attractor.prompt.regression._infinite_flow import BlockFlow
from attractor.prompt.regression._infinite_risk import limit_horizon
from attractor.prompt.regression._softmax_risk import label_head
from attractor.prompt.regression.averaged_softmax import AveragedSoftmax
from attractor.prompt.regression.blocks import Blocks
from attractor.prompt.regression.flow import CompiledRisk, follow_risk
from attractor.prompt.regression.initialization import balanced_initialization
from attractor.prompt.regression.linear_attention import check_length
from attractor.prompt.regression.task import RegressionTask

_DIFFERENCE = 1e-5
_LARGEST_HORIZON = 4.0  # beyond, few of the averages over prompts are tabulated
_OFF_DIAGONAL = 1e-13
_MIXTURE = (1.0, math.sqrt(2) / 2, math.sqrt(3) / 3)


def finite_flow(
    task: RegressionTask,
    length: float,
    initial: Blocks | float,
    times: Float[ArrayLike, "time"],
    *,
    value: Literal["trained", "fixed"] = "trained",
    tolerance: float = 1e-9,
) -> BlockFlow:
    """Gradient flow of softmax attention on the exact risk of finite prompts, of one head.

    ``A' = -dR/dA`` and ``b' = -dR/db`` from a head with ``c = v = 0``, which the flow keeps. The
    risk is that of ``softmax_risk``, and the mean over queries is exact as well: an integral over
    the law of the score deviation, for any covariances. Where both covariances and the start have
    common axes, as from a multiple of the identity with queries like inputs, ``A`` keeps them and
    the flow is that of its eigenvalues.

    With the value fixed only ``A`` moves. On infinite prompts one ``A`` alone then predicts
    exactly, and flows on long prompts end near it; with the value trained they end elsewhere, see
    ``finite_prompt_limit``.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt; ``math.inf`` gives the flow on infinite prompts.
        initial: Blocks of one head, or the scale of the balanced start with the identity.
        times: When to record: increasing, from 0 on.
        value: Whether ``b`` is trained too, or fixed at its start.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If the start does not fit the task, has several heads or one with ``c``
            or ``v`` not zero, the length is below 1, times do not increase, or scores are so large
            that one token takes all attention.
    """
    check_kinds(task=(task, RegressionTask))
    check_choice("value", value, ("trained", "fixed"))
    tolerance = check_number("tolerance", tolerance, above=0.0, below=1.0, example=1e-9)
    if not isinstance(initial, Blocks):
        initial = check_number("initial", initial, above=0.0, most=1e100, example=0.1)
        initial = balanced_initialization(task.covariance, initial)
    with naming(blocks="initial"):
        a, b = label_head(task, initial)
    check_length(length)
    if length < math.inf and (horizon := float(limit_horizon(task, initial))) > _LARGEST_HORIZON:
        raise InvalidInputError(
            "initial",
            f"its scores have the horizon {horizon:.3g}, where one token takes all attention",
            f"Give a start whose horizon is at most {_LARGEST_HORIZON:g}",
        )
    head = _Head.of(task, a, None if value == "trained" else float(b))
    risk = _Risk(AveragedSoftmax(task, length), head)
    compiled = CompiledRisk(head.blocks, risk.value, risk.gradient, risk.hessian)
    with single_blas_thread():
        flow = follow_risk(compiled, head.point(a, float(b)), times, tolerance)
    return BlockFlow(**vars(flow))


@dataclass(frozen=True)
class _Head:
    """The parameters of a head that move, as one vector.

    Attributes:
        dimension: Number of inputs.
        axes: Common axes of the covariances and ``A``, in which it stays diagonal, or None.
        value: ``b`` where it is fixed, or None.
    """

    dimension: int
    axes: Float[np.ndarray, "d d"] | None
    value: float | None

    @classmethod
    def of(
        cls, task: RegressionTask, key_query: Float[np.ndarray, "d d"], value: float | None
    ) -> _Head:
        """Chooses the axes for a start."""
        matrices = [
            each / max(float(np.abs(each).max()), np.finfo(np.float64).tiny)
            for each in (task.covariance, task.query_covariance, key_query)
        ]
        mixed = sum(share * each for share, each in zip(_MIXTURE, matrices, strict=True))
        axes = np.linalg.eigh(mixed)[1]
        off = max(
            float(np.abs(turned - np.diag(np.diag(turned))).max())
            for turned in (axes.T @ each @ axes for each in matrices)
        )
        common = off <= _OFF_DIAGONAL * task.dimension
        return cls(task.dimension, axes if common else None, value)

    def point(self, key_query: Float[np.ndarray, "d d"], value: float) -> np.ndarray:
        """The parameters of a head, or derivatives in them of a function of a head."""
        body = key_query.ravel()
        if self.axes is not None:
            body = np.sum(self.axes * (key_query @ self.axes), axis=0)
        return body if self.value is not None else np.append(body, value)

    def blocks(self, points: Float[np.ndarray, "*batch parameter"]) -> Blocks:
        """The blocks of one head or several."""
        batch, d = points.shape[:-1], self.dimension
        body = points if self.value is not None else points[..., :-1]
        value = np.full(batch, self.value) if self.value is not None else points[..., -1]
        if self.axes is None:
            body = body.reshape(*batch, d, d)
        else:
            body = self.axes * body[..., None, :] @ self.axes.T
        zeros = np.zeros((*batch, d))
        return Blocks(body, zeros, zeros, value)


@dataclass(frozen=True)
class _Risk:
    """The risk of parameters that move, with its derivatives."""

    softmax: AveragedSoftmax
    head: _Head

    def value(self, point: np.ndarray) -> Any:
        """The risk."""
        return self._at(point).risk

    def gradient(self, point: np.ndarray) -> np.ndarray:
        """Its gradient."""
        found = self._at(point)
        return self.head.point(found.key_query, found.value_label)

    def hessian(self, point: np.ndarray) -> np.ndarray:
        """Differences of the gradient; steps of the flow need no more than that."""
        step = _DIFFERENCE * float(np.linalg.norm(point)) / math.sqrt(point.size)
        moves = step * np.eye(point.size)
        rows = [self.gradient(point + move) - self.gradient(point - move) for move in moves]
        found = np.array(rows) / (2 * step)
        return (found + found.T) / 2

    def _at(self, point: np.ndarray) -> Any:
        blocks = self.head.blocks(np.asarray(point, dtype=np.float64))
        if not np.isfinite(point).all():
            raise InvalidInputError(
                "initial", "the flow from it leaves floating point", "Give a smaller start"
            )
        return self.softmax(blocks.key_query, float(blocks.value_label))

"""Gradient flow of a softmax head on prompts of finite length, exactly, for any covariances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.flows._infinite_flow import BlockFlow
from attractor.prompts.regression.flows.flow import CompiledRisk, follow_risk
from attractor.prompts.regression.flows.initialization import balanced_initialization
from attractor.prompts.regression.risks._infinite_risk import limit_horizon
from attractor.prompts.regression.risks._softmax_risk import label_heads
from attractor.prompts.regression.risks.averaged_softmax import AveragedSoftmax, Evaluated
from attractor.prompts.regression.risks.linear_attention import check_length
from attractor.prompts.regression.risks.prompt_averages import OneHead, OppositeHeads
from attractor.prompts.regression.task import RegressionTask
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_choice, check_kinds, check_number, naming
from attractor.support.errors import InvalidInputError

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
    """Gradient flow of softmax attention on the exact risk of finite prompts.

    ``A' = -dR/dA`` and ``b' = -dR/db`` from a head with ``c = v = 0``, which the flow keeps, or
    from two opposite heads ``(A, b)`` and ``(-A, -b)``, which stay opposite: the law of prompts is
    the same for tokens ``-x`` and weights ``-w``, and the risk is even in all four blocks. The
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
        initial: Blocks of one head or of two opposite ones, as ``opposite_heads`` gives them, or
            the scale of the balanced start of one head with the identity.
        times: When to record: increasing, from 0 on.
        value: Whether ``b`` is trained too, or fixed at its start.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If the start does not fit the task, has several heads that are not two
            opposite ones, or one with ``c`` or ``v`` not zero, the length is below 1, times do not
            increase, or scores are so large that one token takes all attention.
    """
    check_kinds(task=(task, RegressionTask))
    check_choice("value", value, ("trained", "fixed"))
    tolerance = check_number("tolerance", tolerance, above=0.0, below=1.0, example=1e-9)
    if not isinstance(initial, Blocks):
        initial = check_number("initial", initial, above=0.0, most=1e100, example=0.1)
        initial = balanced_initialization(task.covariance, initial)
    with naming(blocks="initial"):
        key_query, value_label = label_heads(task, initial)
    check_length(length)
    horizon = float(np.max(limit_horizon(task, initial)))
    if length < math.inf and horizon > _LARGEST_HORIZON:
        raise InvalidInputError(
            "initial",
            f"its scores have the horizon {horizon:.3g}, where one token takes all attention",
            f"Give a start whose horizon is at most {_LARGEST_HORIZON:g}",
        )
    averages = OneHead(length) if len(value_label) == 1 else OppositeHeads(length)
    if len(value_label) > 1 and not _are_opposite(key_query, value_label):
        raise InvalidInputError(
            "initial",
            f"it is {len(value_label)} heads",
            "Give one head, or two of opposite signs, as opposite_heads makes them",
        )
    a, b = key_query[0], float(value_label[0])
    shape = np.shape(initial.value_label)
    head = _Heads.of(task, a, None if value == "trained" else b, shape)
    risk = _Risk(AveragedSoftmax(task, averages), head)
    compiled = CompiledRisk(head.blocks, risk.value, risk.gradient, risk.hessian)
    with single_blas_thread():
        flow = follow_risk(compiled, head.point(a, b), times, tolerance)
    return BlockFlow(**vars(flow))


def _are_opposite(
    key_query: Float[np.ndarray, "head d d"], value_label: Float[np.ndarray, "head"]
) -> bool:
    """Whether heads are two of opposite signs."""
    return (
        len(value_label) == 2
        and np.array_equal(key_query[0], -key_query[1])
        and value_label[0] == -value_label[1]
    )


@dataclass(frozen=True)
class _Heads:
    """The parameters of one head, or of two opposite ones, that move, as one vector.

    Of two heads it is ``sqrt(2)`` times those of the first: as long as those of both.

    Attributes:
        dimension: Number of inputs.
        axes: Common axes of the covariances and ``A``, in which it stays diagonal, or None.
        value: ``b`` of the first where it is fixed, or None.
        shape: Of the axes of heads.
    """

    dimension: int
    axes: Float[np.ndarray, "d d"] | None
    value: float | None
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls,
        task: RegressionTask,
        key_query: Float[np.ndarray, "d d"],
        value: float | None,
        shape: tuple[int, ...],
    ) -> _Heads:
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
        return cls(task.dimension, axes if common else None, value, shape)

    @property
    def count(self) -> int:
        """Number of heads."""
        return math.prod(self.shape)

    def point(self, key_query: Float[np.ndarray, "d d"], value: float) -> np.ndarray:
        """The parameters, from the blocks of the first head."""
        body = key_query.ravel()
        if self.axes is not None:
            body = np.sum(self.axes * (key_query @ self.axes), axis=0)
        return math.sqrt(self.count) * (body if self.value is not None else np.append(body, value))

    def first(
        self, points: Float[np.ndarray, "*batch parameter"]
    ) -> tuple[Float[np.ndarray, "*batch d d"], Float[np.ndarray, "*batch"]]:
        """``A`` and ``b`` of the first head."""
        points, d = points / math.sqrt(self.count), self.dimension
        body = points if self.value is not None else points[..., :-1]
        value = points[..., -1] if self.value is None else np.full(points.shape[:-1], self.value)
        if self.axes is None:
            return body.reshape(*points.shape[:-1], d, d), value
        return self.axes * body[..., None, :] @ self.axes.T, value

    def blocks(self, points: Float[np.ndarray, "*batch parameter"]) -> Blocks:
        """The blocks of all heads."""
        key_query, value = self.first(points)
        batch, d = points.shape[:-1], self.dimension
        signs = np.array([1.0, -1.0])[: self.count].reshape(self.shape)
        value = value.reshape(*batch, *(1,) * len(self.shape)) * signs
        key_query = key_query.reshape(*batch, *(1,) * len(self.shape), d, d)
        zeros = np.zeros((*batch, *self.shape, d))
        return Blocks(key_query * signs[..., None, None], zeros, zeros, value)


@dataclass(frozen=True)
class _Risk:
    """The risk of parameters that move, with its derivatives."""

    softmax: AveragedSoftmax
    heads: _Heads

    def value(self, point: np.ndarray) -> Any:
        """The risk."""
        return self._at(point).risk

    def gradient(self, point: np.ndarray) -> np.ndarray:
        """Its gradient."""
        # The softmax is a function of A of the first head and of the sum of all |b|.
        found, count = self._at(point), self.heads.count
        return self.heads.point(found.key_query / count, found.value_label)

    def hessian(self, point: np.ndarray) -> np.ndarray:
        """Differences of the gradient; steps of the flow need no more than that."""
        step = _DIFFERENCE * (float(np.linalg.norm(point)) or 1.0) / math.sqrt(point.size)
        moves = step * np.eye(point.size)
        rows = [self.gradient(point + move) - self.gradient(point - move) for move in moves]
        found = np.array(rows) / (2 * step)
        return (found + found.T) / 2

    def _at(self, point: np.ndarray) -> Evaluated:
        if not np.isfinite(point).all():
            raise InvalidInputError(
                "initial", "the flow from it leaves floating point", "Give a smaller start"
            )
        key_query, value = self.heads.first(np.asarray(point, dtype=np.float64))
        return self.softmax(key_query, self.heads.count * float(value))

"""Gradient flow of the blocks of heads, on prompts of finite and of infinite length."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import numpy as np
import xarray as xr
from jaxtyping import ArrayLike, Float

from attractor.prompts.regression.blocks import Blocks, balanced_initialization
from attractor.prompts.regression.flows.flow import CompiledRisk, RiskFlow, follow_risk
from attractor.prompts.regression.risks.infinite_prompts import (
    TaskArrays,
    infinite_risk_of,
    limit_horizon,
)
from attractor.prompts.regression.risks.linear_attention import (
    check_length,
    linear_attention_risk_of,
)
from attractor.prompts.regression.risks.prompt_averages import (
    AveragedSoftmax,
    Evaluated,
    OneHead,
    OppositeHeads,
)
from attractor.prompts.regression.risks.softmax_risks import label_heads
from attractor.prompts.regression.task import RegressionTask
from attractor.prompts.regression.training import PARAMETERIZATIONS, Model, initial_parameters
from attractor.prompts.regression.trajectory import InContextTrajectory
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_choice, check_kinds, check_number, naming
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

_FAR = 100.0
"""Ratio of variances from which on a flow is followed along their directions."""
_COVARIANCES = "covariance", "query_covariance"


@dataclass(frozen=True, eq=False)
class BlockFlow(RiskFlow):
    """Gradient flow of all blocks of one head or several.

    Attributes:
        times: When it was recorded.
        parameters: The blocks, each with an axis of times in front.
        risk: ``E (prediction - w^T x_q)^2 / 2``.
    """

    @property
    def blocks(self) -> Blocks:
        """The blocks, each with an axis of times in front."""
        return self.parameters

    @property
    def last(self) -> Blocks:
        """The blocks at the last time."""
        return Blocks(*(block[-1] for block in self.parameters))

    @property
    def balance(self) -> Float[np.ndarray, "time *head"]:
        """``||A||_F^2 + |c|^2 - |v|^2 - b^2`` of each head.

        Flows on infinite prompts and of linear attention keep it, that of softmax attention on
        finite ones does not.
        """
        return self.blocks.balance


def infinite_flow(
    task: RegressionTask,
    initial: Blocks | float,
    times: Float[ArrayLike, "time"],
    *,
    tolerance: float = 1e-13,
) -> BlockFlow:
    """Gradient flow on the exact risk of a prompt of infinite length.

    All blocks move, ``(A, c, v, b)' = -grad R(A, c, v, b)``; from a start with ``c = v = 0`` these
    stay zero, ``A' = b t S (I - b S A) S_q`` and ``b' = t tr(A^T S (I - b S A) S_q)``, where ``t``
    is the variance of the weights.

    Args:
        task: The law of prompts and queries.
        initial: Blocks of one head or several, or the scale of the balanced start with the
            identity.
        times: When to record: increasing, from 0 on.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If the start does not fit the task, or times do not increase.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), training in in-context linear regression.
    """
    return linear_attention_flow(task, initial, times, math.inf, tolerance=tolerance)


def linear_attention_flow(
    task: RegressionTask,
    initial: Blocks | float,
    times: Float[ArrayLike, "time"],
    length: float,
    *,
    tolerance: float = 1e-13,
) -> BlockFlow:
    """Gradient flow on the exact risk of linear attention, of any length.

    Args:
        task: The law of prompts and queries.
        initial: Blocks of one head or several, or the scale of the balanced start with the
            identity.
        times: When to record: increasing, from 0 on.
        length: Number of tokens of a prompt.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If the start does not fit the task, the length is not positive, or times
            do not increase.

    Source:
        Zhang, Frei, Bartlett, "Trained Transformers Learn Linear Models In-Context" (JMLR 25,
        2024), the gradient flow of linear attention.
    """
    check_kinds(task=(task, RegressionTask))
    tolerance = check_number("tolerance", tolerance, above=0.0, below=1.0, example=1e-10)
    if not isinstance(initial, Blocks):
        initial = check_number("initial", initial, above=0.0, most=1e100, example=0.1)
        initial = balanced_initialization(task.covariance, initial)
    initial.flat_heads(task.dimension)
    if not all(np.isfinite(block).all() for block in initial):
        raise InvalidInputError("initial", "an entry is not finite", "Give finite blocks")
    check_length(length)
    axes = _axes(task.covariance)
    if axes is not None:
        covariances = (_turned(one, axes) for one in (task.covariance, task.query_covariance))
        task = replace(task, **dict(zip(_COVARIANCES, covariances, strict=True)))
        initial = _along(initial, axes.T)
    compiled = _compiled(task.dimension, np.shape(initial.value_label)).on(
        (TaskArrays.of(task), 1 / length)
    )
    flow = vars(follow_risk(compiled, initial, times, tolerance))
    if axes is not None:
        flow["parameters"] = _along(flow["parameters"], axes)
    return BlockFlow(**flow)


def _axes(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"] | None:
    """Directions without covariance, where variances differ by so much that others mix them up."""
    variances, axes = np.linalg.eigh(covariance)
    apart = np.any(covariance - np.diag(np.diag(covariance)))
    return axes if apart and variances[-1] > _FAR * variances[0] else None


def _turned(
    covariance: Float[np.ndarray, "d d"], axes: Float[np.ndarray, "d d"]
) -> Float[np.ndarray, "d d"]:
    """A covariance along the directions; what rounding of the turn leaves between them is zero."""
    turned = axes.T @ covariance @ axes
    turned = (turned + turned.T) / 2
    rounding = 64 * np.finfo(np.float64).eps * np.abs(turned).max()
    kept = (np.abs(turned) > rounding) | np.eye(len(turned), dtype=bool)
    return np.where(kept, turned, 0.0)


def _along(blocks: Blocks, turn: Float[np.ndarray, "d d"]) -> Blocks:
    """Blocks in turned coordinates."""
    a, c, v, b = blocks
    return Blocks(turn @ a @ turn.T, c @ turn.T, v @ turn.T, b)


@functools.cache
def _compiled(dimension: int, heads: tuple[int, ...]) -> CompiledRisk:
    """The risk, compiled once for all tasks and lengths."""
    d = dimension
    example = Blocks(
        np.zeros((*heads, d, d)), np.zeros((*heads, d)), np.zeros((*heads, d)), np.zeros(heads)
    )
    return CompiledRisk.of(
        lambda blocks, data: linear_attention_risk_of(data[0], blocks.flat_heads(d), data[1]),
        example,
    )


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


_TIMES = 200
_FIRST = 1e-3
_TOLERANCE = 1e-9


def limit_flow(run: InContextTrajectory) -> xr.Dataset | None:
    """Gradient flow on the exact risk of infinite prompts, in the parameters that a run trains.

    Args:
        run: Training that recorded step 0; the flow starts where its first seed did.

    Returns:
        ``risk``, and of the first head ``value_label``, ``key_query_norm`` and ``balance``, along
        ``time`` up to that of the last step; None if step 0 was not recorded.
    """
    if run.steps[0] != 0 or run.steps[-1] == 0:
        return None
    settings, task = run.settings, run.task
    model = PARAMETERIZATIONS[settings["parameterization"]](task.dimension, settings["heads"])
    if settings["initialization"] == "default":
        start = initial_parameters(model, settings["seed"])
    else:
        start = model.of_blocks(Blocks(*(block[0] for block in run.blocks(0))))
    last = run.steps[-1] * run.time_of_step
    times = np.concatenate([[0.0], np.geomspace(_FIRST * last, last, _TIMES)])
    flow = follow_risk(_compiled_of_model(model).on(TaskArrays.of(task)), start, times, _TOLERANCE)
    with double_precision():
        blocks = jax.tree.map(np.asarray, jax.vmap(model.blocks)(flow.parameters))
    first = Blocks(*(block[:, 0] for block in blocks))
    return xr.Dataset(
        {
            "risk": ("time", flow.risk),
            "value_label": ("time", first.value_label),
            "key_query_norm": ("time", np.linalg.norm(first.key_query, axis=(-2, -1))),
            "balance": ("time", first.balance),
        },
        {"time": flow.times},
    )


@functools.cache
def _compiled_of_model(model: Model) -> CompiledRisk:
    """The risk in the parameters of a model, compiled once for all tasks."""
    example = initial_parameters(model, 0)
    return CompiledRisk.of(
        lambda parameters, law: infinite_risk_of(law, model.blocks(parameters)), example
    )

"""The logarithm of the loss over two balls, with the head trained beside the attention layer."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.excess import TokenScores, log_loss_of_margins, token_scores
from attractor.attention.heads import LinearHead
from attractor.attention.losses import Loss
from attractor.attention.rows import Rows
from attractor.attention.softmax import softmax_attention
from attractor.geometry import Geometry
from attractor.training.paths.balls import Ball, BallObjective
from attractor.training.paths.fixed_head import (
    FixedHead,
    FixedHeadData,
    least_step,
    optimality_of,
    relative_gap,
)
from attractor.training.paths.following import Place, Point, Search
from attractor.training.paths.minimize import minimize

_ROUNDS = 30
_SETTLED = 1e-13
"""Optimality at which alternating between head and attention has nothing left to do."""


class JointData(NamedTuple):
    """One data set at one pair of radii.

    Attributes:
        matrix: Scores of every unit coordinate matrix.
        rows: The data set.
        radius: The radius R of W.
        head_radius: The radius r of the head.
    """

    matrix: Float[Any, "sequence query token k"]
    rows: Rows
    radius: Float[Any, ""]
    head_radius: Float[Any, ""]


class HeadData(NamedTuple):
    """Outputs of attention, with labels.

    Attributes:
        outputs: The outputs.
        labels: Their labels.
        head_radius: The radius r of the head.
    """

    outputs: Float[Any, "sequence query v"]
    labels: Float[Any, "sequence query"]
    head_radius: Float[Any, ""]


@dataclass(frozen=True)
class JointLoss:
    """``log L(r c, R C)`` over both unit balls.

    Attributes:
        loss: The loss.
        ball: The ball of C.
        head_ball: The ball of c.
        size: Number of coordinates of the first ball.
    """

    loss: Loss
    ball: Ball
    head_ball: Ball
    size: int

    def __call__(self, theta: Float[Array, "k"], data: JointData) -> Float[Array, ""]:
        """The objective in coordinates of the balls."""
        return self.at(
            self.ball.point(theta[: self.size]), self.head_ball.point(theta[self.size :]), data
        )

    def at(self, C: Float[Any, "p q"], c: Float[Any, "v 1"], data: JointData) -> Float[Array, ""]:
        """The objective at points of both balls."""
        outputs = attention_outputs(C, data)
        margins = data.head_radius * data.rows.labels * (outputs @ c[:, 0])
        return log_loss_of_margins(self.loss, margins)


@dataclass(frozen=True)
class HeadLoss(BallObjective):
    """``log L(r c)`` over the unit ball, with a fixed attention layer.

    Attributes:
        loss: The loss.
        ball: The ball.
    """

    loss: Loss
    ball: Ball

    def at(self, c: Float[Any, "v 1"], data: HeadData) -> Float[Array, ""]:
        """The objective at a point of the ball."""
        margins = data.head_radius * data.labels * (data.outputs @ c[:, 0])
        return log_loss_of_margins(self.loss, margins)


@jax.jit
def attention_outputs(C: Float[Any, "p q"], data: JointData) -> Float[Array, "sequence query v"]:
    """Outputs of attention for W of coordinates ``R C``."""
    scores = data.radius * (data.matrix @ C.ravel())
    return softmax_attention(scores, data.rows.values[:, None], data.rows.mask)


@dataclass(frozen=True)
class JointSearch(Search):
    """Minima of the loss of one data set in W and the head.

    Where attention saturates, W bears on the loss by less than its rounding. So both are sought
    together first, and then in turn: the head for the outputs as they are, W for the head as it
    is, by the excess loss, which is exact at any magnitude.

    Attributes:
        joint: The loss in both.
        fixed: The excess loss in W.
        head: The loss in the head.
        geometry: The norm of both.
        width: Largest rank of W, where it is bounded.
        data: The data set, at any radii.
        head_radii: Radius of the head by that of W.
        reach: Largest norm of a row of its matrix.
    """

    joint: JointLoss
    fixed: FixedHead
    head: HeadLoss
    geometry: Geometry
    width: int | None
    data: JointData
    head_radii: dict[float, float]
    reach: float

    def __call__(self, radius: float, start: Place) -> Point:
        """The local minimum that a start leads to."""
        data = self._at(radius)
        r = float(data.head_radius)
        step, head_step = least_step(radius * self.reach), least_step(r * self._length)
        theta = (self.fixed.ball.lift(start[0], step), self.head.ball.lift(start[1], head_step))
        found = minimize(self.joint, np.concatenate(theta), data)
        count = int(found.iterations)
        both = jnp.asarray(found.theta)
        C = np.asarray(self.fixed.ball.point(both[: self.joint.size]))
        c = np.asarray(self.head.ball.point(both[self.joint.size :]))
        best = self._certified(C, c, data)
        # In turn, as long as every round at least halves the gap: less progress is rounding.
        for _ in range(_ROUNDS):
            if best[0] <= _SETTLED:
                break
            outputs = HeadData(attention_outputs(C, data), data.rows.labels, data.head_radius)
            found = minimize(self.head, self.head.ball.lift(c, head_step), outputs)
            c, count = np.asarray(self.head.ball.point(found.theta)), count + int(found.iterations)
            found = minimize(self.fixed, self.fixed.ball.lift(C, step), self._fixed_data(c, data))
            C = np.asarray(self.fixed.ball.point(found.theta))
            count += int(found.iterations)
            now = self._certified(C, c, data)
            if not now[0] < 0.5 * best[0]:
                best = min(best, now, key=lambda one: one[0])
                break
            best = now
        gap, value, log_excess, C, c = best
        return Point((C, c), value, log_excess, gap, count)

    def values(
        self, radius: float, places: tuple[Float[np.ndarray, "place p q"], ...]
    ) -> Float[np.ndarray, "place"]:
        """The objective at many places."""
        return np.asarray(_values(self.joint, *places, self._at(radius)))

    def norm(self, C: Float[np.ndarray, "p q"]) -> float:
        """The norm of W in its coordinates."""
        return float(self.geometry.norm(C))

    @property
    def _length(self) -> float:
        return float(np.max(self.data.rows.value_norms))

    def _at(self, radius: float) -> JointData:
        r = self.head_radii[radius]
        return self.data._replace(radius=np.float64(radius), head_radius=np.float64(r))

    def _fixed_data(self, c: Float[np.ndarray, "v 1"], data: JointData) -> FixedHeadData:
        # Of a head of length r token scores are r times those of its direction, whose norm squares
        # to a number that floating point holds.
        unit, r = _token_scores(LinearHead(c[:, 0]), data.rows), data.head_radius
        tokens = TokenScores(r * unit.kept, unit.log_lower + np.log(r), None)
        return FixedHeadData(data.matrix, data.rows.mask, tokens, data.radius)

    def _certified(
        self, C: Float[np.ndarray, "p q"], c: Float[np.ndarray, "v 1"], data: JointData
    ) -> tuple[float, float, float, np.ndarray, np.ndarray]:
        """The larger of both gaps, the logarithms of loss and excess, and the point."""
        fixed = self._fixed_data(c, data)
        gap, log_excess = optimality_of(self.fixed, self.geometry, self.width, C, fixed)
        outputs = HeadData(attention_outputs(C, data), data.rows.labels, data.head_radius)
        head_gap, value = _head_optimality(self.head, self.geometry, c, outputs)
        # A gap that is not a number certifies nothing, and must not be the smaller of two.
        largest = np.nan_to_num([float(gap), float(head_gap)], nan=np.inf).max()
        return float(largest), float(value), float(log_excess), C, c


_token_scores = jax.jit(token_scores)


@functools.partial(jax.jit, static_argnums=0)
def _values(
    objective: JointLoss,
    matrices: Float[Array, "place p q"],
    heads: Float[Array, "place v 1"],
    data: JointData,
) -> Float[Array, "place"]:
    return jax.vmap(lambda C, c: objective.at(C, c, data))(matrices, heads)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _head_optimality(
    objective: HeadLoss, geometry: Geometry, c: Float[Any, "v 1"], data: HeadData
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    value, slope = jax.value_and_grad(objective.at)(c, data)
    return relative_gap(geometry.dual_norm(slope), (slope * c).sum()), value

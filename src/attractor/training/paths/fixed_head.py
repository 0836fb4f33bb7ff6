"""The logarithm of the excess loss over the ball of a norm, with a fixed head."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from attractor.attention.excess import TokenScores, log_excess_of_scores
from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.mixing import log_excess_of_mixtures
from attractor.attention.rows import Rows
from attractor.geometry import Geometry
from attractor.support.randomness import traced
from attractor.training.paths.balls import Ball, BallObjective
from attractor.training.paths.following import Place, Point, Search
from attractor.training.paths.minimize import minimize


class FixedHeadData(NamedTuple):
    """One data set at one radius.

    Attributes:
        matrix: Scores of every unit coordinate matrix.
        mask: True where a token takes part.
        tokens: Token scores.
        radius: The radius R.
    """

    matrix: Float[Any, "sequence query token k"]
    mask: Bool[Any, "sequence query token"]
    tokens: TokenScores
    radius: Float[Any, ""]


@dataclass(frozen=True)
class FixedHead(BallObjective):
    """``log(L(R C) - L_best)`` over the unit ball.

    Attributes:
        loss: The loss.
        ball: The ball.
    """

    loss: Loss
    ball: Ball

    def at(self, C: Float[Any, "p q"], data: FixedHeadData) -> Float[Array, ""]:
        """The objective at a point of the ball."""
        scores = data.radius * (data.matrix @ C.ravel())
        return log_excess_of_scores(self.loss, scores, data.mask, data.tokens)


class NonlinearHeadData(NamedTuple):
    """One data set at one radius, with a head to which mixtures of the best tokens are equal.

    Attributes:
        matrix: Scores of every unit coordinate matrix.
        rows: The data set.
        head: The head.
        best: The best tokens of each row.
        tokens: Token scores.
        radius: The radius R.
    """

    matrix: Float[Any, "sequence query token k"]
    rows: Rows
    head: Head
    best: Bool[Any, "sequence query token"]
    tokens: TokenScores
    radius: Float[Any, ""]


@dataclass(frozen=True)
class NonlinearHead(BallObjective):
    """``log(L(R C) - L_best)`` over the unit ball, where the head is not linear.

    Attributes:
        loss: The loss.
        ball: The ball.
    """

    loss: Loss
    ball: Ball

    def at(self, C: Float[Any, "p q"], data: NonlinearHeadData) -> Float[Array, ""]:
        """The objective at a point of the ball."""
        scores = data.radius * (data.matrix @ C.ravel())
        return log_excess_of_mixtures(self.loss, scores, data.best, data.head, data.rows)


@dataclass(frozen=True)
class FixedHeadSearch(Search):
    """Minima of the excess loss of one data set.

    Attributes:
        objective: What is minimized.
        geometry: The norm.
        width: Largest rank of W, where it is bounded.
        data: The data set, at any radius.
        reach: Largest norm of a row of its matrix.
    """

    objective: FixedHead | NonlinearHead
    geometry: Geometry
    width: int | None
    data: FixedHeadData | NonlinearHeadData
    reach: float

    def __call__(self, radius: float, start: Place) -> Point:
        """The local minimum that a start leads to."""
        data = self.data._replace(radius=np.float64(radius))
        theta = self.objective.ball.lift(start[0], least_step(radius * self.reach))
        found = minimize(self.objective, theta, data)
        C = np.asarray(self.objective.ball.point(found.theta))
        gap, value = optimality_of(self.objective, self.geometry, self.width, C, data)
        value, gap = float(value), float(np.nan_to_num(gap, nan=np.inf))
        return Point((C,), value, value, gap, int(found.iterations))

    def values(
        self, radius: float, places: tuple[Float[np.ndarray, "place p q"], ...]
    ) -> Float[np.ndarray, "place"]:
        """The objective at many places."""
        data = self.data._replace(radius=np.float64(radius))
        return np.asarray(values_at(self.objective, places[0], data))

    def norm(self, C: Float[np.ndarray, "p q"]) -> float:
        """The norm of W in its coordinates."""
        return float(self.geometry.norm(C))


def least_step(reach: float) -> float:
    """Distance by which to move a start off a point where the map onto the ball is stationary.

    Maps are quadratic there: scores of about ``reach`` change by some hundredths.
    """
    return min(0.1, 0.3 / np.sqrt(reach)) if reach > 0 else 0.1


@functools.partial(jax.jit, static_argnums=0)
@traced
def values_at(
    objective: BallObjective, places: Float[Any, "place p q"], data: PyTree
) -> Float[Array, "place"]:
    """The objective at many points of the ball."""
    return jax.vmap(lambda C: objective.at(C, data))(places)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
@traced
def optimality_of(
    objective: BallObjective,
    geometry: Geometry,
    width: int | None,
    C: Float[Any, "p q"],
    data: PyTree,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The relative Frank-Wolfe gap at a point, and the objective there.

    See ``relative_gap``. Where the rank of W is bounded, it is that of the factors, over the ball
    ``(||K||_F^2 + ||Q||_F^2) / 2 <= 1``.
    """
    value, slope = jax.value_and_grad(objective.at)(C, data)
    if width is None:
        return relative_gap(geometry.dual_norm(slope), (slope * C).sum()), value
    U, values, V = jnp.linalg.svd(C, full_matrices=False)
    root = jnp.sqrt(values[:width])
    along_K, along_Q = slope @ (V[:width].T * root), slope.T @ (U[:, :width] * root)
    steepest = jnp.sqrt(2 * ((along_K**2).sum() + (along_Q**2).sum()))
    return relative_gap(steepest, 2 * (slope * C).sum()), value


def relative_gap(dual_norm: Float[Array, ""], inner: Float[Array, ""]) -> Float[Array, ""]:
    """``(||g||_dual + <g, C>) / max(1, ||g||_dual)`` for the gradient g at a point C of the ball.

    The Frank-Wolfe gap ``max <g, C - D> over ||D|| <= 1``: zero where no direction descends, and
    a bound on what is left to gain where the objective is convex. Of a logarithm it is relative
    to the excess loss as it is; where the gradient is large it is taken relative to that as well.
    """
    return jnp.maximum(dual_norm + inner, 0) / jnp.maximum(dual_norm, 1)

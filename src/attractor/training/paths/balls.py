"""Unit balls of norms as smooth images of all of R^k.

A path is sought over a ball of a norm that may have corners. Each ball here is the image of R^k
under a twice differentiable map, so that minimizing over it is minimizing without constraints.
The maps are of the kind for which points that satisfy the second-order conditions upstairs are
stationary downstairs (Levin, Kileel and Boumal, *The effect of smooth parametrizations on
nonconvex optimization landscapes*, 2024); every path point is certified all the same. A slack
entry lets minima lie inside the ball.

Powers are written so that JAX gets their second derivatives right where the base is zero.
"""

from __future__ import annotations

import abc
import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.geometry import Frobenius, Geometry, Lp, Schatten
from attractor.support.errors import InvalidInputError


@dataclass(frozen=True)
class Ball(abc.ABC):
    """The unit ball of a norm on matrices of one shape.

    Attributes:
        shape: The shape ``(p, q)``.
    """

    shape: tuple[int, int]

    @abc.abstractmethod
    def point(self, theta: Float[Array, "k"]) -> Float[Array, "p q"]:
        """The point of the ball at coordinates."""

    @abc.abstractmethod
    def lift(self, C: Float[np.ndarray, "p q"], least: float) -> Float[np.ndarray, "k"]:
        """Coordinates of about a point of the ball.

        Coordinates at which the map is stationary are moved off by ``least``, so that a search
        that starts there can leave.
        """


class BallObjective(abc.ABC):
    """An objective over a ball, in coordinates of all of R^k.

    Attributes:
        ball: The ball.
    """

    ball: Ball

    def __call__(self, theta: Float[Array, "k"], data: Any) -> Float[Array, ""]:
        """The objective in coordinates of the ball."""
        return self.at(self.ball.point(theta), data)

    @abc.abstractmethod
    def at(self, C: Float[Any, "p q"], data: Any, /) -> Float[Array, ""]:
        """The objective at a point of the ball."""


@dataclass(frozen=True)
class RoundBall(Ball):
    """The Frobenius ball: ``theta / sqrt(sum theta^2 + s^2)``."""

    def point(self, theta: Float[Array, "k"]) -> Float[Array, "p q"]:
        """The point."""
        return (theta[:-1] / jnp.sqrt((theta**2).sum())).reshape(self.shape)

    def lift(self, C: Float[np.ndarray, "p q"], least: float) -> Float[np.ndarray, "k"]:
        """Coordinates."""
        return np.append(C, max(np.sqrt(max(1 - (C**2).sum(), 0)), least))


@dataclass(frozen=True)
class PowerBall(Ball):
    """The entrywise l_p ball for 2 <= p < inf: ``theta / (sum |theta|^p + |s|^p)^(1/p)``.

    Attributes:
        p: The exponent.
    """

    p: float

    def point(self, theta: Float[Array, "k"]) -> Float[Array, "p q"]:
        """The point."""
        total = absolute_power(theta, self.p).sum()
        return (theta[:-1] / total ** (1 / self.p)).reshape(self.shape)

    def lift(self, C: Float[np.ndarray, "p q"], least: float) -> Float[np.ndarray, "k"]:
        """Coordinates."""
        left = max(1 - (np.abs(C) ** self.p).sum(), 0) ** (1 / self.p)
        return np.append(C, max(left, least))


@dataclass(frozen=True)
class SquaresBall(Ball):
    """The entrywise l_p ball for 1 <= p < 2: differences of squares, smooth at zero entries.

    ``(u^2 - v^2) / N^(1/p)`` with ``N = sum |u|^(2p) + |v|^(2p) + |s|^(2p)``, which is least, at
    ``||W||_p^p``, where u or v vanishes in every entry.

    Attributes:
        p: The exponent.
    """

    p: float

    def point(self, theta: Float[Array, "k"]) -> Float[Array, "p q"]:
        """The point."""
        total = absolute_power(theta, 2 * self.p).sum()
        u, v = theta[:-1].reshape(2, -1)
        return ((u**2 - v**2) / total ** (1 / self.p)).reshape(self.shape)

    def lift(self, C: Float[np.ndarray, "p q"], least: float) -> Float[np.ndarray, "k"]:
        """Coordinates."""
        left = max(1 - (np.abs(C) ** self.p).sum(), 0) ** (0.5 / self.p)
        parts = np.sqrt(np.maximum([C.ravel(), -C.ravel()], 0)).ravel()
        return np.maximum(np.append(parts, left), least)


@dataclass(frozen=True)
class BoxBall(Ball):
    """The l_inf ball: ``sin theta``, entry by entry."""

    def point(self, theta: Float[Array, "k"]) -> Float[Array, "p q"]:
        """The point."""
        return jnp.sin(theta).reshape(self.shape)

    def lift(self, C: Float[np.ndarray, "p q"], least: float) -> Float[np.ndarray, "k"]:
        """Coordinates."""
        quarter = np.pi / 2 - least
        return np.clip(np.arcsin(np.clip(C.ravel(), -1, 1)), -quarter, quarter)


@dataclass(frozen=True)
class SpectralBall(Ball):
    """The ball of the largest singular value: ``2 M (I + M^T M)^(-1)``."""

    def point(self, theta: Float[Array, "k"]) -> Float[Array, "p q"]:
        """The point."""
        M = theta.reshape(self.shape)
        if self.shape[0] < self.shape[1]:
            return 2 * jnp.linalg.solve(jnp.eye(self.shape[0]) + M @ M.T, M)
        return 2 * jnp.linalg.solve(jnp.eye(self.shape[1]) + M.T @ M, M.T).T

    def lift(self, C: Float[np.ndarray, "p q"], least: float) -> Float[np.ndarray, "k"]:
        """Coordinates."""
        U, values, V = np.linalg.svd(C, full_matrices=False)
        return ((U * np.minimum(_half_angle(values), 1 - least)) @ V).ravel()


@dataclass(frozen=True)
class FactorBall(Ball):
    """The Schatten-p ball for 1 <= p < inf, of matrices up to a rank: ``K Q^T / N^(1/p)``.

    ``N = (||K||^(2p) + ||Q||^(2p)) / 2 + |s|^(2p)`` in the Schatten-2p norm, which by Hoelder's
    inequality is least, at ``||W||^p``, for balanced factors. With p = 1 it is the nuclear norm.

    Attributes:
        p: The exponent.
        width: Number of columns of the factors.
    """

    p: float
    width: int

    def factors(
        self, theta: Float[Array, "k"]
    ) -> tuple[Float[Array, "p width"], Float[Array, "q width"]]:
        """Both factors of ``K Q^T``, before it is divided by anything."""
        both = theta[:-1].reshape(sum(self.shape), self.width)
        return both[: self.shape[0]], both[self.shape[0] :]

    def point(self, theta: Float[Array, "k"]) -> Float[Array, "p q"]:
        """The point."""
        K, Q = self.factors(theta)
        total = (trace_power(K.T @ K, self.p) + trace_power(Q.T @ Q, self.p)) / 2
        total = total + absolute_power(theta[-1], 2 * self.p)
        return K @ Q.T / total ** (1 / self.p)

    def lift(self, C: Float[np.ndarray, "p q"], least: float) -> Float[np.ndarray, "k"]:
        """Coordinates."""
        U, values, V = np.linalg.svd(C, full_matrices=False)
        kept = min(self.width, len(values))
        left = max(1 - (values[:kept] ** self.p).sum(), 0) ** (0.5 / self.p)
        # Columns of both factors need not match where they are small: that is what moves them.
        both = np.zeros((sum(self.shape), self.width))
        both[:, :kept] = np.concatenate([U[:, :kept], V[:kept].T]) * np.sqrt(values[:kept])
        both += least * _quasirandom(both.shape) / np.sqrt(len(both))
        return np.append(both, max(left, least))


def ball_of(geometry: Geometry, shape: tuple[int, int], width: int | None = None) -> Ball:
    """The unit ball of a geometry.

    Args:
        geometry: The norm.
        shape: Shape of the matrices.
        width: Largest rank allowed, where the norm is the nuclear one.

    Raises:
        InvalidInputError: If the norm is not one that is known here.
    """
    if width is not None:
        return FactorBall(shape, 1.0, width)
    if isinstance(geometry, Schatten) and min(shape) == 1:
        geometry = Frobenius()  # of a vector all these norms are the same
    if isinstance(geometry, Frobenius) or geometry == Frobenius():
        return RoundBall(shape)
    if isinstance(geometry, Lp):
        if geometry.p == np.inf:
            return BoxBall(shape)
        return PowerBall(shape, geometry.p) if geometry.p > 2 else SquaresBall(shape, geometry.p)
    if isinstance(geometry, Schatten):
        if geometry.p == np.inf:
            return SpectralBall(shape)
        return FactorBall(shape, geometry.p, min(shape))
    raise InvalidInputError(
        "geometry",
        f"no path is known for the {geometry.name} norm",
        "Give Frobenius(), Lp(p), Schatten(p), Nuclear() or Spectral()",
    )


def _half_angle(c: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The t of smallest size with ``2 t / (1 + t^2) = c``."""
    return c / (1 + np.sqrt(np.maximum(1 - c**2, 0)))


def _quasirandom(shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Numbers without pattern, the same every time."""
    return np.random.default_rng(0).standard_normal(shape)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def absolute_power(x: Float[Array, "..."], p: float) -> Float[Array, "..."]:
    """``|x|^p`` for p >= 2."""
    return jnp.abs(x) ** p


@absolute_power.defjvp
def _absolute_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202 - JAX's own convention
    (x,), (dx,) = primals, tangents
    return absolute_power(x, p), p * _signed_power(x, p - 1) * dx


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _signed_power(x: Float[Array, "..."], p: float) -> Float[Array, "..."]:
    """``sign(x) |x|^p`` for p >= 1."""
    return jnp.sign(x) * jnp.abs(x) ** p


@_signed_power.defjvp
def _signed_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202
    (x,), (dx,) = primals, tangents
    return _signed_power(x, p), p * jnp.abs(x) ** (p - 1) * dx


def trace_power(A: Float[Array, "r r"], p: float) -> Float[Array, ""]:
    """``tr A^p`` for a positive semidefinite A and p >= 1."""
    return jnp.trace(A) if p == 1 else _trace_power(A, p)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _trace_power(A: Float[Array, "r r"], p: float) -> Float[Array, ""]:
    return (jnp.maximum(jnp.linalg.eigvalsh(A), 0) ** p).sum()


@_trace_power.defjvp
def _trace_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202
    (A,), (dA,) = primals, tangents
    return _trace_power(A, p), p * (_matrix_power(A, p - 1) * dA).sum()


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _matrix_power(A: Float[Array, "r r"], p: float) -> Float[Array, "r r"]:
    values, V = jnp.linalg.eigh(A)
    return (V * jnp.maximum(values, 0) ** p) @ V.T


@_matrix_power.defjvp
def _matrix_power_jvp(p, primals, tangents):  # noqa: ANN001, ANN202
    """By divided differences of the eigenvalues (Daleckii and Krein 1965)."""
    (A,), (dA,) = primals, tangents
    values, V = jnp.linalg.eigh(A)
    # Powers below one have no derivative at zero: eigenvalues are held off by rounding.
    values = jnp.maximum(values, jnp.finfo(values.dtype).eps * jnp.maximum(values[-1], 1e-300))
    larger = jnp.maximum(values[:, None], values)
    ratio = jnp.minimum(values[:, None], values) / larger
    near = 1 - ratio < 1e-5
    apart = jnp.where(near, 0.5, ratio)
    slope = jnp.where(near, p * ratio ** ((p - 1) / 2), (1 - apart**p) / (1 - apart))
    divided = slope * larger ** (p - 1)
    return (V * values**p) @ V.T, V @ (divided * (V.T @ dA @ V)) @ V.T

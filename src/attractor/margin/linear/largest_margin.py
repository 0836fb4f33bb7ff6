"""Margin problems in l_1 and l_inf with more constraints than unknowns, one at a time.

With the constraints as rows F of n numbers and all bounds c > 0, ``min ||w||`` subject to
``F w >= c`` is the linear program

    max gamma   subject to   F u >= gamma c,   ||u|| <= 1,          w = u / gamma,

whose dual is ``min ||F^T lambda||_dual`` subject to ``c^T lambda = 1``, ``lambda >= 0``. Both have
interior points at hand, ``u = 0`` with ``gamma = -1`` and equal multipliers, so that no solution
in another norm is needed to start from. Mehrotra's predictor-corrector method (1992, *On the
implementation of a primal-dual interior point method*) is run on it with the steps of u and gamma
as the unknowns of its systems,

    [F, -c]^T diag(lambda / s) [F, -c] + what the norm adds,

of order n + 1, whatever the number of constraints. In l_inf the norm adds the barriers of
``-1 <= u <= 1``; in l_1, with ``u = v_1 - v_2`` and ``sum(v_1 + v_2) = 1``, a diagonal and a
matrix of rank one. If ``gamma`` does not become positive there is no answer.
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import numpy as np
import scipy.linalg
from jaxtyping import Float

from attractor.geometry import Lp
from attractor.margin.linear.methods import rows_of
from attractor.margin.methods import Candidates, Task

_MOST_STEPS = 60
_REACH = 0.995
"""Share of the way to the boundary."""
_LEAST_SHARE = 1e-8
"""Of the complementarity, that a corrector aims at."""
_PATIENCE = 5
"""Steps without a smaller gap after which rounding has the last word."""
_GUARD = 1e-14
"""Added to the diagonal, relative to it."""


def solve_by_largest_margin(task: Task) -> Candidates:
    """Candidates where every constraint is an inequality with ``c > 0``; none elsewhere.

    Args:
        task: A batch of one instance, its geometry ``Lp(1)`` or ``Lp(inf)``. Its W is not used.
    """
    assert isinstance(task.geometry, Lp)
    scaled = task.scaled
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    if not (scaled.positive[0] & (scaled.norms[0] > 0)).all():
        return W, x
    rows, c = rows_of(scaled)[0], scaled.bounds[0]
    kind = _Box if np.isinf(task.geometry.p) else _CrossPolytope
    with np.errstate(all="ignore"):  # what breaks down ends the steps
        found = _iterate(rows, c, kind, task.tolerance / 4)
    if found is not None:
        W[0], x[0] = found[0].reshape(W.shape[1:]), found[1]
    return W, x


class _Ball(abc.ABC):
    """The unit ball as two sets of distances d with multipliers z, of entries from either side.

    ``F^T lambda`` is to be ``y``, which the multipliers determine. A Newton step has
    ``dy = stiffness du - pull + lean dt``, where t is a further unknown, or is left out.

    Attributes:
        d: ``(2, n)``.
        z: ``(2, n)``.
    """

    d: Float[np.ndarray, "2 n"]
    z: Float[np.ndarray, "2 n"]

    @property
    @abc.abstractmethod
    def u(self) -> Float[np.ndarray, "n"]:
        """The point of the ball."""

    @property
    @abc.abstractmethod
    def y(self) -> Float[np.ndarray, "n"]:
        """The target of ``F^T lambda``."""

    @abc.abstractmethod
    def value(self, u: Float[np.ndarray, "n"]) -> float:
        """The norm."""

    @abc.abstractmethod
    def dual_value(self, y: Float[np.ndarray, "n"]) -> float:
        """The dual norm."""

    @abc.abstractmethod
    def linearize(self, center: Float[np.ndarray, "2 n"]) -> None:
        """Prepares a step after which products of d and z have changed by ``center``."""

    @abc.abstractmethod
    def matrix(self) -> Float[np.ndarray, "n n"]:
        """``dy / du`` with t eliminated."""

    @abc.abstractmethod
    def right(self) -> Float[np.ndarray, "n"]:
        """``-dy`` where du is zero."""

    @abc.abstractmethod
    def steps(self, du: Float[np.ndarray, "n"]) -> tuple[np.ndarray, np.ndarray]:
        """Steps of d and z."""


class _Box(_Ball):
    """The ball of l_inf: ``d = 1 - u, 1 + u`` and ``y = z_1 - z_2``."""

    def __init__(self, y: Float[np.ndarray, "n"]) -> None:
        """The center, and multipliers for a y."""
        self.d = np.ones((2, y.size))
        self.z = np.array([np.maximum(y, 0.0), np.maximum(-y, 0.0)]) + 0.1 * np.abs(y).mean()

    @property
    def u(self) -> Float[np.ndarray, "n"]:
        """Half the difference of the distances."""
        return (self.d[1] - self.d[0]) / 2

    @property
    def y(self) -> Float[np.ndarray, "n"]:
        """The difference of the multipliers."""
        return self.z[0] - self.z[1]

    def value(self, u: Float[np.ndarray, "n"]) -> float:
        """The largest entry."""
        return float(np.abs(u).max())

    def dual_value(self, y: Float[np.ndarray, "n"]) -> float:
        """The sum of the entries."""
        return float(np.abs(y).sum())

    def linearize(self, center: Float[np.ndarray, "2 n"]) -> None:
        """``dz = (center - z dd) / d`` with ``dd = -du, du``."""
        self._center = center

    def matrix(self) -> Float[np.ndarray, "n n"]:
        """A diagonal."""
        return np.diag((self.z / self.d).sum(0))

    def right(self) -> Float[np.ndarray, "n"]:
        """From the centers alone."""
        pull = self._center / self.d
        return pull[1] - pull[0]

    def steps(self, du: Float[np.ndarray, "n"]) -> tuple[np.ndarray, np.ndarray]:
        """Steps of d and z."""
        dd = np.array([-du, du])
        return dd, (self._center - self.z * dd) / self.d


class _CrossPolytope(_Ball):
    """The ball of l_1: ``u = d_1 - d_2`` with ``sum(d) = 1``, and ``z = t - y, t + y``."""

    def __init__(self, y: Float[np.ndarray, "n"]) -> None:
        """The center, and multipliers for a y."""
        self.d = np.full((2, y.size), 0.5 / y.size)
        self.z = 1.1 * np.abs(y).max() + np.array([-y, y])

    @property
    def u(self) -> Float[np.ndarray, "n"]:
        """The difference of the distances."""
        return self.d[0] - self.d[1]

    @property
    def y(self) -> Float[np.ndarray, "n"]:
        """Half the difference of the multipliers."""
        return (self.z[1] - self.z[0]) / 2

    def value(self, u: Float[np.ndarray, "n"]) -> float:
        """The sum of the entries."""
        return float(np.abs(u).sum())

    def dual_value(self, y: Float[np.ndarray, "n"]) -> float:
        """The largest entry."""
        return float(np.abs(y).max())

    def linearize(self, center: Float[np.ndarray, "2 n"]) -> None:
        """``dd = (center - d dz) / z`` with ``dz = dt - dy, dt + dy``, and ``sum(d + dd) = 1``.

        With E and F the sum and the difference of ``d / z``, and g of ``center / z``, the first
        two give ``du = g - F dt + E dy``, the last ``sum(dd) = sum(center / z - E dt + F dy)``.
        """
        self._center = center
        ratio, pull = self.d / self.z, center / self.z
        self._sum, difference, self._pull = ratio.sum(0), ratio[0] - ratio[1], pull[0] - pull[1]
        self._lean = difference / self._sum
        self._depth = (self._sum - difference * self._lean).sum()
        self._rest = 1 - self.d.sum() - pull.sum() + self._lean @ self._pull

    def matrix(self) -> Float[np.ndarray, "n n"]:
        """A diagonal, and ``f f^T`` from ``dt``."""
        return np.diag(1 / self._sum) + np.outer(self._lean, self._lean / self._depth)

    def right(self) -> Float[np.ndarray, "n"]:
        """From the centers, and from ``dt``."""
        return self._pull / self._sum + self._lean * (self._rest / self._depth)

    def steps(self, du: Float[np.ndarray, "n"]) -> tuple[np.ndarray, np.ndarray]:
        """Steps of d and z."""
        dt = (self._lean @ du - self._rest) / self._depth
        dy = (du - self._pull) / self._sum + self._lean * dt
        dz = np.array([dt - dy, dt + dy])
        return (self._center - self.d * dz) / self.z, dz


def _iterate(
    rows: Float[np.ndarray, "m n"],
    c: Float[np.ndarray, "m"],
    kind: Callable[[np.ndarray], _Ball],
    tolerance: float,
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "m"]] | None:
    """W and multipliers of the least gap; None where no gamma is positive."""
    x, s, gamma = np.full(c.size, 1 / c.sum()), c.copy(), -1.0
    combined = rows.T @ x
    ball = kind(combined)
    best, found, patience = np.inf, None, _PATIENCE
    for _ in range(_MOST_STEPS):
        mu = (s @ x + (ball.d * ball.z).sum()) / (s.size + ball.d.size)
        # Steps of s and lambda eliminated: a system in those of u and gamma.
        theta = x / s
        matrix = np.empty((ball.d.shape[1] + 1,) * 2)
        half = rows * np.sqrt(theta)[:, None]
        matrix[:-1, :-1] = half.T @ half
        matrix[-1, :-1] = matrix[:-1, -1] = -(rows.T @ (theta * c))
        matrix[-1, -1] = c @ (theta * c)
        center, ball_center, factor = -s * x, -ball.d * ball.z, None
        for corrector in (False, True):
            ball.linearize(ball_center)
            if factor is None:  # one factor serves predictor and corrector
                matrix[:-1, :-1] += ball.matrix()
                diagonal = np.einsum("ii->i", matrix)
                diagonal *= 1 + _GUARD
                try:
                    factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
                except np.linalg.LinAlgError:
                    return found
            scaled = center / s
            right = rows.T @ scaled + (combined - ball.y) + ball.right()
            right = np.append(right, 1 - c @ (x + scaled))
            step = scipy.linalg.cho_solve(factor, right, check_finite=False)
            ds = rows @ step[:-1] - step[-1] * c
            dx = scaled - theta * ds
            dd, dz = ball.steps(step[:-1])
            primal = _longest((s, ds), (ball.d, dd))
            dual = _longest((x, dx), (ball.z, dz))
            if not corrector:
                left = (s + primal * ds) @ (x + dual * dx)
                left += ((ball.d + primal * dd) * (ball.z + dual * dz)).sum()
                aim = max((left / (s.size + ball.d.size) / mu) ** 3, _LEAST_SHARE) * mu
                center = aim - s * x - ds * dx
                ball_center = aim - ball.d * ball.z - dd * dz
        primal, dual = _REACH * primal, _REACH * dual
        s, gamma, x = s + primal * ds, gamma + primal * step[-1], x + dual * dx
        ball.d, ball.z = ball.d + primal * dd, ball.z + dual * dz
        combined = rows.T @ x
        u, size = ball.u, ball.dual_value(combined)
        least = gamma + float((s / c).min())
        if not np.isfinite(size) or not np.isfinite(least):
            return found
        gap = 1 - (c @ x) / size * least / ball.value(u) if least > 0 else np.inf
        patience = _PATIENCE if gap < best or least <= 0 else patience - 1
        if gap < best:
            best, found = gap, (u / least, x / size)
        if best <= tolerance or not patience:
            break
    return found


def _longest(*pairs: tuple[np.ndarray, np.ndarray]) -> float:
    """The longest step, up to one, that keeps all positive."""
    return float(1 / max(1.0, *((-change / value).max() for value, change in pairs)))

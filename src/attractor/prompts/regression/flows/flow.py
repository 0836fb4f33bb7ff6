"""Gradient flow on a risk known in closed form, to nearly the precision of the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.integrate
import scipy.optimize
from jaxtyping import Array, ArrayLike, Float, PyTree

from attractor.support.checks import check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64, double_precision

_SMALLEST_PARAMETER = 1e-3  # below it errors are absolute
_NEARLY_CONVERGED = 1e-10  # of the parameters, left to go
_MOVES = 1e4 * _NEARLY_CONVERGED  # in a step, far from it, whatever the error of a step
_FLAT = 1e-8


class CompiledRisk(NamedTuple):
    """A risk of flattened parameters with its derivatives, compiled.

    Attributes:
        unravel: From flat parameters, at one point or several, to arrays.
        value: The risk at a point.
        gradient: Its gradient at a point.
        hessian: Its second derivatives at a point.
    """

    unravel: Callable[[Any], PyTree]
    value: Callable[..., Float[Any, ""]]
    gradient: Callable[..., Float[Any, "parameter"]]
    hessian: Callable[..., Float[Any, "parameter parameter"]]

    @classmethod
    def of(cls, risk: Callable[[PyTree, Any], Float[Array, ""]], example: PyTree) -> CompiledRisk:
        """Compiles a risk of parameters shaped like an example and of data given later."""
        leaves, structure = jax.tree.flatten(example)
        shapes = [np.shape(leaf) for leaf in leaves]
        ends = np.cumsum([math.prod(shape) for shape in shapes])

        def unravel(points: Float[Any, "*batch parameter"]) -> PyTree:
            parts = [
                points[..., end - math.prod(shape) : end].reshape(points.shape[:-1] + shape)
                for end, shape in zip(ends, shapes, strict=True)
            ]
            return jax.tree.unflatten(structure, parts)

        def flat_risk(point: Float[Array, "parameter"], data: PyTree) -> Float[Array, ""]:
            return risk(unravel(point), data)

        return cls(
            unravel,
            jax.jit(flat_risk),
            jax.jit(jax.grad(flat_risk)),
            jax.jit(jax.hessian(flat_risk)),
        )

    def on(self, data: PyTree) -> CompiledRisk:
        """The same risk on these data; nothing is compiled again."""
        with double_precision():
            data = jax.device_put(data)
        return self._replace(
            value=lambda point: self.value(point, data),
            gradient=lambda point: self.gradient(point, data),
            hessian=lambda point: self.hessian(point, data),
        )


@dataclass(frozen=True, eq=False)
class RiskFlow:
    """Gradient flow on a risk.

    Attributes:
        times: When it was recorded.
        parameters: The parameters, each array with an axis of times in front.
        risk: ``E (prediction - w^T x_q)^2 / 2``.
    """

    times: Float[np.ndarray, "time"]
    parameters: PyTree
    risk: Float[np.ndarray, "time"]
    _compiled: CompiledRisk = field(repr=False)
    _path: Callable[[float], np.ndarray] = field(repr=False)

    def time_to_risk(self, level: float) -> float:
        """When the risk first falls to a level.

        Args:
            level: Positive.

        Returns:
            The time, or infinity if it does not by the last time recorded.

        Raises:
            InvalidInputError: If the level is not positive.
        """
        level = check_number("level", level, above=0.0, example=0.1)

        def excess(time: float) -> float:
            with double_precision():
                risk = float(self._compiled.value(self._path(time)))
            return math.log(max(risk, np.finfo(np.float64).tiny) / level)

        end = float(self.times[-1])
        if excess(0.0) <= 0:
            return 0.0
        if excess(end) > 0:
            return math.inf
        return scipy.optimize.root_scalar(excess, bracket=(0.0, end)).root  # the risk only falls


def follow_risk(
    compiled: CompiledRisk, initial: PyTree, times: Float[ArrayLike, "time"], tolerance: float
) -> RiskFlow:
    """Follows ``theta' = -grad R(theta)`` with a method of variable order, stiff or not.

    Args:
        compiled: The risk.
        initial: Parameters at time 0.
        times: When to record: increasing, from 0 on.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If times do not increase, or the solver gives up.
    """
    clock = as_float64("times", times, largest=LARGEST)
    if clock.ndim != 1 or not clock.size or clock[0] < 0 or (np.diff(clock) <= 0).any():
        raise InvalidInputError(
            "times", "they are not increasing from 0 on", "Give a list of increasing times >= 0"
        )
    if not 1e-14 <= tolerance <= 1e-2:
        raise InvalidInputError("tolerance", f"it is {tolerance!r}", "Give one in [1e-14, 1e-2]")
    leaves = [np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(initial)]
    start = np.concatenate(leaves)
    with double_precision():
        path = _solve(compiled, start, float(clock[-1]), tolerance)
        points = np.stack([path(time) for time in clock])
        risk = np.array([float(compiled.value(point)) for point in points])
    return RiskFlow(clock, compiled.unravel(points), risk, compiled, path)


def _solve(
    compiled: CompiledRisk, start: Float[np.ndarray, "parameter"], end: float, tolerance: float
) -> Callable[[float], np.ndarray]:
    """The flow as a function of time, until the end or until it has converged."""
    if end == 0:
        return lambda time: start
    solver = scipy.integrate.LSODA(
        lambda _, point: -np.asarray(compiled.gradient(point)),
        0.0,
        start,
        end,
        jac=lambda _, point: -np.asarray(compiled.hessian(point)),
        rtol=tolerance,
        atol=tolerance * _SMALLEST_PARAMETER,
    )
    steps, pieces = [0.0], []
    last = _limit(compiled, start)
    while solver.status == "running" and last is None:
        solver.step()
        stuck = solver.t - steps[-1] <= 4 * np.spacing(solver.t)
        if solver.status == "failed" or stuck or not np.isfinite(solver.y).all():
            raise InvalidInputError(
                "initial",
                f"the flow from it cannot be followed beyond time {steps[-1]:.6g}",
                "Give a smaller start or earlier times",
            )
        steps.append(solver.t)
        pieces.append(solver.dense_output())
        if not _moves(pieces[-1]):
            last = _limit(compiled, solver.y)
    last = solver.y.copy() if last is None else last

    def path(time: float) -> np.ndarray:
        if time >= steps[-1]:  # converged by then, if later
            return last
        return start if time == 0 else pieces[np.searchsorted(steps, time) - 1](time)

    return path


def _moves(piece: scipy.integrate.DenseOutput) -> bool:
    """Whether a flow is far from convergence at the end of a step, by the step's polynomial alone.

    That spares the derivatives there. A step is as long as the problem's own times.
    """
    end = piece(piece.t)
    return float(np.linalg.norm(end - piece(piece.t_old))) > _MOVES * float(np.linalg.norm(end))


def _limit(
    compiled: CompiledRisk, point: Float[np.ndarray, "parameter"]
) -> Float[np.ndarray, "parameter"] | None:
    """The limit of the flow if hardly anything is left to go, else None.

    What is left is the way of a linear flow: along curved directions to where the gradient
    vanishes, along flat ones nothing. Curvatures may differ by the cube of a covariance's
    condition, so that each parameter is measured in units in which its own curvature is one.
    """
    gradient, hessian = np.asarray(compiled.gradient(point)), np.asarray(compiled.hessian(point))
    own = np.abs(np.diag(hessian))
    unit = 1 / np.sqrt(np.where(own > 0, own, own.max(initial=0.0) or 1.0))
    curvatures, directions = np.linalg.eigh(unit[:, None] * hessian * unit)
    curved = curvatures > _FLAT * np.abs(curvatures).max()
    if curvatures[0] < -_FLAT * np.abs(curvatures).max():
        return None
    along = directions[:, curved]
    left = unit * (along @ ((along.T @ (unit * gradient)) / curvatures[curved]))
    flat = np.linalg.qr(unit[:, None] * directions[:, ~curved])[0]
    left -= flat @ (flat.T @ left)
    settled = np.linalg.norm(left) <= _NEARLY_CONVERGED * np.linalg.norm(point)
    return point - left if settled else None

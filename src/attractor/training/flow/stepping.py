"""Steps of diffrax's solvers, as long as the error allows, up to where a goal is met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optimistix
from jaxtyping import Array, Bool, Float, Int, PyTree

from attractor.geometry.jax_decompositions import one_at_a_time
from attractor.support.errors import TrialStatus
from attractor.training.flow.motion import Motion

_FIRST_STEP = 0.01
_LONGEST_IMPLICIT_STEP = 0.5  # stiffness grows by exp(step) within one, and the Jacobian is older
_SMALLEST_STEP = 1e-200
_LOCATING_ROUNDS = 8
_STEPS_AT_LEAST, _STEPS_PER_LENGTH = 1000, 5

Goal = Callable[[Float[Array, "parameter+1"]], Float[Array, ""]]
_factorize = one_at_a_time(lambda matrix: jax.scipy.linalg.lu_factor(matrix))
_solve = one_at_a_time(lambda *system: jax.scipy.linalg.lu_solve(system[:2], system[2]))

_Factors = tuple[Float[Array, "k k"], Int[Array, "k"]]


class Position(NamedTuple):
    """The state of the solver in one trial.

    Attributes:
        point: Parameters and time.
        log_unit_time: Logarithm of the unit of time.
        step: Length of the next step.
        controller: The state of diffrax's PID controller.
        accepted: Number of steps taken.
        tried: Number of steps tried.
        traveled: Sum of the lengths of the steps taken.
    """

    point: Float[Any, "parameter+1"]
    log_unit_time: Float[Any, ""]
    step: Float[Any, ""]
    controller: PyTree
    accepted: Int[Any, ""]
    tried: Int[Any, ""]
    traveled: Float[Any, ""]


class _Chord(diffrax.VeryChord):
    """The chord method; an update far below the tolerance ends it, whatever the one before was."""

    def terminate(
        self,
        fn: Callable,
        y: PyTree,
        args: PyTree,
        options: dict[str, Any],
        state: Any,
        tags: frozenset[object],
    ) -> tuple[Array, Any]:
        rate = state.diffsize / state.diffsize_prev
        factor = state.diffsize * rate / (1 - rate)
        later = state.step >= 2
        small = (state.diffsize < self.kappa) | ((factor > 0) & (factor < self.kappa))
        diverged = later & ~small & ~(rate <= 2)
        failed = state.result != optimistix.RESULTS.successful
        outcome = optimistix.RESULTS.where(
            diverged, optimistix.RESULTS.nonlinear_divergence, optimistix.RESULTS.successful
        )
        result = optimistix.RESULTS.where(failed, state.result, outcome)
        return failed | diverged | (later & small), result


class Limits(NamedTuple):
    """Tolerance and number of steps.

    Attributes:
        tolerance: Error of a step, relative to parameters above their natural size.
        most_steps: Number of steps tried before a trial is given up.
        patient: Whether to use all of them on a trial that stiffness slows down.
    """

    tolerance: Float[Any, ""]
    most_steps: Int[Any, ""]
    patient: Bool[Any, ""]


@dataclass(frozen=True)
class Stepper:
    """An explicit or an implicit method, with its step-size control.

    Attributes:
        implicit: Whether by the implicit method of Kvaerno of order five, which stiffness does not
            slow down, or by the explicit method of Dormand and Prince of order eight.
        limits: Tolerance and number of steps.
    """

    implicit: bool
    limits: Limits

    def begin(self, motion: Motion, position: Position) -> Position:
        """The position with a unit of time: what the flow takes to move by a natural length."""
        _, log_length = motion.slope(position.point)
        unit = jnp.where(jnp.isfinite(log_length), -log_length, 0.0)
        known = position.log_unit_time
        return position._replace(log_unit_time=jnp.where(jnp.isnan(known), unit, known))

    def advance(self, motion: Motion, position: Position, goal: Goal) -> tuple[Position, Array]:
        """Follows the flow to where a function of the point rises to zero.

        Args:
            motion: The flow.
            position: Where it is.
            goal: Negative before the goal.

        Returns:
            The new position, and a ``TrialStatus``: ``TRAINED`` where the goal was met.
        """
        met, order = self.met, 5 if self.implicit else 8

        def unfinished(carry: tuple[Position, Array, Array, Array]) -> Array:
            _, _, status, value = carry
            return (status == TrialStatus.TRAINED) & (value < -met)

        def attempt(
            carry: tuple[Position, Array, Array, Array],
        ) -> tuple[Position, Array, Array, Array]:
            now, length, _, value = carry
            slope = motion.slope(now.point)
            status = self._status(motion, now, slope)
            new, error, between = self._step(motion, now, length, slope[1])
            keep, _, longer, _, controller, _ = self._controller.adapt_step_size(
                jnp.zeros(()), length, now.point, new, None, error, order, now.controller
            )
            # A step that passes the goal is repeated, cut to about where it meets it.
            reached = goal(new)
            beyond = keep & (reached > met)
            share = _root(lambda share: goal(between(share * length)), value, reached)
            taken = keep & ~beyond & (status == TrialStatus.TRAINED)
            # That a step was cut short to meet a goal is no reason for short ones after it.
            proposed = jnp.where(taken & (length < now.step), jnp.maximum(longer, now.step), longer)
            step = jnp.where(beyond, now.step, self._bounded(proposed))
            after = Position(
                point=jnp.where(taken, new, now.point),
                log_unit_time=now.log_unit_time,
                step=step,
                controller=jax.tree.map(
                    lambda a, b: jnp.where(beyond, a, b), now.controller, controller
                ),
                accepted=now.accepted + taken,
                tried=now.tried + (status == TrialStatus.TRAINED),
                traveled=now.traveled + jnp.where(taken, length, 0.0),
            )
            length = jnp.where(beyond, length * share, step)
            return after, length, status, jnp.where(taken, reached, value)

        start = (position, position.step, jnp.int32(TrialStatus.TRAINED), goal(position.point))
        position, _, status, _ = jax.lax.while_loop(unfinished, attempt, start)
        return position, status

    def _step(
        self, motion: Motion, now: Position, length: Float[Array, ""], log_speed: Float[Array, ""]
    ) -> tuple[Array, Array, Callable[[Array], Array]]:
        """The point after a step, an estimate of its error, and the interpolation between."""
        terms = diffrax.ODETerm(motion.along_time if self.implicit else motion.along_path)
        solver, zero = self._solver, jnp.zeros(())
        args: Any = now.log_unit_time
        if self.implicit:
            log_ratio = log_speed + now.log_unit_time + now.point[-1]
            args = (args, -jnp.logaddexp(0.0, 2 * log_ratio) / 2)
        memory = solver.init(terms, zero, length, now.point, args)
        outcome: Any = solver.step(terms, zero, length, now.point, args, memory, False)
        new, error, dense, _, result = outcome
        failed = jnp.isnan(error) | (result != diffrax.RESULTS.successful)
        path: Any = solver.interpolation_cls(t0=zero, t1=length, **dense)
        return new, jnp.where(failed, jnp.inf, error), path.evaluate

    def _status(
        self, motion: Motion, position: Position, slope: tuple[Array, Array]
    ) -> Int[Array, ""]:
        """``TRAINED`` where the flow can go on from here, else the reason why not."""
        _, log_speed = slope
        usual = _STEPS_AT_LEAST + _STEPS_PER_LENGTH * position.traveled
        allowed = jnp.where(self.limits.patient, jnp.inf, usual)
        allowed = jnp.minimum(allowed, self.limits.most_steps)
        tests = [
            (jnp.isneginf(log_speed), TrialStatus.STATIONARY),
            (~(log_speed < jnp.inf) | (position.step < _SMALLEST_STEP), TrialStatus.DIVERGED),
            (position.tried >= allowed, TrialStatus.OUT_OF_STEPS),
        ]
        if self.implicit:
            tests.insert(2, (motion.unresolved(position.point, slope), TrialStatus.BELOW_ROUNDING))
        conditions, outcomes = zip(*tests, strict=True)
        return jnp.select(list(conditions), [jnp.int32(one) for one in outcomes], jnp.int32(0))

    @property
    def met(self) -> Float[Array, ""]:
        """Distance within which a goal counts as met."""
        return jnp.maximum(self.limits.tolerance / 100, 1e-11)

    @property
    def _solver(self) -> diffrax.AbstractSolver:
        if not self.implicit:
            return diffrax.Dopri8(scan_kind="lax")  # nothing differentiates through the flow
        tolerance: Any = self.limits.tolerance
        chord = _Chord(rtol=tolerance, atol=tolerance, linear_solver=OneAtATimeLU())
        return diffrax.Kvaerno5(root_finder=chord)

    @property
    def _controller(self) -> diffrax.PIDController:
        tolerance = self.limits.tolerance
        return diffrax.PIDController(rtol=tolerance, atol=tolerance, norm=optimistix.max_norm)

    def _bounded(self, length: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.minimum(length, _LONGEST_IMPLICIT_STEP) if self.implicit else length


def starting_positions(points: Float[np.ndarray, "trial parameter"]) -> Position:
    """Positions at time zero, whose unit of time is not known yet."""
    trials = len(points)
    none, step = np.zeros(trials, np.int64), np.full(trials, _FIRST_STEP)
    return Position(
        point=np.concatenate([points, np.zeros((trials, 1))], axis=1),
        log_unit_time=np.full(trials, np.nan),
        step=step,
        controller=(np.ones(trials), np.ones(trials), np.zeros(trials, bool)),
        accepted=none,
        tried=none,
        traveled=np.zeros(trials),
    )


def _root(
    function: Callable[[Array], Array], low: Float[Array, ""], high: Float[Array, ""]
) -> Float[Array, ""]:
    """An approximate root of a function on [0, 1] with known values at both ends.

    Regula falsi in the form of Illinois: the value at an end that stays is halved.
    """

    def shrink(_: Any, bracket: tuple[Array, ...]) -> tuple[Array, ...]:
        left, right, low, high = bracket
        middle = jnp.clip((left * high - right * low) / (high - low), left, right)
        value = function(middle)
        under = value < 0
        return (
            jnp.where(under, middle, left),
            jnp.where(under, right, middle),
            jnp.where(under, value, low / 2),
            jnp.where(under, high / 2, value),
        )

    ends = (jnp.zeros(()), jnp.ones(()), low, high)
    left, right, _, _ = jax.lax.fori_loop(0, _LOCATING_ROUNDS, shrink, ends)
    middle = jnp.where(jnp.abs(function(left)) < jnp.abs(function(right)), left, right)
    return jnp.clip(middle, 1e-6, 1 - 1e-3)


class OneAtATimeLU(lineax.AbstractLinearSolver[_Factors]):
    """Lineax's LU, with no batched call of LAPACK that another program could wait for.

    Systems are square, and vectors are arrays.
    """

    def init(self, operator: lineax.AbstractLinearOperator, options: dict[str, Any]) -> _Factors:
        """Factorizes the matrix."""
        return _factorize(operator.as_matrix())

    def compute(
        self, state: _Factors, vector: Float[Array, "k"] | Any, options: dict[str, Any]
    ) -> tuple[Float[Array, "k"], lineax.RESULTS, dict[str, Any]]:
        """Solves for one right-hand side."""
        return _solve(*state, vector), lineax.RESULTS.successful, {}

    def transpose(
        self, state: _Factors, options: dict[str, Any]
    ) -> tuple[_Factors, dict[str, Any]]:
        """Not needed: nothing differentiates through the flow.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("the flow is not differentiated")

    def conj(self, state: _Factors, options: dict[str, Any]) -> tuple[_Factors, dict[str, Any]]:
        """The matrices are real."""
        return state, options

    def assume_full_rank(self) -> bool:
        """As any LU does."""
        return True

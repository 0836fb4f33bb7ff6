"""Gradient flow followed: its objective, and its steps."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from attractor.attention import AttentionMatrix, KeyQuery, Parameterization, PromptVector
from attractor.attention.parameterization import Parameters, attention_layer
from attractor.geometry import Frobenius
from attractor.support.errors import TrialStatus
from attractor.training import loop
from attractor.training.attention_training import AttentionData, AttentionState, AttentionTraining
from attractor.training.flow.motion import Motion, natural_units
from attractor.training.flow.records import FlowRecords
from attractor.training.flow.stepping import Limits, Position, Stepper, starting_positions
from attractor.training.measurements import Records
from attractor.training.objective import Objective
from attractor.training.programs.trials import Trials

_TARGETS = 64  # targets are padded to a multiple, so that few programs are compiled
_LARGEST_MATRIX = 2500
_SMALL_MATRIX = 256
_ROWS_AT_ONCE = 4096


class FlowState(NamedTuple):
    """The state of a trial.

    Attributes:
        attention: Parameters, number of records passed, and time, as training keeps them.
        position: The state of the solver.
    """

    attention: AttentionState
    position: Position


class FlowData(NamedTuple):
    """The constants of a trial.

    Attributes:
        attention: The data set and the head.
        beginning: Attention parameters at time zero.
        unit: Natural length of every parameter.
        fixed: Orthonormal directions that no gradient has a component in.
        targets: Logarithms of times, or norms, at which the flow is recorded.
        by_norm: Whether they are norms.
        norm: The norm to stop at, infinite for none.
        limits: Tolerance and number of steps.
    """

    attention: AttentionData
    beginning: PyTree
    unit: Float[Any, "parameter"]
    fixed: Float[Any, "entry direction"]
    targets: Float[Any, "records"]
    by_norm: Bool[Any, ""]
    norm: Float[Any, ""]
    limits: Limits


@dataclass(frozen=True)
class GradientFlow(Objective):
    """``dW/dt = -grad L(W)`` between records.

    Attributes:
        training: What is trained.
        implicit: Whether steps are implicit.
        by_norm: Whether a norm may end the flow or a record; else none is computed on the way,
            which for factors takes singular values.
    """

    copies: ClassVar[int] = 8  # stages of a step

    training: AttentionTraining
    implicit: bool
    by_norm: bool

    def step(self, state: FlowState, data: FlowData) -> tuple[FlowState, Array]:
        """Follows the flow to the next record, or to where it stops."""
        motion = Motion(self.training, data.attention, data.unit, state.attention.parameters)
        stepper = Stepper(self.implicit, data.limits)
        position = stepper.begin(motion, state.position)
        target, log_unit_time = data.targets[state.attention.step], position.log_unit_time
        log_target = jnp.where(data.by_norm, jnp.inf, target)
        norm = jnp.where(data.by_norm, target, data.norm)

        def late(point: Float[Array, "parameter+1"]) -> Array:
            return point[-1] - jax.nn.softplus(log_target - log_unit_time)

        def late_or_large(point: Float[Array, "parameter+1"]) -> Array:
            ratio = self._norm(motion.parameters(point)) / norm
            return jnp.maximum(late(point), jnp.where(jnp.isinf(norm), -jnp.inf, ratio - 1))

        goal = late_or_large if self.by_norm else late
        position, status = stepper.advance(motion, position, goal)
        early = (late(position.point) < -stepper.met) & ~data.by_norm
        stopped = (status == TrialStatus.TRAINED) & early
        attention = state.attention._replace(
            parameters=motion.parameters(position.point),
            step=state.attention.step + 1,
            log_time=log_unit_time + _log_expm1(position.point[-1]),
        )
        return FlowState(attention, position), jnp.where(stopped, TrialStatus.STOPPED, status)

    def record(self, state: FlowState, data: FlowData) -> dict[str, Array]:
        """The records of training, and the drift of conserved quantities."""
        attention = state.attention.parameters.attention
        layer = self.training.parameterization
        return {
            **self.training.record(state.attention, data.attention),
            "conserved_drift": conserved_drift(layer, data.beginning, attention, data.fixed),
            "steps_accepted": state.position.accepted,
            "steps_tried": state.position.tried,
        }

    def _norm(self, parameters: Parameters) -> Array:
        layer = self.training.parameterization
        geometry = layer.effective_geometry(Frobenius()) or Frobenius()
        return geometry.norm(layer.effective_matrix(parameters.attention))


class FlowTrials:
    """The initial state and the data of any trials of a flow."""

    def __init__(self, trials: Trials, records: FlowRecords, limits: Limits) -> None:
        """Finds the conserved directions, once for every instance."""
        self.trials, self.records, self.limits = trials, records, limits
        self.layer, rows = trials.training.parameterization, trials.rows
        arrays = (np.asarray(one) for one in (rows.keys, rows.queries, rows.mask))
        self.fixed = fixed_directions(self.layer, *arrays)

    def __call__(self, trials: Int[np.ndarray, "block"]) -> tuple[FlowState, FlowData]:
        """State and data, with a leading axis of trials on every leaf."""
        state, data = self.trials(trials)
        parameters, count = state.parameters, len(trials)
        each = [jax.tree.map(operator.itemgetter(i), (parameters, data.rows)) for i in range(count)]
        units = np.stack([natural_units(self.layer, *one) for one in each])
        leaves = [np.reshape(leaf, (count, -1)) for leaf in jax.tree.leaves(parameters)]
        points = np.concatenate(leaves, axis=1) / units
        padding = -len(self.records.targets) % _TARGETS
        targets = np.pad(self.records.targets, (0, padding), mode="edge")
        shared = (targets, self.records.axis == "radius", self.records.norm)
        targets, by_norm, norm, limits = jax.tree.map(
            lambda leaf: np.broadcast_to(leaf, (count, *np.shape(leaf))), (*shared, self.limits)
        )
        fixed = self.fixed[trials // self.trials.seeds % len(self.trials.numbers)]
        return FlowState(state, starting_positions(points)), FlowData(
            data, parameters.attention, units, fixed, targets, by_norm, norm, limits
        )


def _log_expm1(value: Float[Array, ""]) -> Float[Array, ""]:
    return value + jnp.log(-jnp.expm1(-value))


def conserved_drift(
    parameterization: Parameterization,
    beginning: PyTree,
    parameters: PyTree,
    fixed: Float[Array, "entry direction"],
) -> Float[Array, ""]:
    """Change of the conserved quantity, relative to the size of the parameters.

    For factors, ``K^T K - Q^T Q`` is constant: with ``G`` the gradient in ``W = K Q^T``, both terms
    change at the rate ``-(K^T G Q + Q^T G^T K)``. For ``W`` and ``p``, so is the component outside
    the span of the rank-one matrices ``(x_s - x_t) z^T`` of tokens of one row: the gradient
    lies in it. Training the head beside them changes neither.

    Args:
        parameterization: What the parameters mean.
        beginning: Attention parameters at time zero.
        parameters: Attention parameters now.
        fixed: Orthonormal directions outside the span, one a column; columns of zeros are none.

    Returns:
        The largest entry of the change, over ``||K||_F^2 + ||Q||_F^2`` or ``||W||_F``; NaN where
        nothing is known to be conserved.
    """
    if isinstance(attention_layer(parameterization), KeyQuery):
        change = _balance(parameters) - _balance(beginning)
        scale = jnp.maximum(_squares(parameters), _squares(beginning))
    else:
        change = fixed @ (fixed.T @ (parameters - beginning).ravel())
        scale = jnp.sqrt(jnp.maximum((parameters**2).sum(), (beginning**2).sum()))
        scale = jnp.where(jnp.any(fixed != 0), scale, jnp.nan)
    return jnp.abs(change).max() / jnp.where(scale == 0, 1, scale)


def fixed_directions(
    parameterization: Parameterization,
    keys: Float[np.ndarray, "instance sequence token d"],
    queries: Float[np.ndarray, "instance sequence query e"],
    mask: Bool[np.ndarray, "instance sequence query token"],
) -> Float[np.ndarray, "instance entry direction"]:
    """Orthonormal directions in which no gradient points, padded with zeros.

    Where they are small they are padded to one size for all data, which compiles one program.

    None are sought for factors, which conserve something else, for a parameterization of the
    user's own, and in matrices of more than 2,500 entries.
    """
    entries = keys.shape[-1] * queries.shape[-1]
    layer = attention_layer(parameterization)
    if not isinstance(layer, AttentionMatrix | PromptVector) or entries > _LARGEST_MATRIX:
        return np.zeros((len(keys), entries, 1))
    found = [_complement(*instance) for instance in zip(keys, queries, mask, strict=True)]
    most = max(1, *(one.shape[1] for one in found))
    filled = np.zeros((len(keys), entries, entries if entries <= _SMALL_MATRIX else most))
    for number, directions in enumerate(found):
        filled[number, :, : directions.shape[1]] = directions
    return filled


def _complement(
    keys: Float[np.ndarray, "sequence token d"],
    queries: Float[np.ndarray, "sequence query e"],
    mask: Bool[np.ndarray, "sequence query token"],
) -> Float[np.ndarray, "entry direction"]:
    """Orthonormal basis of what is orthogonal to every ``(x_s - x_t) z^T``."""
    first = mask.argmax(-1)
    row, query, token = np.nonzero(mask)
    other = first[row, query]
    row, query, token, other = (part[token != other] for part in (row, query, token, other))
    entries = keys.shape[-1] * queries.shape[-1]
    triangle = np.zeros((0, entries))
    for start in range(0, len(row), _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        differences = keys[row[some], token[some]] - keys[row[some], other[some]]
        products = differences[:, :, None] * queries[row[some], query[some]][:, None, :]
        stacked = np.concatenate([triangle, products.reshape(-1, entries)])
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
    if not triangle.any():
        return np.eye(entries)
    _, values, right = np.linalg.svd(triangle, full_matrices=True)
    rounding = max(len(row), entries) * np.finfo(np.float64).eps
    return right[(values > rounding * values[0]).sum() :].T


def _balance(factors: Any) -> Float[Array, "width width"]:
    return factors.K.T @ factors.K - factors.Q.T @ factors.Q


def _squares(factors: Any) -> Float[Array, ""]:
    return (factors.K**2).sum() + (factors.Q**2).sum()


def follow(
    training: AttentionTraining,
    trials: Trials,
    count: int,
    records: FlowRecords,
    *,
    solver: str,
    tolerance: float,
    max_steps: int,
    last_only: frozenset[str],
    advance: Callable[[float], None],
) -> Records:
    """Follows the flow of every trial.

    Args:
        training: What is trained.
        trials: Initial states and data.
        count: Number of trials.
        records: Where to record and to end.
        solver: ``"auto"``, ``"explicit"`` or ``"implicit"``.
        tolerance: Error of a step.
        max_steps: Number of steps tried in a trial.
        last_only: Names of measurements to keep at the last record only.
        advance: Called with the number of records just passed.

    Returns:
        The measurements, with the number of solver steps as ``steps_taken``.
    """

    def run(numbers: np.ndarray, implicit: bool, patient: bool) -> tuple[Records, np.ndarray]:
        limits = Limits(np.float64(tolerance), np.int64(max_steps), np.bool_(patient))
        flows = FlowTrials(trials, records, limits)
        measured = loop.run(
            GradientFlow(training, implicit, records.by_norm),
            lambda places: flows(numbers[places]),
            len(numbers),
            records.steps,
            instances=len(trials.numbers),
            last_only=last_only,
            advance=advance,
        )
        measured.steps_taken = measured.series.pop("steps_accepted")[:, -1]
        return measured, measured.series.pop("steps_tried")[:, -1]

    everyone = np.arange(count)
    if solver != "auto":
        return run(everyone, implicit=solver == "implicit", patient=True)[0]
    measured, tried = run(everyone, implicit=False, patient=False)
    stiff = everyone[(measured.status == TrialStatus.OUT_OF_STEPS) & (tried < max_steps)]
    if len(stiff):
        again, _ = run(stiff, implicit=True, patient=False)
        for name, values in again.series.items():
            measured.series[name][stiff] = values
        measured.status[stiff], measured.steps_taken[stiff] = again.status, again.steps_taken
    return measured

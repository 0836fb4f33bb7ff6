"""The record of training a linear decoder, its limits in theory, and the distance from them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, Real

from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.corpora.linear.supports import anchors, support_space
from attractor.geometry.vectors import cosines
from attractor.margin import MarginProblem, Solution
from attractor.results import (
    RecordedRun,
    Rows,
    StoredRun,
    axis_of,
    check_records,
    reading_run,
    save_run,
)
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64
from attractor.training.loop import Records
from attractor.training.stored.trajectory_check import TRIAL
from attractor.training.trajectory import trajectory_data

if TYPE_CHECKING:
    import xarray as xr


def decoder_problem(contexts: EmbeddedContexts) -> MarginProblem:
    """The margin problem of a decoder trained on soft labels (NTP-SVM).

        min ||W||  subject to  (e_z - e_z')^T W h_j = 0   for z, z' in S_j,
                               (e_z - e_v)^T W h_j >= 1   for z in S_j, v not in S_j.

    The likeliest token of a context represents its support: given the equalities one inequality
    for each token outside implies all others. With supports of one token it is the multiclass
    support vector machine. Constraints are numbered by ``sequence``, the context, and ``token``,
    the token compared with the likeliest.

    Args:
        contexts: The data sets.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), NTP-SVM.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    equal = _others(contexts, contexts.support)
    m, V = contexts.count, contexts.classes
    best, token = anchors(contexts)[..., None], _others(contexts, _numbers(contexts))
    unit = np.eye(V)
    lead = best.shape[:-2]
    slots = (*lead, m * (V - 1))

    def slot(array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, (*lead, m, V - 1)).reshape(slots)

    return MarginProblem(
        unit[slot(best)] - unit[slot(token)],
        np.repeat(contexts.embeddings, V - 1, axis=-2),
        slot(1.0 - equal),
        slot(equal),
        sequence=slot(np.arange(m)[:, None]),
        query=0,
        token=slot(token),
        matrix="decoder",
    )


def finite_part(contexts: EmbeddedContexts) -> Float[np.ndarray, "*instances V d"]:
    """``W*``, the only matrix of the subspace F of the supports that has all their log-odds.

        (e_z - e_z')^T W* h_j = log(p_jz / p_jz')   for z, z' in S_j,  and  P_F W* = W*.

    It is the solution of smallest Frobenius norm, from singular values of the equations, and zero
    where every support has one token. Where no matrix has all log-odds (``compatibility``) it is
    that of least squares.

    Args:
        contexts: The data sets.

    Raises:
        InvalidInputError: If the system of equations is too large; see ``support_space``.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), regularization path and gradient descent.
    """
    check_kinds(contexts=(contexts, EmbeddedContexts))
    return support_space(contexts).solution


def _numbers(contexts: EmbeddedContexts) -> Int[np.ndarray, "*instances m V"]:
    return np.broadcast_to(np.arange(contexts.classes), contexts.probabilities.shape)


def _others(contexts: EmbeddedContexts, array: np.ndarray) -> np.ndarray:
    """Entries of all tokens but the anchor of each context, ``(*instances, m, V - 1)``."""
    kept = _numbers(contexts) != anchors(contexts)[..., None]
    return array[kept].reshape(*array.shape[:-1], array.shape[-1] - 1)


_KIND = "linear trajectory"
CONTEXT_ARRAYS = ("embeddings", "probabilities", "frequencies", "instance_numbers")
_BY_RECORD = ("loss", "excess_loss", "log_excess_loss", "norm")

_DESCRIPTIONS = {
    "loss": "cross-entropy",
    "excess_loss": "cross-entropy less the entropy of the contexts",
    "log_excess_loss": "logarithm of the cross-entropy less the entropy of the contexts",
    "W": "decoder",
}


@dataclass(frozen=True, eq=False, repr=False)
class LinearTrajectory(RecordedRun):
    """The record of training a linear decoder, trial by trial.

    A trial is an (instance, seed) pair; both axes are always there, of length one if need be.

    Attributes:
        data: Labeled arrays over instance, seed, step, row and column: ``loss``; ``excess_loss``,
            which is ``CE - H`` computed without subtracting, and its logarithm
            ``log_excess_loss``, exact where the excess itself is too small for a number; ``norm``
            in the geometry descended; ``log_gradient_norm``; ``log_time``, the logarithm of the
            equivalent raw time, NaN where there is none; ``W``, with a step axis if all were
            kept; ``status`` and ``steps_taken``. Of a regularization path ``radius`` takes the
            place of step.
        contexts: The data trained on.
        optimizer_name: The optimizer.
        geometry: Name of the norm of steepest descent, or "not known".
        settings: Every other argument.
    """

    data: xr.Dataset
    contexts: EmbeddedContexts
    optimizer_name: str
    geometry: str
    settings: dict[str, Any]

    @property
    def weights_kept(self) -> str:
        """``"all"`` if the decoders of every recorded step are here, ``"last"`` if not."""
        return self._kept("W")

    def W(self, step: float | None = None) -> Float[np.ndarray, "instance seed V d"]:
        """The decoders at a recorded step.

        Args:
            step: The step, or radius; None for the last.

        Raises:
            InvalidInputError: If the step was not recorded, or its decoders were not kept.
        """
        remedy = 'Train by train_linear(..., weights="all"), or with fewer recorded steps'
        return self._at("W", step, "decoders", remedy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        save_run(path, _KIND, self.stored())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LinearTrajectory:
        """Reads a file that ``save`` wrote.

        Raises:
            FileFormatError: If the file is not a whole trajectory of a linear decoder.
        """
        with reading_run(path, _KIND, ("contexts",)) as stored:
            return cls.of(stored)

    def stored(self) -> StoredRun:
        """The content of its file."""
        texts = {"optimizer": self.optimizer_name, "geometry": self.geometry}
        arrays = {name: getattr(self.contexts, name) for name in CONTEXT_ARRAYS}
        return StoredRun(self.data, texts, self.settings, {"contexts": arrays})

    @classmethod
    def of(cls, stored: StoredRun) -> LinearTrajectory:
        """Builds a trajectory from the content of a file, checked.

        Raises:
            InvalidInputError: If an array cannot be used.
            ValueError: If anything does not fit.
        """
        contexts = EmbeddedContexts.from_arrays(stored.arrays["contexts"])
        record, decoder = (*TRIAL, axis_of(stored.data)), ("row", "column")
        check_records(
            stored.data,
            numbered=record,
            arrays={
                **dict.fromkeys(_BY_RECORD, record),
                **dict.fromkeys(("status", "steps_taken"), TRIAL),
                "W": [(*TRIAL, *decoder), (*record, *decoder)],
            },
            sizes={
                "instance": len(contexts.instance_numbers),
                "row": contexts.classes,
                "column": contexts.dimension,
            },
        )
        texts = stored.texts
        return cls(stored.data, contexts, texts["optimizer"], texts["geometry"], stored.settings)

    def _summary(self) -> tuple[str, Rows]:
        last = self.data.isel({self.axis: -1})
        return "Linear trajectory", [
            ("trials", self._trials()),
            ("contexts", repr(self.contexts)),
            ("optimizer", self._optimizer(self.optimizer_name)),
            ("geometry", self.geometry),
            self._last_record(),
            self._kept_row("W", "decoders"),
            self._loss_row(),
            ("loss above the entropy, median", f"{float(last['excess_loss'].median()):.4g}"),
            ("norm, median", f"{float(last['norm'].median()):.4g}"),
        ]


def linear_data(
    records: Records,
    instance_numbers: Int[np.ndarray, "instance"],
    seeds: Int[np.ndarray, "seed"],
    values: Real[np.ndarray, "records"],
    axis: str = "step",
    last_only: frozenset[str] = frozenset(),
) -> xr.Dataset:
    """Labels the measurements; see ``trajectory_data``."""
    return trajectory_data(
        records, instance_numbers, seeds, values, axis, last_only, descriptions=_DESCRIPTIONS
    )


_MEASURED = {
    "correlation": "cosine of W and the max-margin solution",
    "correlation_without_finite_part": "cosine of W less the finite part, and that solution",
    "projected_correlation": "cosine of W less its projection on F, and that solution",
    "finite_error": "distance of the projection of W on F from the finite part",
    "relative_finite_error": "that distance relative to the norm of the finite part",
    "excess_loss": "cross-entropy less the entropy of the contexts",
    "norm": "Frobenius norm of W",
}


def measure_linear(
    trajectory: LinearTrajectory, solution: Solution | Any, finite: Any = None
) -> xr.Dataset:
    """Compares decoders with the limits of training: a direction, and a finite part.

    Trained decoders grow without bound in the direction of ``W_mm``, which is orthogonal to the
    subspace F of the supports, and their projection on F tends to ``W*``.

    Args:
        trajectory: The record of training, or of a regularization path.
        solution: The solution of the ``decoder_problem`` of its contexts, or its matrix, with the
            axis of instances where these have one.
        finite: ``W*``, likewise; default: ``finite_part`` of the contexts.

    Returns:
        Over instance, seed, and the steps whose decoders were kept: ``correlation``, the cosine of
        W and ``W_mm``; ``correlation_without_finite_part``, that of ``W - W*``;
        ``projected_correlation``, that of ``W - P_F W``; ``finite_error``, ``||P_F W - W*||``;
        ``relative_finite_error``, the same over ``||W*||``, NaN where that is zero;
        ``excess_loss``, ``CE - H``; and the Frobenius ``norm`` of W. Cosines with a zero matrix,
        or with no solution, are NaN.

    Raises:
        InvalidInputError: If a matrix has not the shape of the decoders.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), gradient descent.
    """
    check_kinds(trajectory=(trajectory, LinearTrajectory))
    contexts = trajectory.contexts
    whole = contexts.batched()
    direction = _matrices("solution", solution, trajectory)
    finite = finite_part(contexts) if finite is None else finite
    fixed = _matrices("finite", finite, trajectory)
    W = trajectory.data["W"].to_numpy()
    between = (np.newaxis,) * (W.ndim - 3)
    spread = (slice(None), *between)
    direction, fixed = direction[spread], fixed[spread]
    inside = support_space(whole).project(W)
    error = np.linalg.norm(inside - fixed, axis=(-1, -2))
    size = np.linalg.norm(fixed, axis=(-1, -2))
    excess = trajectory.data["excess_loss"]
    if trajectory.weights_kept == "last":
        excess = excess.isel({trajectory.axis: -1})
    values = {
        "correlation": cosines(W, direction),
        "correlation_without_finite_part": cosines(W - fixed, direction),
        "projected_correlation": cosines(W - inside, direction),
        "finite_error": error,
        "relative_finite_error": error / np.where(size > 0, size, np.nan),
        "excess_loss": excess.to_numpy(),
        "norm": np.linalg.norm(W, axis=(-1, -2)),
    }
    variables = {name: (excess.dims, value) for name, value in values.items()}
    data = xr.Dataset(variables, {name: excess.coords[name] for name in excess.dims})
    for name, description in _MEASURED.items():
        data[name].attrs["description"] = description
    return data


def _matrices(
    argument: str, value: Any, trajectory: LinearTrajectory
) -> Float[np.ndarray, "instance V d"]:
    contexts = trajectory.contexts
    given = value.W if isinstance(value, Solution) else value
    array = as_float64(argument, given, finite=False)
    one = (contexts.classes, contexts.dimension)
    lead = () if contexts.instances is None else (contexts.instances,)
    if array.shape != (*lead, *one):
        raise InvalidInputError(
            argument, f"the shape of the matrix is {array.shape}", f"Give {(*lead, *one)}"
        )
    return array.reshape(-1, *one)

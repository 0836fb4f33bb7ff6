"""The distance of decoders from the limits of the theory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.corpora.linear._support_space import support_space
from attractor.corpora.linear.problem import finite_part
from attractor.corpora.linear.trajectory import LinearTrajectory
from attractor.geometry.vectors import cosines
from attractor.margin import Solution
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

if TYPE_CHECKING:
    import xarray as xr

_DESCRIPTIONS = {
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
    import xarray as xr

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
    for name, description in _DESCRIPTIONS.items():
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

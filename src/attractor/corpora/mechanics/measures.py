"""The distance of trained attention from the predicted limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attractor.analysis.measures import measure_direction
from attractor.corpora.mechanics.limits import AttentionLimits, log_excess_loss, log_mass_outside
from attractor.geometry.vectors import cosines
from attractor.support.checks import check_kinds, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.training import Trajectory

if TYPE_CHECKING:
    import xarray as xr

_DESCRIPTIONS = {
    "correlation": "correlation with the solution of the graphs' margin problem",
    "correlation_outside": "that correlation without the part in the cyclic subspace",
    "margin_ratio": "smallest margin relative to the largest possible, without that part",
    "norm": "Frobenius norm",
    "cyclic_norm": "Frobenius norm of the part in the cyclic subspace",
    "finite_distance": "distance of the part in the cyclic subspace from the finite part",
    "mass": "attention mass on the component of the label, mean over samples",
    "log_mass_outside": "logarithm of the attention mass off the component of the label",
    "log_excess": "logarithm of the loss above its floor",
    "loss_floor": "infimum of the training loss",
    "finite_norm": "norm of the finite part",
    "direction_norm": "norm of the solution of the graphs' margin problem",
}


def measure_limits(
    trajectory: Trajectory, limits: AttentionLimits | Sequence[AttentionLimits]
) -> xr.Dataset:
    """Measures every recorded matrix against the limits of its corpus.

    Args:
        trajectory: The result of ``train``.
        limits: One for all instances, or one for each.

    Returns:
        Over instance, seed and record: ``correlation`` with ``W_svm``; ``correlation_outside`` and
        ``margin_ratio`` once the part in the cyclic subspace is removed; ``norm``;
        ``cyclic_norm``; ``finite_distance``, ``||P_cyc W - W_fin||``; ``mass`` on the component of
        the label and ``log_mass_outside``, of means over samples; ``log_excess``, the logarithm of
        the log-loss of label mass above its floor. Over instances: ``loss_floor``,
        ``finite_norm`` and ``direction_norm``. Correlations are NaN where nothing, or everything,
        solves the margin problem.

    Raises:
        InvalidInputError: If there are not as many limits as instances.
    """
    import xarray as xr

    check_kinds(trajectory=(trajectory, Trajectory))
    kept = trajectory.data["W"]
    axis = trajectory.axis
    if axis not in kept.dims:
        kept = kept.expand_dims({axis: trajectory.steps[-1:]})
    W = kept.transpose("instance", "seed", axis, "row", "column").to_numpy()
    listed, several = one_or_several("limits", limits, AttentionLimits)
    each = listed if several else listed * len(W)
    if len(each) != len(W):
        raise InvalidInputError(
            "limits", f"there are {len(each)} for {len(W)} instances", "Give one for each"
        )
    found = [measure_matrices(matrices, one) for matrices, one in zip(W, each, strict=True)]
    along = ("instance", "seed", axis)
    data = xr.Dataset(
        {name: (along, np.stack([one[name] for one in found])) for name in found[0]},
        coords={name: (kept if name == axis else trajectory.data)[name] for name in along},
    )
    data["loss_floor"] = ("instance", [one.finite.floor for one in each])
    data["finite_norm"] = ("instance", [np.linalg.norm(one.finite.W) for one in each])
    data["direction_norm"] = ("instance", [float(one.direction.norm) for one in each])
    for name, description in _DESCRIPTIONS.items():
        data[name].attrs["description"] = description
    return data


def measure_matrices(
    W: Float[np.ndarray, "*batch d d"], limits: AttentionLimits
) -> dict[str, Float[np.ndarray, "*batch"]]:
    """The measures of ``measure_limits`` for any matrices, against the limits of one corpus."""
    cyclic = limits.subspace.project(W)
    flat = (W - cyclic).reshape(-1, *W.shape[-2:])
    direction = measure_direction(flat, limits.direction)
    log_outside = log_mass_outside(limits, W)
    weights = limits.contexts.weights
    with np.errstate(divide="ignore"):
        log_mean = np.log(weights) + log_outside
    mean_outside = np.logaddexp.reduce(log_mean, axis=-1)
    return {
        "correlation": cosines(W, limits.direction.W),
        "correlation_outside": direction.correlation.reshape(W.shape[:-2]),
        "margin_ratio": direction.margin_ratio.reshape(W.shape[:-2]),
        "norm": np.linalg.norm(W, axis=(-1, -2)),
        "cyclic_norm": np.linalg.norm(cyclic, axis=(-1, -2)),
        "finite_distance": np.linalg.norm(cyclic - limits.finite.W, axis=(-1, -2)),
        "mass": -np.expm1(np.minimum(mean_outside, 0)),
        "log_mass_outside": mean_outside,
        "log_excess": log_excess_loss(limits, W),
    }

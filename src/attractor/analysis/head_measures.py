"""How far trained heads are from the solution of their label problem."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.analysis.measures import measure_direction
from attractor.analysis.prediction import RELAXED, head_lags
from attractor.analysis.reference import Reference
from attractor.training import Trajectory


class HeadMeasures(NamedTuple):
    """Measures of the head of every trial; empty where no linear head was trained.

    Attributes:
        curves: Over (instance, seed, record): ``label_margin_ratio`` and ``label_correlation``.
        outcome: Dimensions and values of what each trial ended in.
    """

    curves: dict[str, np.ndarray]
    outcome: dict[str, tuple[tuple[str, ...], Any]]


def head_measures(
    trajectory: Trajectory,
    W: Float[np.ndarray, "instance seed step d e"],
    reference: Reference,
) -> HeadMeasures:
    """Measures heads by the label problem of the tokens that their trial is held against.

    The outcome holds, for each trial: ``label_separable``, ``label_gap``; ``head_ratio``, the norm
    of the head in units of that of ``W``; ``critical_ratio``, what it must at least be for a
    relaxed problem to be the limit; ``head_lags``, whether it is less. For each row:
    ``label_support``.
    """
    label = reference.label
    if label is None:
        return HeadMeasures({}, {})
    axis = trajectory.axis
    kept = trajectory.data["head_weight"]
    if axis not in kept.dims:
        kept = kept.expand_dims({axis: trajectory.steps[-1:]}, axis=2)
    heads = kept.to_numpy().astype(np.float64)[..., None]
    curves = {
        name: np.full(W.shape[:3], np.nan) for name in ("label_margin_ratio", "label_correlation")
    }
    for number in range(len(reference.instance)):
        places = np.nonzero(reference.number == number)
        measures = measure_direction(heads[places], label.solution[number])
        curves["label_margin_ratio"][places] = measures.margin_ratio
        curves["label_correlation"][places] = measures.correlation
    last = reference.number[:, :, -1]
    trials, rows = ("instance", "seed"), ("instance", "seed", "sequence", "query")
    sizes = label.solution.geometry.norm(heads[:, :, -1])
    norms = reference.solution.geometry.norm(W[:, :, -1])
    ratio = np.divide(sizes, norms, out=np.full_like(sizes, np.nan), where=norms > 0)
    critical = reference.critical_ratio[last]
    lags = head_lags(ratio, critical) & (np.array(reference.kind)[last] == RELAXED)
    return HeadMeasures(
        curves,
        {
            "label_separable": (trials, label.separable[last]),
            "label_gap": (trials, np.asarray(label.solution.gap)[last]),
            "label_support": (rows, label.at_margin[last]),
            "head_ratio": (trials, ratio),
            "critical_ratio": (trials, critical),
            "head_lags": (trials, lags),
        },
    )

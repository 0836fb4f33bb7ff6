"""Gradient flow on infinite prompts in the parameters of a run, from its initialization."""

from __future__ import annotations

import functools

import jax
import numpy as np
import xarray as xr

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.flows.flow import CompiledRisk, follow_risk
from attractor.prompts.regression.models import PARAMETERIZATIONS, Model
from attractor.prompts.regression.risks._infinite_risk import infinite_risk_of
from attractor.prompts.regression.risks.quadratics import TaskArrays
from attractor.prompts.regression.training import initial_parameters
from attractor.prompts.regression.trajectory import InContextTrajectory
from attractor.support.precision import double_precision

_TIMES = 200
_FIRST = 1e-3
_TOLERANCE = 1e-9


def limit_flow(run: InContextTrajectory) -> xr.Dataset | None:
    """Gradient flow on the exact risk of infinite prompts, in the parameters that a run trains.

    Args:
        run: Training that recorded step 0; the flow starts where its first seed did.

    Returns:
        ``risk``, and of the first head ``value_label``, ``key_query_norm`` and ``balance``, along
        ``time`` up to that of the last step; None if step 0 was not recorded.
    """
    if run.steps[0] != 0 or run.steps[-1] == 0:
        return None
    settings, task = run.settings, run.task
    model = PARAMETERIZATIONS[settings["parameterization"]](task.dimension, settings["heads"])
    if settings["initialization"] == "default":
        start = initial_parameters(model, settings["seed"])
    else:
        start = model.of_blocks(Blocks(*(block[0] for block in run.blocks(0))))
    last = run.steps[-1] * run.time_of_step
    times = np.concatenate([[0.0], np.geomspace(_FIRST * last, last, _TIMES)])
    flow = follow_risk(_compiled(model).on(TaskArrays.of(task)), start, times, _TOLERANCE)
    with double_precision():
        blocks = jax.tree.map(np.asarray, jax.vmap(model.blocks)(flow.parameters))
    first = Blocks(*(block[:, 0] for block in blocks))
    return xr.Dataset(
        {
            "risk": ("time", flow.risk),
            "value_label": ("time", first.value_label),
            "key_query_norm": ("time", np.linalg.norm(first.key_query, axis=(-2, -1))),
            "balance": ("time", first.balance),
        },
        {"time": flow.times},
    )


@functools.cache
def _compiled(model: Model) -> CompiledRisk:
    """The risk in the parameters of a model, compiled once for all tasks."""
    example = initial_parameters(model, 0)
    return CompiledRisk.of(
        lambda parameters, law: infinite_risk_of(law, model.blocks(parameters)), example
    )

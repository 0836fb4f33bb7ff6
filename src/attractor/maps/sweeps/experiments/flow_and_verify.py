"""Gradient flow held against the direction predicted, by start and by the logarithm of time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attractor.attention import get_loss
from attractor.attention.multi_head import one_attention_head
from attractor.geometry import get_geometry
from attractor.maps.sweeps.experiment import Experiment
from attractor.maps.sweeps.experiments.parameters import (
    SIZES,
    Parameter,
    check_axes,
    check_rising,
    check_settings,
    check_sizes,
    combinations,
    draw_tokens,
    filled_in,
    number,
    text,
    token_parameters,
)
from attractor.maps.sweeps.experiments.runs import (
    MEASURES,
    OWN,
    SETTLED,
    START_PARAMETERS,
    check_trainable,
    outcomes,
    start,
)
from attractor.maps.sweeps.grid import Grid
from attractor.support.checks import check_items, check_number
from attractor.support.errors import AttractorWarning, InvalidInputError, TrialStatus
from attractor.training.flow import gradient_flow

_LOG_TIMES = "log_times"
_LOST = (TrialStatus.DIVERGED, TrialStatus.OUT_OF_STEPS, TrialStatus.BELOW_ROUNDING)
"""Ends after which the flow is not known, though it goes on."""
_EARLY = 1e-6
"""How far before a record a trial may be that has reached it."""


def _loss_named(name: str) -> Any:

    return get_loss(name)


PARAMETERS: dict[str, Parameter] = {
    **token_parameters(6, 8, 10),
    "loss": text("logistic", _loss_named, "loss"),
    **START_PARAMETERS,
    "geometry": text(
        OWN,
        lambda name: name == OWN or get_geometry(name),
        "norm of the margin problem; the one that the flow descends",
    ),
    "tolerance": number(1e-8, "error of a step of the solver", least=1e-12, most=0.1, example=1e-6),
}

COMPILED_BY = (*SIZES, "parameterization", "loss")
"""Parameters whose every value is another program."""


def flow_and_verify(**settings: Any) -> Experiment:
    """Gradient flow, training with infinitely small steps, held against the direction predicted.

    Args:
        **settings: Values of ``PARAMETERS``, which may also be axes of a grid; and ``log_times``,
            logarithms of times at which everything is measured as if the flow had ended there. They
            are an axis of every measure, called ``log_time``.

    Raises:
        InvalidInputError: If one is not known or cannot be used, or ``log_times`` is missing.
    """
    rest = dict(settings)
    times = _check_log_times(rest.pop(_LOG_TIMES, None))
    return Experiment(
        "flow_and_verify",
        MEASURES | SETTLED,
        axes=tuple(PARAMETERS),
        compiled_by=COMPILED_BY,
        settings=check_settings(PARAMETERS, rest, "flow_and_verify") | {_LOG_TIMES: times},
        along={"log_time": times},
        check="check",
    )


def check(grid: Grid, *, log_times: Sequence[float], **settings: Any) -> None:
    """Checks all that a sweep would follow, before any of it.

    Raises:
        InvalidInputError: If a value cannot be used, or the flow could not leave a start.
    """
    check_axes(PARAMETERS, grid.axes)
    check_sizes(PARAMETERS, grid.axes, settings)

    for point in combinations(grid.axes, ("parameterization",)):
        given = filled_in(PARAMETERS, point, settings)
        one_attention_head(given["parameterization"], "gradient flow")
    check_trainable(PARAMETERS, grid.axes, settings)


def run(
    point: Mapping[str, Any],
    instances: Int[np.ndarray, "instances"],
    seeds: range,
    *,
    log_times: Sequence[float],
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Follows the flow of every instance from every seed, and measures it; see ``MEASURES``.

    Where the solver could follow a flow no further, it has the status alone from then on.

    Args:
        point: Values of the axes.
        instances: Numbers of the data sets.
        seeds: Seeds of initial parameters.
        log_times: Logarithms of times at which all is measured.
        **settings: Values of other parameters.
    """
    given = filled_in(PARAMETERS, point, settings)
    tokens, head = draw_tokens(given, instances)
    times = [float(time) for time in log_times]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        trained = gradient_flow(
            tokens,
            head,
            log_time=times[-1],
            seeds=len(seeds),
            seed=seeds.start,
            **start(given, tokens, instances, seeds),
            loss=given["loss"],
            record=[-np.inf, *times],
            tolerance=given["tolerance"],
            weights="all",
        )
        data = trained.data.transpose("instance", "seed", ...)
        arrived = data["status"].to_numpy() == TrialStatus.TRAINED
        came = {time: data["log_time"].sel(logarithmic_time=time).to_numpy() for time in times}
        reached = {time: arrived | (came[time] >= time - _EARLY) for time in times}
        return outcomes(trained, given["geometry"], reached, _LOST)


def _check_log_times(given: Any) -> list[float]:
    if given is None:
        raise InvalidInputError(
            _LOG_TIMES, "it is missing", "Say when to measure: log_times = [5, 10, 20]"
        )
    items = check_items(_LOG_TIMES, given, int | float, 1)
    listed = [check_number(_LOG_TIMES, time, example=10.0) for time in items]
    return check_rising(_LOG_TIMES, listed)

"""Flows of many trials: by explicit steps, and again by implicit ones where these prove stiff."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attractor.support.errors import TrialStatus
from attractor.training import loop
from attractor.training.attention_training import AttentionTraining
from attractor.training.flow.objective import FlowTrials, GradientFlow
from attractor.training.flow.records import FlowRecords
from attractor.training.flow.stepping import Limits
from attractor.training.measurements import Records
from attractor.training.programs.trials import Trials


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

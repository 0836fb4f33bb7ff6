"""The direction predicted before anything is trained."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attractor.analysis.predictions.prediction import counted_reasons, predicted_problem
from attractor.analysis.predictions.trained import Trained, what_was_trained, with_instances
from attractor.attention import get_parameterization
from attractor.attention.readout import LinearReadout
from attractor.files import LoadedTokens
from attractor.geometry import Geometry
from attractor.margin import Solution
from attractor.margin.selection import Selection
from attractor.report.constraints import conflicts

_LOSS = "logistic"
"""The loss of the commands that predict."""
_MOST_CONFLICTS = 10


class Predicted(NamedTuple):
    """The direction predicted for a selection.

    Attributes:
        solution: The solution, for one data set or several.
        problem: Kind of problem it solves.
        why: Why it is that problem.
    """

    solution: Solution
    problem: str
    why: str

    @property
    def sentence(self) -> str:
        """The problem and why it is that one, in words."""
        return f"Problem: {self.problem}. {self.why}"


def conflict_lines(solution: Solution, instance_numbers: np.ndarray) -> list[str]:
    """The constraints that contradict each other most, a line each."""
    return [
        f"  in conflict: data set {one.instance}, sequence {one.sequence}: keep token "
        f"{one.selected} against token {one.token} (share {one.weight:.3f})"
        for one in conflicts(solution, instance_numbers)[:_MOST_CONFLICTS]
    ]


def predict(
    loaded: LoadedTokens, selection: Selection, geometry: Geometry, *, progress: bool
) -> Predicted:
    """Solves the problem that theory predicts for training that keeps a selection.

    Args:
        loaded: What is trained.
        selection: The tokens to keep.
        geometry: The norm.
        progress: Whether to show a progress bar.
    """
    tokens = with_instances(loaded.tokens)
    head_trained = get_parameterization(loaded.parameterization).trains_head
    if loaded.readout is None and not head_trained:
        trained = Trained()
    else:  # all heads that a file holds are linear, and where they start does not matter
        head = loaded.readout or LinearReadout(np.zeros(tokens.value_dimension))
        trained = what_was_trained(tokens, head, _LOSS, head_trained=head_trained)
    several = loaded.tokens.instances is not None
    kept = selection if several else Selection(selection.mask[None], selection.tied[None])
    found = predicted_problem(tokens, kept, trained, geometry, progress=progress)
    solution = found.solution if several else found.solution[0]
    return Predicted(solution, counted_reasons(found.kind), counted_reasons(found.why))

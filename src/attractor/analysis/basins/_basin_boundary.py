"""``basin_boundary``: where, between two starts, the selection that is reached changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.analysis.basins.attractors import Attractors, Judgement
from attractor.analysis.basins.problem import BasinProblem, check_problem
from attractor.analysis.basins.reached import selection_name
from attractor.attention import Head, Loss, Parameterization
from attractor.checks import check_number, check_steps
from attractor.errors import InvalidInputError
from attractor.geometry import Geometry
from attractor.records import Rows, Summary
from attractor.tokens import Tokens
from attractor.training import Optimizer

_POINTS = 25
"""Starts of the segment that are trained at a time: as many as one compiled block holds."""


@dataclass(frozen=True, eq=False, repr=False)
class BasinBoundary(Summary):
    """Two nearby starts that end differently.

    Attributes:
        before: The last start found that reaches the selection of the first end of the segment.
        after: The next one, which does not.
        fraction: Position of the middle between the two, 0 at the first end and 1 at the second.
        bracket: Euclidean distance of the two.
        reached_before: Token that each row attends to after all steps, from the start before.
        reached_after: The same, from the start after.
        settled: Whether both runs have settled within the steps. If not, it is not decided where
            they end, and the boundary moves with the number of steps.
        steps: Steps of each run.
        optimizer: The step.
    """

    before: Float[np.ndarray, "d e"]
    after: Float[np.ndarray, "d e"]
    fraction: float
    bracket: float
    reached_before: Int[np.ndarray, "sequence query"]
    reached_after: Int[np.ndarray, "sequence query"]
    settled: bool
    steps: int
    optimizer: str

    @property
    def middle(self) -> Float[np.ndarray, "d e"]:
        """The start in the middle of the bracket."""
        return (self.before + self.after) / 2

    def _summary(self) -> tuple[str, Rows]:
        entries = ", ".join(f"{value:.8g}" for value in self.middle.ravel()[:6])
        more = ", ..." if self.middle.size > 6 else ""
        doubt = "" if self.settled else "; the runs beside it have not settled, so it may move"
        return f"Basin boundary at ({entries}{more}), within {self.bracket:.1e}", [
            ("tokens before it", selection_name(self.reached_before)),
            ("tokens after it", selection_name(self.reached_after)),
            ("steps", f"{self.steps:,} of {self.optimizer}{doubt}"),
        ]


def basin_boundary(
    tokens: Tokens,
    head: Head,
    optimizer: Optimizer,
    start: Any,
    end: Any,
    *,
    tolerance: float = 1e-6,
    steps: int = 5000,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
    geometry: Geometry | str | None = None,
) -> BasinBoundary:
    """Finds, on the segment between two starts, where the selection that is reached changes.

    Starts spread over the segment are trained as one batch; the first two neighbors of which
    only one reaches the selection of ``start`` are the next segment. What a run has reached is
    what it attends to after all steps. Near a boundary runs stay undecided for long, the longer
    the nearer: ``settled`` of the result says whether the steps were enough.

    Args:
        tokens: A single data set, with labels.
        head: The fixed head.
        optimizer: The step.
        start: One end: a matrix ``(d, e)``, or a vector ``(d,)`` of a prompt.
        end: The other end, which reaches another selection.
        tolerance: Euclidean distance within which to find the boundary.
        steps: Steps of each run.
        loss: The loss.
        parameterization: What is trained. Keys and queries start from balanced factors.
        geometry: The norm to solve margin problems in; default: the one the optimizer descends
            in, or Frobenius where none is known.

    Raises:
        InvalidInputError: If an argument cannot be used, or both ends reach the same selection.
    """
    problem = check_problem(
        tokens, head, optimizer, loss=loss, parameterization=parameterization, geometry=geometry
    )
    steps = check_steps("steps", steps)
    first, last = problem.as_matrix("start", start), problem.as_matrix("end", end)
    tolerance = check_number("tolerance", tolerance, above=0, example=1e-6)
    attractors = Attractors(problem)
    length = float(np.linalg.norm(last - first))
    low, high = 0.0, 1.0
    own = None
    while True:
        places = np.linspace(low, high, _POINTS)
        judged = _judge(problem, attractors, first + places[:, None, None] * (last - first), steps)
        own = judged.attended[0] if own is None else own
        changed = np.flatnonzero((judged.attended != own).any((-1, -2)))
        if not changed.size:
            raise InvalidInputError(
                "end",
                f"after {steps} steps both ends attend to tokens {selection_name(own)}, and so do "
                "all starts tried between them",
                "Give two starts that reach different selections",
            )
        beyond = int(changed[0])
        pair = [beyond - 1, beyond]
        low, high = places[pair].tolist()
        if (high - low) * length <= tolerance or np.nextafter(low, high) == high:
            break
    return BasinBoundary(
        before=first + low * (last - first),
        after=first + high * (last - first),
        fraction=(low + high) / 2,
        bracket=(high - low) * length,
        reached_before=judged.attended[pair[0]],
        reached_after=judged.attended[pair[1]],
        settled=bool(judged.settled[pair].all()),
        steps=steps,
        optimizer=repr(optimizer),
    )


def _judge(
    problem: BasinProblem,
    attractors: Attractors,
    W: Float[np.ndarray, "start d e"],
    steps: int,
) -> Judgement:
    """Trains from matrices and judges the ends of the runs."""
    return attractors.judge(problem.train(problem.starts_at(W), steps).W()[0])

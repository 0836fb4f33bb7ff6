"""The record of one head at one step."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

NUMBERS = {
    "margin_ratio": "min_j a_j^T W b_j / ||W|| * ||W*||",
    "correlation": "<W, W*> / (||W||_F ||W*||_F)",
    "gap": "relative duality gap of the solution",
    "solution_norm": "norm of the solution W*",
    "norm": "norm of W in the geometry of the monitor",
    "frobenius_norm": "Frobenius norm of W",
    "nuclear_norm": "nuclear norm of W",
    "stable_rank": "||W||_F^2 / ||W||_spectral^2",
    "log_unselected_probability": "logarithm of the mean softmax probability off the selection",
    "selection_changes": "queries that select other tokens than at the record before",
    "ties": "queries under which several tokens share the highest score",
    "constraints": "constraints of the margin problem",
    "seconds": "time the record took",
}
"""The numbers of a record, and what each means."""


class RecordStatus(enum.StrEnum):
    """The outcome of a comparison of a head with its solution."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    OUT_OF_REACH = "out of reach"
    STOPPED_EARLY = "stopped early"
    UNDECIDED = "nothing to separate"
    NOT_FINITE = "not finite"
    POSTPONED = "postponed"
    TOO_LARGE = "too many constraints"
    UNREADABLE = "could not be read"
    UNSOLVED = "could not be solved"

    @property
    def message(self) -> str:
        """The sentence a person reads."""
        return _MESSAGES[self]


_MESSAGES = {
    RecordStatus.OPTIMAL: "Compared with the certified solution for the tokens selected.",
    RecordStatus.INFEASIBLE: "No matrix separates the tokens selected from the others; certified.",
    RecordStatus.OUT_OF_REACH: "No solution was found; none has a norm below the lower bound.",
    RecordStatus.STOPPED_EARLY: "No solution was certified to the tolerance; see its gap.",
    RecordStatus.UNDECIDED: "Every query has one token, or ties among all of its tokens.",
    RecordStatus.NOT_FINITE: "The matrix or the tokens hold NaN or infinity.",
    RecordStatus.POSTPONED: "Left for a later step, to stay within the time allowed.",
    RecordStatus.TOO_LARGE: "The probe batch makes more than max_constraints; nothing was solved.",
    RecordStatus.UNREADABLE: "What tells matrix and tokens failed, or told what does not fit.",
    RecordStatus.UNSOLVED: "The solver failed; all that needs no solution is there.",
}


@dataclass(frozen=True)
class HeadRecord:
    """One head at one step.

    Attributes:
        step: The step.
        due: The step it was due at; smaller where it had been postponed.
        status: The outcome of the comparison with its solution.
        start: The start of the solution: ``"cold"``, ``"warm"`` from the solution before,
            ``"reused"``, or empty where there is none.
        selected: Position of the token with the highest score, -1 where several tie and where the
            row is padding.
        selected_probability: Softmax probability of the tokens selected; NaN in rows of padding.
        numbers: The numbers of ``NUMBERS`` that are known.
        problem: What went wrong, in a sentence; empty where nothing did.
    """

    step: int
    due: int
    status: RecordStatus
    start: str = ""
    selected: Int[np.ndarray, "sequence query"] | None = None
    selected_probability: Float[np.ndarray, "sequence query"] | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    problem: str = ""

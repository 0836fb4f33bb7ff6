"""Exceptions, warning categories, and the statuses a computation can end with."""

from __future__ import annotations

import enum
import os
import sys
import warnings


class AttractorError(ValueError):
    """Base class of every error this library raises on purpose."""


class InvalidInputError(AttractorError):
    """An argument cannot be used.

    The message names the argument, says what was wrong with it, and what would be right.

    Attributes:
        argument: Name of the offending argument.
        problem: What was wrong.
        remedy: What would be right.
    """

    def __init__(self, argument: str, problem: str, remedy: str) -> None:
        """Joins the three parts into one sentence a person can act on."""
        end = "" if remedy.endswith("?") else "."
        super().__init__(f"{argument}: {problem}. {remedy}{end}")
        self.argument = argument
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[InvalidInputError], tuple[str, str, str]]:
        """Made again from the three parts, as where another process raised it."""
        return type(self), (self.argument, self.problem, self.remedy)


class NotFiniteError(InvalidInputError):
    """What is to be numbers holds NaN or infinity, as where training has diverged."""


class FileFormatError(AttractorError):
    """A file is not of the declared format, or is damaged."""


class WriteError(AttractorError, OSError):
    """Something could not be written; what was there before is as it was.

    Attributes:
        path: What could not be written.
        errno: The error number of the system, such as ``errno.ENOSPC``; None if unknown.
    """

    def __init__(self, path: str | os.PathLike[str], reason: OSError) -> None:
        """Says what could not be written, and why."""
        why = reason.strerror or str(reason)
        super().__init__(
            f"{os.fspath(path)} cannot be written: {why}. What was there before is as it was."
        )
        self.path, self.errno, self.strerror = os.fspath(path), reason.errno, why

    def __reduce__(self) -> tuple[type[WriteError], tuple[str, OSError]]:
        """Made again from the two parts, as where another process raised it."""
        return type(self), (self.path, OSError(self.errno, self.strerror))

    def __str__(self) -> str:
        """The sentence; an OSError with a number would say the system's words alone."""
        return self.args[0]


class ClusterLostError(AttractorError, ConnectionError):
    """The scheduler or all workers of a cluster are gone; what is done stays, to go on from."""


class AttractorWarning(UserWarning):
    """Base class of every warning this library gives."""


def warn_caller(words: str, category: type[Warning]) -> None:
    """Warns of the line outside of this library that led here."""
    frame, level = sys._getframe(), 1
    while frame.f_globals.get("__name__", "").startswith("attractor") and frame.f_back:
        frame, level = frame.f_back, level + 1
    warnings.warn(words, category, stacklevel=level)


class DuplicateTokensWarning(AttractorWarning):
    """A selected token has an exact copy in its own sequence, so no margin can separate them."""


class TiedTokensWarning(AttractorWarning):
    """Several tokens share the highest token score."""


class DivergenceWarning(AttractorWarning):
    """Weights hold NaN or infinity: training has diverged."""


class PrecisionWarning(AttractorWarning):
    """Low precision: less than double was requested, or it cannot resolve the steps."""


class Status(enum.Enum):
    """How a margin problem ended.

    The value is a short name; ``message`` is the sentence a person reads.
    """

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    OUT_OF_REACH = "out of reach"
    STOPPED_EARLY = "stopped early"
    LOCALLY_OPTIMAL = "locally optimal"

    @property
    def message(self) -> str:
        """The sentence a person reads."""
        return _STATUS_MESSAGES[self]

    def __str__(self) -> str:
        """The short name."""
        return self.value


_STATUS_MESSAGES = {
    Status.OPTIMAL: "Solved: the relative duality gap is within the tolerance.",
    Status.INFEASIBLE: (
        "No matrix satisfies every constraint: "
        "the multipliers combine the constraints into a contradiction."
    ),
    Status.OUT_OF_REACH: (
        "No matrix of norm below the lower bound satisfies every constraint; whether a larger one "
        "does is not known."
    ),
    Status.STOPPED_EARLY: (
        "No answer was certified to the tolerance; the gap of the best matrix found, if any, and "
        "the lower bound on the norm say how much is known."
    ),
    Status.LOCALLY_OPTIMAL: (
        "A local optimum of a rank-constrained problem; nothing certifies it globally."
    ),
}


class TrialStatus(enum.IntEnum):
    """How the training of one trial ended."""

    TRAINED = 0
    STATIONARY = 1
    BELOW_ROUNDING = 2
    DIVERGED = 3
    STOPPED = 4
    OUT_OF_STEPS = 5
    UNCONVERGED = 6

    @property
    def message(self) -> str:
        """The sentence a person reads."""
        return _TRIAL_MESSAGES[self]

    def __str__(self) -> str:
        """The name in lower case, with spaces."""
        return self.name.lower().replace("_", " ")


_TRIAL_MESSAGES = {
    TrialStatus.TRAINED: "Took every requested step.",
    TrialStatus.STATIONARY: "Reached a point where the gradient is exactly zero; terminated there.",
    TrialStatus.BELOW_ROUNDING: (
        "The step is smaller than the rounding of the parameters, or is zero; terminated."
    ),
    TrialStatus.DIVERGED: (
        "Loss, parameters or gradient became infinite or undefined; terminated there."
    ),
    TrialStatus.STOPPED: "Met the condition to stop; terminated there.",
    TrialStatus.OUT_OF_STEPS: (
        "The solver took the most steps allowed before it arrived; terminated where it was."
    ),
    TrialStatus.UNCONVERGED: (
        "Some point of the path is not stationary to the tolerance; its optimality says how far."
    ),
}

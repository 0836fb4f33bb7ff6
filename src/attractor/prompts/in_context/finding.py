"""``Finding``: a hypothesis, whether it is met, and what decides it."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class State(enum.Enum):
    """Whether a hypothesis is met."""

    MET = "met"
    """Shown to be true of the task."""
    NOT_MET = "not met"
    """Shown to be false of the task."""
    NOT_SETTLED = "not settled"
    """Not known in closed form, and not decided by what was measured."""


@dataclass(frozen=True)
class Finding:
    """A hypothesis on a task, decided.

    Attributes:
        name: The hypothesis, in a few words.
        state: Whether it is met.
        found: The quantities that decide it, in words and numbers.
    """

    name: str
    state: State
    found: str

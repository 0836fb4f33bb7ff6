"""What a regression task file holds, ready for use."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attractor.prompt.regression.task import RegressionTask


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LoadedRegression:
    """What a regression task file holds.

    Attributes:
        task: The law of prompts and queries.
        lengths: Numbers of tokens of a prompt, increasing.
        initial_scale: ``||A||_F`` at the start, a multiple of the identity.
        initial_value: ``b`` at the start.
        time: How long gradient flow runs.
    """

    task: RegressionTask
    lengths: tuple[int, ...]
    initial_scale: float
    initial_value: float
    time: float

    def __repr__(self) -> str:
        """What it holds, on one line."""
        lengths = ", ".join(f"{length:,}" for length in self.lengths)
        return f"LoadedRegression(d={self.task.dimension}, prompts of {lengths} tokens)"

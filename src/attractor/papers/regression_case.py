"""``RegressionCase``: the task that a claim on in-context regression is examined on."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attractor.files import LoadedRegression, save_regression
from attractor.papers.data_set import DataKind, DataSet
from attractor.papers.smaller_regression import smaller_regression
from attractor.prompt.regression.blocks import Blocks
from attractor.prompt.regression.task import RegressionTask
from attractor.provenance import data_hash

if TYPE_CHECKING:
    from attractor.papers._examine import Finding
    from attractor.papers.trial import Trial


@dataclasses.dataclass(frozen=True, eq=False)
class RegressionCase(DataSet):
    """A task with prompts and a start of training; what a regression task file holds.

    Attributes:
        task: The law of prompts and queries.
        lengths: Numbers of tokens of a prompt, increasing.
        initial_scale: ``||A||_F`` at the start, a multiple of the identity.
        initial_value: ``b`` at the start; the scale if None, which is balanced.
        time: How long gradient flow runs; infinity for until it rests.
        about: What the data are, in words.
    """

    kind: ClassVar[DataKind] = DataKind.REGRESSION
    task: RegressionTask
    lengths: tuple[int, ...] = (64, 256, 1024)
    initial_scale: float = 0.2
    initial_value: float | None = None
    time: float = math.inf
    about: str = "regression task"

    @classmethod
    def from_loaded(cls, loaded: LoadedRegression, name: str) -> RegressionCase:
        """The case in what a regression task file holds.

        Args:
            loaded: What it holds.
            name: The name of the file.
        """
        start = loaded.initial_scale, loaded.initial_value
        return cls(loaded.task, loaded.lengths, *start, loaded.time, about=name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the case as a regression task file."""
        start = self.initial_scale, self.value
        save_regression(path, LoadedRegression(self.task, self.lengths, *start, self.time))

    @property
    def value(self) -> float:
        """``b`` at the start."""
        return self.initial_scale if self.initial_value is None else self.initial_value

    @property
    def start(self) -> Blocks:
        """The head at the start."""
        d = self.task.dimension
        zeros = np.zeros(d)
        return Blocks(
            self.initial_scale * np.eye(d) / math.sqrt(d), zeros, zeros, np.array(self.value)
        )

    @property
    def hash(self) -> str:
        """SHA-256 of all that the case holds."""
        task = self.task
        numbers = (task.weight_variance, task.label_noise, task.query_noise)
        return data_hash(
            None,
            None,
            covariance=task.covariance,
            query_covariance=task.query_covariance,
            numbers=np.array([*numbers, self.initial_scale, self.value, self.time]),
            lengths=np.array(self.lengths),
        )

    @property
    def size(self) -> int:
        """Inputs, and tokens of all prompts."""
        return self.task.dimension * sum(self.lengths)

    @property
    def size_in_words(self) -> str:
        """Inputs, tokens and the start."""
        lengths = ", ".join(f"{length:,}" for length in self.lengths)
        return (
            f"{self.task.dimension} inputs, prompts of {lengths} tokens, "
            f"start ||A|| = {self.initial_scale:.3g}, b = {self.value:.3g}"
        )

    def smaller(self, trial: Trial, first: Finding) -> RegressionCase:
        """The case less the inputs, prompts and digits that a counterexample does not need."""
        return smaller_regression(self, trial)

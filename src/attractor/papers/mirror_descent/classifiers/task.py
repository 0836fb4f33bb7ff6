"""Tasks for classifiers: data, model, schedule, and measures of a trained model."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from attractor.models import ClassificationData
from attractor.models.classifier_training import Augment, Prepare
from attractor.models.transformers import Config


@dataclass(frozen=True)
class Schedule:
    """Length of training, and tries of the search for a learning rate.

    Attributes:
        epochs: Most epochs of a run, and of each try of a learning rate: a shorter search would
            favor rates that learn fast over those that learn much.
        patience: Epochs without a better validation accuracy after which it ends.
        tries: How many learning rates are tried, the same for every optimizer.
        batch: Examples of a step; their losses are summed.
        guesses: Where the search for the learning rate of an optimizer begins; for those that
            are missing, where it usually does.
    """

    epochs: int
    patience: int | None
    tries: int
    batch: int = 100
    guesses: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ClassifierTask(abc.ABC):
    """A task for classifiers.

    Attributes:
        data: The examples.
        config: The model.
        schedule: Length of training.
        augment: What changes inputs at random in training; None for nothing.
        prepare: What turns inputs into what the model reads; None for nothing.
    """

    data: ClassificationData
    config: Config
    schedule: Schedule
    augment: Augment | None = None
    prepare: Prepare | None = None

    @property
    def arrays(self) -> dict[str, Any]:
        """Everything that results depend on, by name."""
        return dict(self.data.arrays)

    @abc.abstractmethod
    def measure(self, model: Any) -> xr.Dataset:
        """Measures of a trained model beside its accuracy."""

"""What classifiers are trained on, for how long, and what is measured of them."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import xarray as xr

from attractor.models import ClassificationData
from attractor.models.building import Config


@dataclass(frozen=True)
class Schedule:
    """How long and how often to train.

    Attributes:
        epochs: Most epochs of a run, and of each try of a learning rate: a shorter search would
            favor rates that learn fast over those that learn much.
        patience: Epochs without a better validation accuracy after which it ends.
        tries: How many learning rates are tried, the same for every optimizer.
        batch: Examples of a step; their losses are summed.
    """

    epochs: int
    patience: int | None
    tries: int
    batch: int = 100


@dataclass(frozen=True, eq=False)
class ClassifierTask(abc.ABC):
    """A task for classifiers.

    Attributes:
        data: The examples.
        config: The model.
        schedule: How long and how often to train.
    """

    data: ClassificationData
    config: Config
    schedule: Schedule

    @property
    def arrays(self) -> dict[str, Any]:
        """Everything that results depend on, by name."""
        return dict(self.data.arrays)

    @abc.abstractmethod
    def measure(self, model: Any) -> xr.Dataset:
        """What is told of a trained model beside its accuracy."""

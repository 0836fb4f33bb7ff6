"""A text task: what is trained, on what, for how long, and which words tell the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.datasets import planted_reviews
from attractor.datasets.planted_reviews import PlantedPart
from attractor.models import ClassificationData, Examples, TextTransformerConfig


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
class TextTask:
    """A text task.

    Attributes:
        data: The texts as numbers of tokens, with their classes.
        telling: Where words that tell the class stand in the texts to test with.
        config: The model.
        schedule: How long and how often to train.
    """

    data: ClassificationData
    telling: Bool[np.ndarray, "n token"]
    config: TextTransformerConfig
    schedule: Schedule

    @property
    def frequencies(self) -> Float[np.ndarray, "vocabulary"]:
        """How often each token occurs in the texts trained on."""
        train = self.data.train
        real = train.inputs if train.mask is None else train.inputs[train.mask]
        return np.bincount(real.ravel(), minlength=self.config.vocabulary).astype(np.float64)


def planted_task(schedule: Schedule, *, seed: int = 0, **model: Any) -> TextTask:
    """Made-up reviews with planted words, for a small model.

    Args:
        schedule: How long and how often to train.
        seed: Of the reviews.
        model: What the config of the model has otherwise than the published sizes, but for the
            vocabulary and the length.
    """
    reviews = planted_reviews(seed=seed)
    data = ClassificationData(
        *(_examples(part) for part in (reviews.train, reviews.validation, reviews.test)),
        settings=reviews.settings,
    )
    config = TextTransformerConfig(
        vocabulary=reviews.settings["vocabulary"], length=reviews.settings["length"], **model
    )
    return TextTask(data, reviews.test.planted, config, schedule)


def _examples(part: PlantedPart) -> Examples:
    return Examples(part.ids, part.labels, part.mask)

"""Texts with a class, and words that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from attractor.datasets import planted_reviews
from attractor.datasets._planted_reviews import PlantedPart
from attractor.models import ClassificationData, Examples, TextTransformer, TextTransformerConfig
from attractor.papers.mirror_descent.classifiers.task import ClassifierTask, Schedule
from attractor.papers.mirror_descent.classifiers.weights import measure_weights
from attractor.papers.mirror_descent.text.attended_words import attended_words


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTask(ClassifierTask):
    """A text task.

    Attributes:
        telling: Where words that tell the class stand in the texts to test with.
    """

    telling: Bool[np.ndarray, "n token"]

    @property
    def arrays(self) -> dict[str, Any]:
        """Everything that results depend on, by name."""
        return super().arrays | {"telling": self.telling}

    @property
    def frequencies(self) -> Float[np.ndarray, "vocabulary"]:
        """How often each token occurs in the texts trained on."""
        train = self.data.train
        real = train.inputs if train.mask is None else train.inputs[train.mask]
        vocabulary = int(max(real.max() + 1, getattr(self.config, "vocabulary", 0)))
        return np.bincount(real.ravel(), minlength=vocabulary).astype(np.float64)

    def measure(self, model: TextTransformer) -> xr.Dataset:
        """Where the read-out looks on texts to test with, and how sparse the weights are."""
        test = self.data.test
        assert test is not None
        mask = np.ones(test.inputs.shape, bool) if test.mask is None else test.mask
        looked = attended_words(model, test.inputs, mask, self.telling, self.frequencies)
        attention = {
            "attention": ("block", looked.attention),
            "attention_by_frequency": ("block", looked.by_frequency),
            "attention_by_chance": looked.chance,
            "rescaled_attention": looked.rescaled,
        }
        return measure_weights(model).assign(attention)


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
    return TextTask(data, config, schedule, telling=reviews.test.planted)


def _examples(part: PlantedPart) -> Examples:
    return Examples(part.ids, part.labels, part.mask)

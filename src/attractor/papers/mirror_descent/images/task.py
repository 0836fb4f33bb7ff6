"""Images with a class, for a vision transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from attractor.datasets import (
    Images,
    channel_statistics,
    load_images,
    normalize_images,
    split_images,
)
from attractor.models import (
    ClassificationData,
    Examples,
    VisionTransformer,
    VisionTransformerConfig,
)
from attractor.papers.mirror_descent.classifiers.task import ClassifierTask, Schedule
from attractor.papers.mirror_descent.classifiers.weights import measure_weights

_LEVELS = 16
"""The largest value of a pixel of scikit-learn's digits."""


@dataclass(frozen=True, eq=False)
class ImageTask(ClassifierTask):
    """An image task."""

    def measure(self, model: VisionTransformer) -> xr.Dataset:
        """How large and how sparse the weights are."""
        return measure_weights(model)


def image_task(
    schedule: Schedule,
    images: Images,
    *,
    sizes: dict[str, int],
    seed: int = 0,
    **model: Any,
) -> ImageTask:
    """Images, normalized by the mean and the deviation of those to train on.

    Args:
        schedule: How long and how often to train.
        images: The images.
        sizes: How many to train on, to choose by and to test with.
        seed: Of the split.
        model: What the config of the model has otherwise than the published sizes, but for what
            the images decide.

    Raises:
        InvalidInputError: If there are too few images.
    """
    parts = split_images(images, **sizes, seed=seed)
    statistics = channel_statistics(parts.train.pixels)

    def examples(part: Images) -> Examples:
        return Examples(np.asarray(normalize_images(part.pixels, *statistics)), part.labels)

    data = ClassificationData(
        *(examples(part) for part in (parts.train, parts.validation, parts.test)),
        settings=parts.settings,
    )
    config = VisionTransformerConfig(
        image=images.pixels.shape[1:3],
        channels=images.pixels.shape[3],
        classes=len(images.classes),
        **model,
    )
    return ImageTask(data, config, schedule)


def small_digits() -> Images:
    """The 1,797 digits of 8 x 8 pixels that scikit-learn brings along."""
    from sklearn.datasets import load_digits

    flat, labels = load_digits(return_X_y=True)
    shades = np.asarray(flat, dtype=np.float64).reshape(-1, 8, 8, 1)
    pixels = np.round(shades * (255 / _LEVELS)).astype(np.uint8)
    classes = tuple(str(digit) for digit in range(10))
    settings = {"source": "scikit-learn, load_digits", "images": len(pixels)}
    return Images(pixels, np.asarray(labels, np.int32), classes, None, settings)


def images_of(name: str) -> Images:
    """The images of a size: "digits" or "MNIST"."""
    return small_digits() if name == "digits" else load_images()

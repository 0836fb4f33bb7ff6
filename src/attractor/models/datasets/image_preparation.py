"""Preparation of images for a network: resizing, random crops and flips, normalization."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Integer, Key, Shaped, UInt8

from attractor.support.checks import check_count, check_flags
from attractor.support.errors import InvalidInputError
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

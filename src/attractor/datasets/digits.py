"""Handwritten digits as attention problems: each image is a sequence of patches."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.attention import LinearHead
from attractor.support.checks import check_count, check_items, is_whole
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import generator
from attractor.tokens import Tokens

IMAGE = 8
"""Pixels along one side of an image."""
PATCH = 2
"""Pixels along one side of a patch."""
GRID = IMAGE // PATCH
"""Patches along one side of an image."""
QUERY_PATCH = 10
"""The patch whose vector is the query: row 2, column 2 (from 0), just right of and below center."""
_BRIGHTEST = 16


@dataclasses.dataclass(frozen=True)
class DigitPatches:
    """Data sets of images of one pair of digits, as sequences of patches.

    Attributes:
        tokens: One instance per data set, ``n`` sequences of 16 patches in R^8.
        head: A logistic probe on the mean patch, the same for every data set.
        images: The images, with brightness from 0 to 1.
        digits: The two digits; the first has label -1, the second +1.
        probe_accuracy: Fraction of all images of the two digits that the head gets right when
            every patch is attended to equally.
    """

    tokens: Tokens
    head: LinearHead
    images: Float[np.ndarray, "instances n 8 8"]
    digits: tuple[int, int]
    probe_accuracy: float


def digit_patches(
    n: int, instances: int, *, digits: tuple[int, int] = (3, 8), seed: int = 0
) -> DigitPatches:
    """Draws data sets of handwritten digits, cut into patches.

    The images are scikit-learn's bundled 8x8 digits (UCI, Alpaydin and Kaynak 1998). A data set
    holds ``n`` images, half of each digit, drawn without replacement. A patch is 2x2 pixels minus
    the mean brightness, joined with ``(sin, cos)`` of its row and column angle, scaled to unit
    norm: without the code all blank patches would be the same token. The query of a sequence is
    its own patch near the center; of the four such patches each gives other fractions of feasible
    data sets and of patches kept, and none is privileged. The head is a logistic regression on
    the mean patch, fitted once to all images of the two digits: fitted to the few images of a
    data set it would be mostly noise, and data sets of different sizes would be answered by
    different heads.

    Args:
        n: Images in a data set, an even number.
        instances: Number of data sets.
        digits: Two different digits.
        seed: Names the draw; data set ``i`` is the same whatever ``instances`` is.

    Raises:
        InvalidInputError: If there are not enough images, or an argument is no such number.
    """
    from sklearn.datasets import load_digits

    digits = tuple(check_items("digits", digits, int | np.integer))
    instances = check_count("instances", instances, 1, 10**7)
    bundled: Any = load_digits()
    if len(set(digits)) != 2 or not set(digits) <= set(range(10)):
        raise InvalidInputError("digits", f"got {digits}", "Give two different digits from 0 to 9")
    of_digit = [np.flatnonzero(bundled.target == digit) for digit in digits]
    most = 2 * min(len(places) for places in of_digit)
    if not is_whole(n) or not 0 < n <= most or n % 2:
        raise InvalidInputError("n", f"got {n}", f"Give an even number from 2 to {most}")
    brightness = bundled.images / _BRIGHTEST
    patches = patch_vectors(brightness, float(brightness.mean()))
    head, accuracy = _probe(patches, of_digit)
    drawn = np.stack([_draw(of_digit, n, seed, instance) for instance in range(instances)])
    keys = patches[drawn]
    labels = np.where(bundled.target[drawn] == digits[1], 1.0, -1.0)
    tokens = Tokens.self_attention(keys, labels, query_position=QUERY_PATCH)
    return DigitPatches(tokens, head, brightness[drawn], digits, accuracy)


def patch_vectors(
    images: Float[np.ndarray, "*batch 8 8"], mean: float
) -> Float[np.ndarray, "*batch 16 8"]:
    """Cuts images into 2x2 patches, adds the code of their place, scales to unit norm."""
    lead = images.shape[:-2]
    blocks = images.reshape(*lead, GRID, PATCH, GRID, PATCH).swapaxes(-3, -2)
    pixels = blocks.reshape(*lead, GRID**2, PATCH**2) - mean
    angles = 2 * np.pi / GRID * np.stack(np.divmod(np.arange(GRID**2), GRID), axis=-1)
    code = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(GRID**2, 4)
    vectors = np.concatenate([pixels, np.broadcast_to(code, pixels.shape)], axis=-1)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _probe(
    patches: Float[np.ndarray, "images 16 8"], of_digit: list[Int[np.ndarray, "_"]]
) -> tuple[LinearHead, float]:
    """Fits the head to the mean patch of every image of the two digits."""
    from sklearn.linear_model import LogisticRegression

    means = np.concatenate([patches[places].mean(axis=1) for places in of_digit])
    labels = np.repeat([-1.0, 1.0], [len(places) for places in of_digit])
    # The layer's head is linear without a bias, so the probe is too.
    probe = LogisticRegression(fit_intercept=False).fit(means, labels)
    return LinearHead(probe.coef_[0]), float(probe.score(means, labels))


def _draw(of_digit: list[Int[np.ndarray, "_"]], n: int, seed: int, instance: int) -> np.ndarray:
    """Chooses the images of one data set: half of the first digit, half of the second."""
    random = generator(seed, n, instance, purpose="digit images")
    return np.concatenate([random.choice(places, n // 2, replace=False) for places in of_digit])

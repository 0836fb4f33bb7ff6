import jax
import numpy as np
import pytest

from attractor.models.datasets.images import (
    augment_images,
    channel_statistics,
    normalize_images,
    resize_images,
)
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)


def test_normalized_training_images_have_mean_zero_and_unit_variance(pixels):
    mean, deviation = channel_statistics(pixels)
    np.testing.assert_allclose(mean, (pixels / 255).mean(axis=(0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(deviation, (pixels / 255).std(axis=(0, 1, 2)), rtol=1e-6)
    normalized = np.asarray(normalize_images(pixels, mean, deviation))
    np.testing.assert_allclose(normalized.mean(axis=(0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(normalized.std(axis=(0, 1, 2)), 1, rtol=1e-5)


def test_refuses_images_without_contrast():
    for wrong in np.zeros((2, 4, 4, 1), np.uint8), np.zeros((0, 4, 4, 1), np.uint8):
        with pytest.raises(InvalidInputError, match=r"^pixels:"):
            channel_statistics(wrong)


def test_resizing_interpolates_between_centers(pixels):
    centers = (np.arange(12) + 0.5) * 8 / 12 - 0.5
    expected = pixels.astype(float)
    for axis in (1, 2):
        expected = np.apply_along_axis(
            lambda line: np.interp(centers, np.arange(8), line), axis, expected
        )
    np.testing.assert_allclose(resize_images(pixels, 12), expected, rtol=1e-4, atol=1e-3)


def test_every_image_is_a_crop_of_itself_perhaps_mirrored(pixels):
    changed = np.asarray(augment_images(jax.random.key(0), pixels, size=None, padding=2))
    around = np.pad(pixels, ((0, 0), (2, 2), (2, 2), (0, 0)))
    places = set()
    for image, wide in zip(changed, around, strict=True):
        found = [
            (row, column, flipped)
            for row in range(5)
            for column in range(5)
            for flipped, one in enumerate((image, image[:, ::-1]))
            if np.array_equal(one, wide[row : row + 8, column : column + 8])
        ]
        assert len(found) == 1
        places |= set(found)
    assert [{place[axis] for place in places} for axis in range(3)] == [
        set(range(5)),
        set(range(5)),
        {0, 1},
    ]


def test_crops_come_before_resizing(pixels):
    key = jax.random.key(1)
    cropped = augment_images(key, pixels, size=None, padding=2, flip=False)
    resized = augment_images(key, pixels, size=12, padding=2, flip=False)
    np.testing.assert_allclose(resized, resize_images(cropped, 12))
    assert resized.shape == (40, 12, 12, 3)


def test_same_key_same_images_traced_or_not(pixels):
    def make(key):
        return augment_images(key, pixels, size=12)

    one, again = make(jax.random.key(2)), jax.jit(make)(jax.random.key(2))
    np.testing.assert_allclose(one, again, rtol=1e-6, atol=1e-4)
    assert not np.allclose(one, make(jax.random.key(3)))

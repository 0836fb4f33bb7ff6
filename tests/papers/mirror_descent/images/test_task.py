"""Images as a task for classifiers."""

import numpy as np
import pytest

from attractor.datasets import Images
from attractor.models import build_model
from attractor.papers.mirror_descent.classifiers.task import Schedule
from attractor.papers.mirror_descent.images.task import image_task, images_of, small_digits

SCHEDULE = Schedule(1, None, 3)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (60, 4, 6, 2), dtype=np.uint8)
    return Images(pixels, np.arange(60, dtype=np.int32) % 3, ("a", "b", "c"), None, {})


def test_is_normalized_by_the_images_to_train_on(images):
    task = image_task(
        SCHEDULE, images, sizes={"train": 30, "validation": 12, "test": 18},
        patch=2, width=4, blocks=2, heads=2, hidden=4,
    )  # fmt: skip
    train = task.data.train.inputs
    assert train.shape == (30, 4, 6, 2)
    np.testing.assert_allclose(train.mean((0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(train.std((0, 1, 2)), 1, rtol=1e-5)
    assert abs(task.data.test.inputs.mean()) > 1e-6  # by the others' statistics
    assert (task.config.image, task.config.channels, task.config.classes) == ((4, 6), 2, 3)
    measured = task.measure(build_model(task.config))
    assert measured["hoyer"].sizes == {"matrix": 3, "block": 2}
    np.testing.assert_allclose(measured["share_of_weights"].sum("bin"), 1)


def test_the_digits_of_scikit_learn_are_images():
    digits = small_digits()
    assert digits.pixels.shape == (1797, 8, 8, 1)
    assert digits.pixels.max() == 255
    assert images_of("digits").labels.tolist()[:10] == list(range(10))

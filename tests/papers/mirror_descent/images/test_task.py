"""Images as a task for classifiers."""

import jax
import numpy as np
import pytest
import xarray as xr

from attractor.models import build_model
from attractor.models.datasets import Images, image_files
from attractor.papers.mirror_descent.classifiers.contenders import CONTENDERS
from attractor.papers.mirror_descent.classifiers.experiment import trained
from attractor.papers.mirror_descent.classifiers.task import Schedule
from attractor.papers.mirror_descent.images.task import image_task, images_of, small_digits

SCHEDULE = Schedule(1, None, 3)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (60, 4, 6, 1), dtype=np.uint8)
    return Images(pixels, np.arange(60, dtype=np.int32) % 3, ("a", "b", "c"), None, {})


def test_is_normalized_by_the_images_to_train_on(images):
    task = image_task(
        SCHEDULE, images, sizes={"train": 30, "validation": 12, "test": 18},
        patch=2, width=4, blocks=2, heads=2, hidden=4,
    )  # fmt: skip
    train = task.data.train.inputs
    assert train.shape == (30, 4, 6, 1)
    np.testing.assert_allclose(train.mean((0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(train.std((0, 1, 2)), 1, rtol=1e-5)
    assert abs(task.data.test.inputs.mean()) > 1e-6  # by the others' statistics
    assert (task.config.image, task.config.channels, task.config.classes) == ((4, 6), 1, 3)
    measured = task.measure(build_model(task.config))
    assert measured["hoyer"].sizes == {"matrix": 3, "block": 2}
    np.testing.assert_allclose(measured["share_of_weights"].sum("bin"), 1)


def test_images_in_color_are_made_ready_while_they_are_trained_on():
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    colored = Images(pixels, np.arange(40, dtype=np.int32) % 2, ("a", "b"), None, {})
    task = image_task(
        Schedule(1, None, 3, batch=10), colored, sizes={"train": 20, "validation": 10, "test": 10},
        patch=8, width=4, blocks=1, heads=2, hidden=4,
    )  # fmt: skip
    train = task.data.train.inputs
    assert train.dtype == np.uint8 and task.config.image == (48, 48)
    ready = np.asarray(task.prepare(train))
    assert ready.shape == (20, 48, 48, 3)
    np.testing.assert_allclose(ready.mean((0, 1, 2)), 0, atol=0.01)
    one, other = (np.asarray(task.augment(jax.random.key(seed), train)) for seed in (0, 1))
    assert one.shape == ready.shape and not np.array_equal(one, other)
    # To look for a learning rate would compile another program, for data without a test split.
    rates = xr.Dataset({"tried_rate": ("try", [0.01]), "tried_accuracy": ("try", [0.5])})
    found, _ = trained(
        CONTENDERS["Adam"], task, seed=0, seeds=1, same_start=False, place=None,
        advance=lambda count: None, searched=rates,
    )  # fmt: skip
    assert found["test_accuracy"].notnull().all()


def test_cifar_is_found_in_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(image_files, "IMAGES", 3)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    rng = np.random.default_rng(2)
    for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
        records = rng.integers(0, 256, (3, 3073), dtype=np.uint8)
        records[:, 0] = [0, 5, 9]
        (folder / name).write_bytes(records.tobytes())
    names = "airplane automobile bird cat deer dog frog horse ship truck".split()
    (folder / "batches.meta.txt").write_text("\n".join(names) + "\n")
    images = images_of("MNIST", tmp_path)
    assert len(images) == 18 and images.splits.count("test") == 3
    assert images_of("digits", folder).pixels.shape == (18, 32, 32, 3)


def test_the_digits_of_scikit_learn_are_images():
    digits = small_digits()
    assert digits.pixels.shape == (1797, 8, 8, 1)
    assert digits.pixels.max() == 255
    assert images_of("digits").labels.tolist()[:10] == list(range(10))

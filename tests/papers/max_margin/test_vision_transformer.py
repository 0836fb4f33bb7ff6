"""The figure of a vision transformer whose attention gets sparse."""

import numpy as np
import pytest

from attractor.models.datasets import Images
from attractor.papers import Request, get_figure
from attractor.papers.max_margin.figures import vision_transformer

FIGURE = get_figure("max-margin/vision-transformer")
SIZES = {"train": 102, "validation": 12, "test": 30}


def computed(monkeypatch, pixels, patch):
    """Three epochs on squares of one of three shades, or of three colors."""
    count = len(pixels)
    images = Images(pixels, np.arange(count, dtype=np.int32) % 3, ("a", "b", "c"), None, {})
    monkeypatch.setattr(vision_transformer, "images_of", lambda name, source: images)
    model = {"patch": patch, "width": 8, "blocks": 2, "heads": 2, "hidden": 8}
    settings = {"images": "squares", "split": SIZES, "seeds": 2, "epochs": 4, "model": model}
    request = Request("quick", settings | {"learning_rate": 0.02})
    return FIGURE.compute(request)


@pytest.fixture(scope="module")
def gray():
    with pytest.MonkeyPatch.context() as patch:
        shades = np.array([0, 110, 220])[np.arange(144) % 3]
        noise = np.random.default_rng(0).integers(0, 30, (144, 4, 6, 1))
        return computed(patch, (shades[:, None, None, None] + noise).astype("u1"), 2)


def test_attention_is_measured_epoch_by_epoch(gray):
    assert gray["epoch"].values.tolist() == [0, 1, 2, 4]
    assert gray["class_map"].sizes == {"epoch": 4, "image": 3, "row": 2, "column": 3}
    shares = gray["class_map"].sum(["row", "column"])
    assert ((shares > 0) & (shares < 1)).all()  # the rest is on the class token
    assert ((gray["effective_support"] > 1 / 7) & (gray["effective_support"] <= 1)).all()
    assert sorted(gray["true_class"].values.tolist()) == ["a", "b", "c"]


def test_epoch_zero_is_the_initial_model_and_later_ones_move_on(gray):
    at_first, later = gray["norm"].sel(epoch=0), gray["norm"].sel(epoch=[1, 2, 4])
    # W_Q and W_K are uniform up to 1 / sqrt(width), so that the mean of ||W||_F^2 is 1 / 9.
    np.testing.assert_allclose(at_first.mean(), 1 / 3, rtol=0.25)
    moved = np.abs(later - at_first).mean(["seed", "block"])
    assert (moved.diff("epoch") > 0).all() and (moved > 1e-3).all()


def test_it_is_drawn_with_a_map_for_each_epoch_shown(gray):
    figure = FIGURE.draw(gray)
    titles = [axes.get_title() for axes in figure.axes]
    assert {"image", "epoch 0", "epoch 1", "epoch 2", "epoch 4"} <= set(titles)
    assert {reading.text for reading in FIGURE.readings(gray)}
    assert "squares" in FIGURE.caption(gray)


@pytest.mark.slow
def test_images_in_color_are_drawn_in_color(monkeypatch):
    pixels = np.random.default_rng(1).integers(0, 30, (144, 32, 32, 3), dtype="u1")
    pixels[np.arange(144), :, :, np.arange(144) % 3] = 255
    data = computed(monkeypatch, pixels, 16)
    assert data["pixels"].sizes["channel"] == 3
    assert data["class_map"].sizes["row"] == 3  # resized to 48 x 48, as published
    FIGURE.draw(data)


@pytest.mark.parametrize(
    ("shape", "patch"), [((32, 32, 3), 6), ((28, 28, 1), 4), ((8, 8, 1), 1), ((12, 20, 1), 4)]
)
def test_images_of_the_user_are_cut_into_a_few_patches(shape, patch):
    images = Images(np.zeros((1, *shape), dtype="u1"), np.zeros(1, np.int32), ("a",), None, {})
    assert vision_transformer._patch(images) == patch

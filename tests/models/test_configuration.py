import dataclasses
import json
import math

import jax
import pytest

from attractor.models import TextTransformerConfig, VisionTransformerConfig
from attractor.models.transformers import model_shapes
from attractor.support.errors import InvalidInputError

from .conftest import TEXT, VISION


def parameter_count(config):
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(model_shapes(config)))


@pytest.mark.parametrize(("blocks", "count"), [(3, 17228160), (4, 18998400), (6, 22538880)])
def test_published_text_models_have_the_published_number_of_parameters(blocks, count):
    assert parameter_count(TextTransformerConfig(blocks=blocks, heads=blocks)) == count


def test_the_published_vision_model_has_the_published_number_of_parameters():
    assert parameter_count(VisionTransformerConfig()) == 9564682


@pytest.mark.parametrize("config", [TEXT, VISION])
def test_json_restores_a_config(config):
    assert type(config).from_json(config.to_json()) == config
    assert hash(type(config).from_json(config.to_json())) == hash(config)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocabulary", 0),
        ("length", 2.5),
        ("width", True),
        ("blocks", 10**9),
        ("heads", 3),
        ("hidden", "4"),
        ("dropout", 1.0),
        ("dropout", float("nan")),
        ("classes", 1),
        ("normalization", "batch"),
        ("read_out", "last"),
    ],
)
def test_refuses_values_that_cannot_be_used(name, value):
    with pytest.raises(InvalidInputError, match=f"^{name}: "):
        dataclasses.replace(TEXT, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("image", (4, 5)), ("image", 4), ("patch", 4), ("embedding_dropout", -0.1)],
)
def test_refuses_images_that_cannot_be_cut(name, value):
    with pytest.raises(InvalidInputError):
        dataclasses.replace(VISION, **{name: value})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"model": "VisionTransformer"}',
        '{"model": "TextTransformer", "a": 1}',
    ],
)
def test_refuses_text_that_is_no_config(text):
    with pytest.raises(InvalidInputError):
        TextTransformerConfig.from_json(text)


def test_json_says_what_is_built():
    assert json.loads(VISION.to_json())["image"] == [4, 6]

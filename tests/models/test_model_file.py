import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attractor.models import load_model, save_model
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.precision import double_precision

from .conftest import TEXT, VISION, widened


@pytest.mark.parametrize("wide", [False, True])
def test_a_model_is_read_back_bit_for_bit(text, vision, tmp_path, wide):
    for name, model in (("text", text), ("vision", vision)):
        model = widened(model) if wide else model
        file = tmp_path / f"{name}.safetensors"
        save_model(file, model)
        found = load_model(file)
        assert found.config == model.config
        with double_precision():
            assert jax.tree.structure(found) == jax.tree.structure(model)
            same = jax.tree.map(
                lambda a, b: a.dtype == b.dtype and np.array_equal(a, b), found, model
            )
            assert all(jax.tree.leaves(same))


def test_weights_have_names(text, tmp_path):
    file = tmp_path / "model.safetensors"
    save_model(file, text)
    arrays = load_file(file)
    np.testing.assert_array_equal(arrays["blocks.1.attention.keys"], text.blocks[1].attention.keys)


def test_only_models_are_saved(tmp_path):
    with pytest.raises(InvalidInputError, match="model"):
        save_model(tmp_path / "model.safetensors", {"weights": np.ones(3)})
    assert not list(tmp_path.iterdir())


def damaged(arrays, metadata):
    name = "blocks.0.attention.queries"
    yield "no metadata", arrays, None
    yield "another format", arrays, metadata | {"format": "attractor head 1"}
    yield "no config", arrays, {"format": metadata["format"]}
    yield "another model", arrays, metadata | {"config": VISION.to_json()}
    yield "a huge model", arrays, metadata | {"config": TEXT.to_json().replace("20", str(10**7))}
    yield "bad config", arrays, metadata | {"config": '{"model": ["TextTransformer"]}'}
    yield "a missing weight", {k: v for k, v in arrays.items() if k != name}, metadata
    yield "another weight", arrays | {"more": np.ones(2, np.float32)}, metadata
    yield "another shape", arrays | {name: np.ones((8, 4), np.float32)}, metadata
    yield "half precision", {k: v.astype(np.float16) for k, v in arrays.items()}, metadata
    yield "mixed", arrays | {name: arrays[name].astype(np.float64)}, metadata


def test_refuses_other_files(text, tmp_path):
    good = tmp_path / "model.safetensors"
    save_model(good, text)
    arrays = load_file(good)
    metadata = {"format": "attractor model 1", "config": text.config.to_json()}
    file = tmp_path / "other.safetensors"
    for what, weights, words in damaged(arrays, metadata):
        save_file(weights, file, metadata=words)
        with pytest.raises(FileFormatError, match=r"other\.safetensors: no model"):
            load_model(file)
            pytest.fail(what)
    file.write_bytes(good.read_bytes()[:-10])
    for path in (file, tmp_path / "absent.safetensors", tmp_path):
        with pytest.raises(FileFormatError, match="no model"):
            load_model(path)

"""Models from a folder: what is read, and what is never."""

import json
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import Letters, letters, small  # noqa: E402 - after the skip

from attractor.heads.capture import capture_heads  # noqa: E402
from attractor.support.errors import InvalidInputError  # noqa: E402

TEXTS = letters()


@pytest.fixture
def folder(tmp_path):
    small("Llama", "ForCausalLM").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def changed(folder, **settings):
    configuration = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(configuration | settings))


def as_bin(folder, weights):
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")


def assert_same(one, other):
    for number, layer in one:
        np.testing.assert_array_equal(layer.keys, other.layer(number).keys)
        np.testing.assert_array_equal(layer.attention, other.layer(number).attention)


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_a_folder_is_the_model_that_was_saved_in_it(folder, kind):
    model = small("Llama", "ForCausalLM")
    if kind == "bin":
        as_bin(folder, model.state_dict())
    found = capture_heads(str(folder), Letters(), TEXTS)
    own = capture_heads(model, Letters(), TEXTS)
    assert_same(found, own)
    assert found.origin == own.origin


def test_half_precision_in_a_folder_becomes_single(folder, tmp_path):
    small("Llama", "ForCausalLM").bfloat16().save_pretrained(tmp_path / "half")
    layer = capture_heads(tmp_path / "half", Letters(), TEXTS).layer(0)
    assert layer.keys.dtype == np.float32 and layer.self_check.max() < 1e-6


class Runs:
    def __reduce__(self):
        return print, ("code of a file was run",)


def test_a_pickle_is_not_run(folder, capsys):
    as_bin(folder, {})
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Runs()))
    with pytest.raises(InvalidInputError, match=r"model: the folder .* cannot be loaded"):
        capture_heads(folder, Letters(), TEXTS)
    with (folder / "pytorch_model.bin").open("wb") as file:
        torch.save({"model.norm.weight": Runs()}, file)
    with pytest.raises(InvalidInputError, match=r"model: the folder .* cannot be loaded"):
        capture_heads(folder, Letters(), TEXTS)
    assert "code of a file" not in capsys.readouterr().out


def test_code_of_a_folder_is_not_run(folder, capsys):
    (folder / "modeling_own.py").write_text("print('code of a folder was run')\n")
    names = {"AutoConfig": "modeling_own.Own", "AutoModel": "modeling_own.Own"}
    changed(folder, auto_map=names, model_type="own", architectures=["Own"])
    with pytest.raises(InvalidInputError, match=r"model: the folder .* cannot be loaded"):
        capture_heads(folder, Letters(), TEXTS)
    assert "code of a folder" not in capsys.readouterr().out


def test_what_a_folder_says_of_code_to_load_does_not_matter_where_none_is_needed(folder, capsys):
    (folder / "modeling_own.py").write_text("print('code of a folder was run')\n")
    names = {"AutoConfig": "modeling_own.Own", "AutoModelForCausalLM": "modeling_own.Own"}
    kernels = dict.fromkeys(("attn_implementation", "_attn_implementation"), "somebody/kernels")
    own = capture_heads(folder, Letters(), TEXTS)
    changed(folder, auto_map=names, **kernels)
    assert_same(capture_heads(folder, Letters(), TEXTS), own)
    assert "code of a folder" not in capsys.readouterr().out


def test_missing_weights(folder):
    weights = small("Llama", "ForCausalLM").state_dict()
    as_bin(folder, {name: one for name, one in weights.items() if "k_proj" not in name})
    with pytest.raises(InvalidInputError, match=r"lacks weights: .*layers\.0\.self_attn\.k_proj"):
        capture_heads(folder, Letters(), TEXTS)
    as_bin_names = {f"bert.{name}": one for name, one in weights.items()}
    torch.save(as_bin_names, folder / "pytorch_model.bin")
    with pytest.raises(InvalidInputError, match=r"lacks weights: .* and \d+ more"):
        capture_heads(folder, Letters(), TEXTS)


def test_weights_of_other_shapes(folder):
    changed(folder, intermediate_size=44)
    with pytest.raises(InvalidInputError, match=r"model: the folder .* cannot be loaded"):
        capture_heads(folder, Letters(), TEXTS)


def test_weights_cut_short(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-100])
    with pytest.raises(InvalidInputError, match=r"model: the folder .* cannot be loaded"):
        capture_heads(folder, Letters(), TEXTS)


def test_no_tokenizer_in_the_folder(folder):
    with pytest.raises(InvalidInputError, match=r"^tokenizer: "):
        capture_heads(folder, None, TEXTS)


def test_folders_that_hold_no_model(tmp_path):
    with pytest.raises(InvalidInputError, match=r"has no config\.json"):
        capture_heads(tmp_path, Letters(), TEXTS)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InvalidInputError, match="cannot be loaded"):
        capture_heads(tmp_path, Letters(), TEXTS)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InvalidInputError, match="cannot be loaded"):
        capture_heads(tmp_path, Letters(), TEXTS)


def test_nothing_is_loaded_where_an_argument_is_wrong(folder, monkeypatch):
    def fail(*given):
        raise AssertionError

    monkeypatch.setattr("attractor.heads.capture._capture_heads.load_model", fail)
    for wrong in ({"texts": ["a"]}, {"path": folder}, {"batch": 0}, {"layers": ["a"]}):
        with pytest.raises(InvalidInputError):
            capture_heads(folder, Letters(), **{"texts": TEXTS} | wrong)

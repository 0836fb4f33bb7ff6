"""Heads of single attention modules of transformers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from scipy.special import softmax  # noqa: E402 - after the skips
from tiny_models import Letters, letters, small  # noqa: E402

from attractor.heads import HeadMonitor, WatchedHead, watched_heads  # noqa: E402
from attractor.support.errors import InvalidInputError  # noqa: E402
from attractor.tokens import Tokens  # noqa: E402

IDS = torch.randint(3, 50, (3, 12), generator=torch.Generator().manual_seed(0))
MASK = torch.ones_like(IDS)
MASK[1, 9:] = 0
THERE = MASK.bool().numpy()


def run(model):
    return model(input_ids=IDS, attention_mask=MASK)


def module_of(family, model):
    """The attention module of the last layer."""
    if family == "Bert":
        return model.encoder.layer[1].attention.self
    return model.h[1].attn if family == "GPT2" else model.layers[1].self_attn


@pytest.mark.parametrize("family", ["Bert", "GPT2", "Llama"])
def test_attention_is_that_of_the_model(family):
    model = small(family)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model(input_ids=IDS, attention_mask=MASK, output_attentions=True).attentions[1]
    model.set_attn_implementation("sdpa")
    for number in (0, 3):
        head = WatchedHead.from_module("h", module_of(family, model), number, run)
        read = head.reading(model)
        tokens = Tokens(
            **dict(zip(("keys", "queries", "mask", "rows"), head.tokens(read), strict=False))
        )
        W = head.read_matrix(read, tokens)
        found = softmax(tokens.scores(W), axis=-1)
        expected = own[:, number].numpy()[THERE]
        if family == "Llama":  # positions rotate keys: a sequence for each query
            np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)
        else:
            np.testing.assert_array_equal(tokens.weights > 0, THERE)
            np.testing.assert_allclose(found[THERE], expected, atol=1e-6)
            assert W.shape == (8, 9)  # 8 is the width of a head, and one for the bias
            cut = Tokens(tokens.keys, tokens.queries[..., :-1], mask=tokens.mask)
            without = softmax(cut.scores(W[:, :-1]), axis=-1)
            assert np.abs(without[THERE] - expected).max() > 0.005


@pytest.mark.parametrize("family", ["Bert", "Llama"])
def test_norms_are_those_of_heads_watched_on_texts(family):
    model, texts = small(family), letters(4)
    (other,) = watched_heads(model, Letters(), texts, heads=[(1, 2)])
    one = WatchedHead.from_module("from module", module_of(family, model), 2, run)
    monitor = HeadMonitor([other, one])
    monitor.record(0, model)
    found = monitor.to_xarray().isel(step=0)
    assert (found["status"] == "optimal").all()
    for name in ("frobenius_norm", "nuclear_norm"):
        first, second = found[name].values
        assert first == pytest.approx(second, rel=1e-5)


def test_a_module_around_the_one_that_attends_and_what_diverges():
    model = small("Bert")
    monitor = HeadMonitor(WatchedHead.from_module("h", model.encoder.layer[0], 1, run), every=1)
    monitor.record(0, model)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.fill_(torch.nan)
    monitor.record(1, model)
    assert [one.status for one in monitor.records["h"]] == ["optimal", "not finite"]


@pytest.mark.parametrize(
    ("family", "module", "words"),
    [
        ("Bert", lambda model: model.encoder, "module: BertEncoder called attention 2 times"),
        (
            "Bert",
            lambda model: model.bfloat16().encoder.layer[0],
            "module: its weights are bfloat16",
        ),
        ("Bloom", lambda model: model.h[0].self_attention, "more than k|called attention 0 times"),
        ("Albert", lambda model: model.encoder.albert_layer_groups[0], "run: it called .* 2 times"),
    ],
)
def test_what_cannot_be_read_is_refused(family, module, words):
    model = small(family)
    head = WatchedHead.from_module("h", module(model), 0, run)
    with pytest.raises(InvalidInputError, match=words):
        HeadMonitor(head).check(model)

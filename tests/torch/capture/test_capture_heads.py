"""Heads captured from tiny models of every family, against what the models say themselves."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import FAMILIES, Letters, letters, small  # noqa: E402 - after the skip

from attractor.heads import CaptureStatus, load_captured  # noqa: E402
from attractor.heads.capture import capture_heads  # noqa: E402
from attractor.heads.capture.calls import calls_of  # noqa: E402
from attractor.support.errors import AttractorError, InvalidInputError  # noqa: E402

BILINEAR, UNKNOWN = CaptureStatus.BILINEAR, CaptureStatus.FRAME_UNKNOWN
UNROTATED = {"Bert", "Roberta", "Electra", "Albert", "DistilBert", "GPT2", "OPT"}
PICTURES = ("ViT", "Dinov2", "CLIPVision")
ENCODER_DECODER = ("Bart", "T5")
UNSEEN = ("XLNet", "DebertaV2", "Bloom", "Falcon")
TEXTS = letters()


def own_attention(model, ids, **arguments):
    """The attention of a model, as it says itself, of every layer."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        found = model(torch.tensor([ids]), output_attentions=True, **arguments)
    model.set_attn_implementation(before)
    return found


def encoded(text):
    return Letters()([text], True, 64)["input_ids"][0]


def check_queries(captured, attentions_of):
    """Finds every query, bit by bit, in what the model says on its text alone."""
    for place, position in enumerate(captured.position):
        attentions = attentions_of(encoded(TEXTS[captured.document[place]]))
        assert len(attentions) == len(captured.layers)
        for number, layer in captured:
            own = attentions[number][0, :, position].numpy()
            size = own.shape[1]
            np.testing.assert_array_equal(layer.attention[place, :, :size], own)
            assert (layer.attention[place, :, size:] == 0).all()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family(family):
    model = small(family)
    captured = capture_heads(model, Letters(), TEXTS, batch=1)
    check_queries(captured, lambda ids: own_attention(model, ids).attentions)
    frames = json.loads(captured.origin["frame"])
    assert frames == (["none"] * 2 if family in UNROTATED else ["query"] * 2)
    for _, layer in captured:
        assert set(layer.status) == {BILINEAR}
        assert layer.self_check.max() < 1e-6
        assert layer.keys.dtype == np.float32
        content = layer.allowed & ~captured.special
        assert (content.sum(-1) >= 4).all()
        assert not captured.special[np.arange(len(TEXTS)), captured.position].any()


@pytest.mark.parametrize(
    "family", ["Bert", "GPT2", "Llama", "Gemma2", "GptOss", "DeepseekV3", "T5"]
)
def test_outputs_are_those_of_eager_attention_bit_by_bit(family):
    model = small(family)
    before = model.config._attn_implementation
    ids = torch.tensor([encoded(text)[:7] for text in TEXTS])
    given = {"decoder_input_ids": ids} if family == "T5" else {}
    seen = []
    model.train()
    with calls_of(model, seen.append):
        under = model(ids, **given).last_hidden_state
    assert model.training and model.config._attn_implementation == before
    assert all(module.training for module in model.modules())
    model.eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        found = model(ids, output_attentions=True, **given)
    assert torch.equal(under, found.last_hidden_state)
    attentions = found.attentions if family != "T5" else found.encoder_attentions
    for call, own in zip(seen, attentions, strict=False):
        assert torch.equal(call.weights, own)


@pytest.mark.parametrize("family", ["Llama", "GPTNeoX", "DeepseekV3", "GptOss", "Qwen3"])
def test_a_pairing_in_the_frame_does_not_see_where_a_text_lies(family):
    """And after the rotations of the model it does, so that the frame is needed."""
    model = small(family)
    rng = np.random.default_rng(1)
    count = len(encoded(TEXTS[0]))

    def pairings(shift):
        ids = torch.tensor([encoded(text)[:7] for text in TEXTS])
        positions = torch.arange(shift, shift + 7)[None].expand(len(ids), -1)
        given = {"input_ids": ids.numpy(), "position_ids": positions.numpy()}
        captured = capture_heads(model, inputs=given, layers=[1])
        layer = captured.layer(1)
        raw = []
        with calls_of(model, raw.append):
            model(ids, position_ids=positions)
        calls = raw[1]
        place = np.arange(len(ids)), slice(None), captured.position
        return layer, calls.key.numpy(), calls.query.numpy()[place] * calls.scaling

    (here, key, query), (there, moved_key, moved_query) = pairings(0), pairings(5)
    pairing = np.linalg.qr(rng.normal(size=(here.keys.shape[-1],) * 2))[0]
    group = here.heads // here.keys.shape[1]

    def scores(keys, queries):
        return np.einsum("qhtw,wv,qhv->qht", np.repeat(keys, group, 1), pairing, queries)

    spread = scores(here.keys, here.queries).std()
    change = scores(here.keys, here.queries) - scores(there.keys, there.queries)
    assert np.abs(change).max() < 1e-4 * spread
    raw_change = scores(key, query) - scores(moved_key, moved_query)
    assert np.abs(raw_change).max() > 0.1 * spread
    assert count > 7


@pytest.mark.parametrize("family", ["Llama", "Phi"])
def test_a_rotation_that_is_not_undone_is_said(family, monkeypatch):
    model = small(family)
    file = sys.modules[type(model).__module__]
    rotate = file.apply_rotary_pos_emb

    def slower(q, k, cos, sin, unsqueeze_dim=1):
        """Called by the model, it rotates; called to undo that, by another angle."""
        return rotate(q, k, cos, sin.abs() if (sin < 0).any() else sin, unsqueeze_dim)

    monkeypatch.setattr(file, "apply_rotary_pos_emb", slower)
    captured = capture_heads(model, Letters(), TEXTS)
    assert json.loads(captured.origin["frame"]) == ["unknown"] * 2
    for _, layer in captured:
        assert set(layer.status) == {UNKNOWN} and layer.self_check.max() < 1e-6


def test_layers_without_positions_beside_others_are_not_rotated():
    captured = capture_heads(small("SmolLM3", no_rope_layers=[1, 0]), Letters(), TEXTS)
    assert json.loads(captured.origin["frame"]) == ["query", "none"]


def test_heads_with_a_bias_by_position_are_not_bilinear():
    captured = capture_heads(small("T5"), Letters(), TEXTS)
    for _, layer in captured:
        assert set(layer.status) == {CaptureStatus.NOT_BILINEAR}
        assert (layer.self_check > 1e-2).all()


@pytest.mark.parametrize("family", ENCODER_DECODER)
@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_parts_of_an_encoder_decoder(family, part):
    model = small(family)
    captured = capture_heads(model, Letters(), TEXTS, part=part, batch=1)
    name = {"encoder": "encoder_attentions", "decoder": "decoder_attentions"}
    start = model.config.decoder_start_token_id

    def attentions(ids):
        late = torch.tensor([[start, *ids[:-1]]])
        found = own_attention(model, ids, decoder_input_ids=late)
        return found[name.get(part, "cross_attentions")]

    check_queries(captured, attentions)
    sees = [Letters().convert_ids_to_tokens(one) for one in encoded(TEXTS[0])]
    late = ["", *sees[:-1]]
    assert captured.token[0].tolist()[: len(sees)] == (late if part == "decoder" else sees)
    if part == "cross" or family == "Bart":
        assert all(set(layer.status) == {BILINEAR} for _, layer in captured)


@pytest.mark.parametrize("family", PICTURES)
def test_pictures(family):
    model = small(family)
    pictures = np.random.default_rng(0).normal(size=(5, 3, 16, 16))
    pictures[4] = pictures[1]
    captured = capture_heads(model, inputs={"pixel_values": pictures}, sink_positions=1)
    assert captured.document.tolist() == [0, 1, 2, 3]  # equal ones count once
    model.set_attn_implementation("eager")
    given = torch.tensor(pictures[:4], dtype=torch.float32)
    with torch.no_grad():
        found = model(given, output_attentions=True).attentions
    for number, layer in captured:
        own = found[number].numpy()[np.arange(4), :, captured.position]
        np.testing.assert_allclose(layer.attention, own, atol=1e-6)
        assert set(layer.status) == {BILINEAR}
    assert captured.special[:, 0].all() and not captured.special[:, 1:].any()


@pytest.mark.parametrize("family", UNSEEN)
def test_models_that_do_not_call_it(family):
    with pytest.raises(InvalidInputError, match="0 times through transformers' interface"):
        capture_heads(small(family), Letters(), TEXTS)


def test_a_model_is_as_it_was_after_an_exception():
    model = small("Llama")
    before = model.config._attn_implementation
    hooks = sum(len(one._forward_pre_hooks) for one in model.modules())
    with pytest.raises(KeyError), calls_of(model, lambda call: {}["nothing"]):
        model(torch.tensor([[1, 5, 6]]))
    assert model.config._attn_implementation == before
    assert sum(len(one._forward_pre_hooks) for one in model.modules()) == hooks
    assert len(capture_heads(model, Letters(), TEXTS).layers) == 2


def test_one_capture_at_a_time():
    model = small("Bert")
    with (
        calls_of(model, lambda call: None),
        pytest.raises(AttractorError, match="Another capture of heads is under way"),
    ):
        capture_heads(model, Letters(), TEXTS)


def test_a_query_does_not_depend_on_the_batch_nor_on_other_texts():
    model = small("Mistral")
    whole = capture_heads(model, Letters(), TEXTS, batch=8)
    other = capture_heads(model, Letters(), TEXTS, batch=3)
    few = capture_heads(model, Letters(), TEXTS[:4], layers=[1])
    assert whole.position.tolist() == other.position.tolist()
    assert whole.position.tolist()[:4] == few.position.tolist()
    for number in whole.layers:
        for name in ("queries", "keys", "attention", "values"):
            one, two = getattr(whole.layer(number), name), getattr(other.layer(number), name)
            np.testing.assert_allclose(one, two, atol=2e-5)
    assert len(set(capture_heads(model, Letters(), TEXTS, seed=1).position)) > 1
    assert (
        capture_heads(model, Letters(), TEXTS, seed=1).position.tolist() != whole.position.tolist()
    )


def test_narrow_windows_of_one_layer_bind_the_draw_of_all(monkeypatch):
    """In a window of four tokens the fourth token of content is the first with four to choose."""
    model = small("Gemma2", sliding_window=4, layer_types=["full_attention", "sliding_attention"])
    texts = letters(30)
    captured = capture_heads(model, Letters(), texts)
    for _, layer in captured:
        assert ((layer.allowed & ~captured.special).sum(-1) >= 4).all()
    full, sliding = captured.layer(0), captured.layer(1)
    assert sliding.allowed.sum(-1).max() == 4 < full.allowed.sum(-1).max()
    monkeypatch.setattr("attractor.heads.capture.rows.LEAST_CANDIDATES", 5)
    with pytest.raises(InvalidInputError, match="no token of content has"):
        capture_heads(model, Letters(), texts)


def test_files_hold_the_same_and_are_read_a_layer_at_a_time(tmp_path):
    model = small("Llama")
    held = capture_heads(model, Letters(), TEXTS, queries_per_document=2)
    written = capture_heads(
        model, Letters(), TEXTS, queries_per_document=2, path=tmp_path / "a.nc", values=False
    )
    for found in (written, load_captured(tmp_path / "a.nc")):
        assert found.origin == held.origin and found.layers == held.layers
        for name in ("document", "position", "token", "special"):
            np.testing.assert_array_equal(getattr(found, name), getattr(held, name))
        for number, layer in found:
            own = held.layer(number)
            for name in ("queries", "keys", "allowed", "attention", "self_check"):
                np.testing.assert_array_equal(getattr(layer, name), getattr(own, name))
            assert layer.values is None and own.values is not None and layer.status == own.status


def test_documents_of_several_texts_and_equal_texts():
    texts = [
        ("b", "abcdefgh"),
        ("a", "ijklmnop"),
        ("b", "qrstuvwx"),
        ("c", "abcdefgh"),
        ("a", "cab"),
    ]
    captured = capture_heads(small("Bert"), Letters(), texts, queries_per_document=2)
    assert captured.document.tolist() == [0, 0, 1, 1]
    ours = {"".join(one for one in row if len(one) == 1) for row in captured.token}
    assert ours == {"abcdefgh", "qrstuvwx", "ijklmnop"}


def test_double_precision_stays(tmp_path):
    captured = capture_heads(small("Llama").double(), Letters(), TEXTS, path=tmp_path / "a.nc")
    assert captured.layer(0).keys.dtype == np.float64
    assert captured.layer(1).self_check.max() < 1e-6  # as softmax is in single precision


GOOD = {"texts": TEXTS}


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"model": "bert-base-uncased"}, "model: there is no folder .*nothing is downloaded"),
        ({"model": 3}, "model: 3 is no model of transformers"),
        ({"texts": None}, "texts: give either texts or inputs"),
        ({"texts": "one text"}, "texts: .*is no sequence"),
        ({"texts": ["abcdefg", 3]}, r"texts\[1\]: 3 is not str"),
        ({"texts": [("a", "abcdefg"), "b"]}, r"texts\[1\]: 'b' is no text, nor a pair"),
        ({"texts": ["abcdefg"]}, "texts: one document of distinct texts is given"),
        ({"texts": ["abcdefg"] * 5}, "texts: one document of distinct texts is given"),
        ({"texts": ["ab", "cd", "ce"]}, "texts: no document is long enough"),
        ({"texts": [("a", "abcdefg"), ("a", "bcdefgh")]}, "texts: one document"),
        ({"tokenizer": None}, "tokenizer: None is no tokenizer"),
        ({"layers": [2]}, "layers: there is no layer 2. Give some of 0 to 1"),
        ({"layers": []}, "layers: it has 0 items"),
        ({"layers": [-1]}, "layers: -1 is not a count"),
        ({"part": "decoder"}, "part: BertModel has no parts"),
        ({"part": "middle"}, "part: 'middle' is not known"),
        ({"part": "cross"}, "never as heads on the tokens of a text"),
        ({"path": "a.npz"}, r"path: a.npz does not end in .nc"),
        ({"length": 0}, "length: 0 is not a count"),
        ({"documents": 1}, "documents: 1 is not a count"),
        ({"inputs": {}, "texts": None}, "inputs: .* is no table of arrays"),
        ({"inputs": {"a": [[1, 2]], "b": [[1], [1]]}, "texts": None}, "inputs: they have"),
    ],
)  # fmt: skip
def test_what_cannot_be_captured_is_refused(arguments, words):
    given = {"model": small("Bert"), "tokenizer": Letters(), "texts": TEXTS} | arguments
    with pytest.raises(InvalidInputError, match=words):
        capture_heads(**given)


def test_transformers_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers.masking_utils", None)
    with pytest.raises(InvalidInputError, match=r'Install "attractor\[transformers\]"'):
        capture_heads(small("Bert"), Letters(), TEXTS)


def test_half_precision_is_refused():
    with pytest.raises(InvalidInputError, match=r"bfloat16, too coarse .*model.float\(\)"):
        capture_heads(small("Bert").bfloat16(), Letters(), TEXTS)


def test_a_model_that_computes_no_numbers_is_named():
    model = small("Llama")
    model.layers[1].self_attn.k_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(InvalidInputError, match=r"model: the entry at .* is nan"):
        capture_heads(model, Letters(), TEXTS)


def test_another_thread_is_not_captured():
    """It runs a model that is switched, and gets what the model always gives."""
    model, seen = small("Llama"), []
    ids = torch.tensor([encoded(TEXTS[0])])
    with torch.no_grad():
        model.set_attn_implementation("eager")
        expected = model(ids).last_hidden_state
    with calls_of(model, seen.append), ThreadPoolExecutor(1) as threads:
        found = threads.submit(lambda: model(ids).last_hidden_state.detach()).result()
    assert torch.equal(found, expected) and not seen


def test_a_model_that_fails_is_named():
    with pytest.raises(InvalidInputError, match="model: BertModel raised IndexError"):
        capture_heads(small("Bert", vocab_size=10), Letters(), TEXTS)

"""The matrices of queries and keys, found without names, against the models' own weights."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import FAMILIES, Letters, letters, small  # noqa: E402 - after the skip

from attractor.heads import CaptureStatus, load_captured  # noqa: E402
from attractor.heads.capture import capture_heads  # noqa: E402
from attractor.heads.captured.rows import trained_matrix  # noqa: E402

TEXTS = letters()
BOTH = {"Albert", "Bert", "DistilBert", "Electra", "GPT2", "OPT", "Roberta"}
"""Families whose keys and queries are linear functions of what a layer reads."""
NEITHER = {"DeepseekV3", "Gemma3Text", "Qwen3"}
"""Those that norm queries, or make them of few numbers; in all others positions rotate keys."""
WITHOUT_BIAS = {"Cohere", "Gemma2", "Llama", "Mistral", "ModernBert"}


def check_scores(layer, tolerance):
    """Scores of trained matrices are those of keys and queries as captured."""
    for head in range(layer.heads):
        tokens, W = trained_matrix(layer, head)
        found = np.einsum("ntd,de,ne->nt", tokens.keys, W, tokens.queries[:, 0])
        keys = layer.keys[:, layer.key_head(head)].astype(float)
        scores = np.einsum("ntw,nw->nt", keys, layer.queries[:, head].astype(float))
        np.testing.assert_allclose(found, scores, rtol=0, atol=tolerance * np.abs(scores).max())


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family(family):
    for _, layer in capture_heads(small(family), Letters(), TEXTS, batch=3):
        made = layer.projections
        assert (made is None) == (family in NEITHER)
        check_scores(layer, 1e-6)
        if made is not None:
            assert (made.key is not None) == (family in BOTH)
            assert (made.bias is None) == (family in WITHOUT_BIAS)
            assert made.query.dtype == np.float32


def attention_weights(model, family):
    """Weights and biases of queries and keys of every layer, by the names of the family."""
    if family == "Bert":
        for block in model.encoder.layer:
            own = block.attention.self
            yield own.query.weight, own.query.bias, own.key.weight
    elif family == "GPT2":
        for block in model.h:
            weight, bias = block.attn.c_attn.weight, block.attn.c_attn.bias
            yield weight[:, :32].T, bias[:32], weight[:, 32:64].T
    elif family == "GPTNeoX":  # of each head queries, keys and values
        for block in model.layers:
            own = block.attention.query_key_value
            weight, bias = own.weight.reshape(4, 3, 8, 32), own.bias.reshape(4, 3, 8)
            yield weight[:, 0], bias[:, 0], weight[:, 1]
    else:
        for block in model.layers:
            own = block.self_attn
            yield own.q_proj.weight, own.q_proj.bias, own.k_proj.weight


@pytest.mark.parametrize("family", ["Bert", "GPT2", "GPTNeoX", "Llama", "Qwen2", "SmolLM3"])
def test_matrices_are_the_weights(family):
    settings = {"no_rope_layers": [1, 0]} if family == "SmolLM3" else {}
    model = small(family, **settings).double()
    before = copy.deepcopy(model.state_dict())
    captured = capture_heads(model, Letters(), TEXTS)
    whole = {"Bert": (0, 1), "GPT2": (0, 1), "SmolLM3": (1,)}.get(family, ())
    for number, (query, bias, key) in enumerate(attention_weights(model, family)):
        layer = captured.layer(number)
        made, scale = layer.projections, 8**-0.5
        query, key = query.detach().reshape(4, 8, 32), key.detach().reshape(-1, 8, 32)
        np.testing.assert_allclose(made.query, scale * query, rtol=1e-12, atol=1e-15)
        if bias is None:
            assert made.bias is None
        else:
            bias = scale * bias.detach().reshape(4, 8).numpy()
            np.testing.assert_allclose(made.bias, bias, rtol=1e-12, atol=1e-15)
        check_scores(layer, 1e-12)
        assert (made.key is None) == (number not in whole)
        if number not in whole:
            continue
        np.testing.assert_allclose(made.key, key, rtol=1e-12, atol=1e-15)
        for head in range(4):
            right = scale * query[head].numpy()
            if bias is not None:
                right = np.concatenate([right, bias[head][:, None]], -1)
            matrix = key[layer.key_head(head)].numpy().T @ right
            singular = np.linalg.svd(matrix, compute_uv=False)
            _, W = trained_matrix(layer, head)
            found = np.linalg.svd(W, compute_uv=False)
            np.testing.assert_allclose(found, singular[: len(found)], rtol=1e-12)
    for name, one in model.state_dict().items():
        assert torch.equal(one, before[name])
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


@pytest.mark.parametrize("family", ["Llama", "Phi"])
def test_queries_in_the_frame_are_those_before_rotation_in_double_precision(family):
    """Cosines and sines are single in any model, and so not quite on the unit circle."""
    model, seen = small(family).double(), []
    model.layers[1].self_attn.q_proj.register_forward_hook(lambda *call: seen.append(call[-1]))
    captured = capture_heads(model, Letters(), TEXTS)
    made = seen[-1][np.arange(len(TEXTS)), captured.position].reshape(-1, 4, 8).numpy()
    np.testing.assert_allclose(captured.layer(1).queries, 8**-0.5 * made, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("family", ["Bart", "T5"])
def test_parts_of_an_encoder_decoder(family, part):
    """Keys of cross-attention are made of what the encoder says."""
    model = small(family)
    captured = capture_heads(model, Letters(), TEXTS, part=part)
    for number, layer in captured:
        assert layer.projections.query.shape == layer.projections.key.shape == (4, 8, 32)
        assert (layer.projections.bias is None) == (family == "T5")
        check_scores(layer, 1e-6)
        if part == "cross" and family == "Bart":
            key = model.decoder.layers[number].encoder_attn.k_proj.weight.detach()
            np.testing.assert_allclose(layer.projections.key.reshape(32, 32), key, rtol=1e-6)


@pytest.mark.parametrize("family", ["ViT", "Dinov2", "CLIPVision"])
def test_pictures(family):
    pictures = np.random.default_rng(0).normal(size=(5, 3, 16, 16))
    for _, layer in capture_heads(small(family), inputs={"pixel_values": pictures}):
        assert layer.projections.key is not None and layer.projections.bias is not None
        check_scores(layer, 1e-6)


def test_queries_that_the_module_scales():
    """Whisper multiplies its queries itself, and attention scales them no more."""
    settings = dict(
        vocab_size=60, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, num_mel_bins=8,
        max_source_positions=20, max_target_positions=20, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    model = transformers.WhisperModel(transformers.WhisperConfig(**settings)).eval().double()
    sounds = np.random.default_rng(0).normal(size=(3, 8, 40))
    made = capture_heads(model, inputs={"input_features": sounds}).layer(0).projections
    own = model.encoder.layers[0].self_attn
    scaled = 8**-0.5 * own.q_proj.weight.detach().numpy().reshape(4, 8, 32)
    np.testing.assert_allclose(made.query, scaled, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(made.key.reshape(32, 32), own.k_proj.weight.detach(), rtol=1e-12)


class Adapted(torch.nn.Module):
    """A linear map with another of low rank beside it, as adapters have it."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down = torch.nn.Linear(32, 2, bias=False)
        self.up = torch.nn.Linear(2, 32, bias=False)

    def forward(self, hidden):
        return self.base(hidden) + self.up(self.down(hidden))


@pytest.mark.parametrize("rank", [0, 2])
def test_adapters(rank):
    """One that adds nothing yet counts, too: it is what is trained."""
    model = small("Bert")
    own = model.encoder.layer[1].attention.self
    own.query = Adapted(own.query)
    torch.nn.init.normal_(own.query.up.weight, std=float(rank))
    made = capture_heads(model, Letters(), TEXTS).layer(1).projections
    weight = (own.query.base.weight + own.query.up.weight @ own.query.down.weight).detach()
    np.testing.assert_allclose(made.query.reshape(32, 32), 8**-0.5 * weight, atol=1e-6)


class Clipped(torch.nn.Linear):
    """Clips the one largest number of what it gives."""

    def forward(self, hidden):
        made = super().forward(hidden)
        return made.clamp(max=0.9 * float(made.max())) if len(hidden) > 1 else made


@pytest.mark.parametrize("name", ["query", "key"])
def test_what_is_nearly_linear_has_no_matrix(name):
    model = small("Bert")
    own = model.encoder.layer[0].attention.self
    clipped = Clipped(32, 32)
    clipped.load_state_dict(getattr(own, name).state_dict())
    setattr(own, name, clipped)
    layer = capture_heads(model, Letters(), TEXTS).layer(0)
    assert set(layer.status) == {CaptureStatus.BILINEAR}
    if name == "query":
        assert layer.projections is None
    else:
        assert layer.projections.query is not None and layer.projections.key is None


def test_heads_without_weights_and_biases_of_zero():
    """A bias that is zero is there: training moves it."""
    model = small("Bert")
    own = model.encoder.layer[0].attention.self
    with torch.no_grad():
        own.query.weight[8:16] = own.query.bias[:] = 0
    made = capture_heads(model, Letters(), TEXTS).layer(0).projections
    assert not made.query[1].any() and made.query[0].any() and made.key is not None
    np.testing.assert_array_equal(made.bias, np.zeros((4, 8)))


def test_hooks_of_others_see_texts_alone():
    model, seen = small("Bert"), []
    model.encoder.layer[0].attention.self.query.register_forward_hook(
        lambda module, given, made: seen.append(made.shape)
    )
    capture_heads(model, Letters(), TEXTS)
    longest = max(map(len, TEXTS)) + 2
    assert seen and set(seen) <= {(1, longest, 32), (len(TEXTS), longest, 32)}


def test_files_hold_them(tmp_path):
    model = small("Llama")
    held = capture_heads(model, Letters(), TEXTS, batch=3)
    capture_heads(model, Letters(), TEXTS, batch=3, path=tmp_path / "a.nc", layers=[1])
    layer = load_captured(tmp_path / "a.nc").layer(1)
    np.testing.assert_array_equal(layer.projections.query, held.layer(1).projections.query)
    assert layer.projections.key is None and layer.projections.bias is None

"""Tiny models of transformers with random weights, of every family that is captured."""

import importlib

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

VOCABULARY = 60
WIDTHS = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
    vocab_size=VOCABULARY, max_position_embeddings=64, pad_token_id=0, bos_token_id=1,
    eos_token_id=2,
)  # fmt: skip
GROUPED = WIDTHS | {"num_key_value_heads": 2}
"""Sizes of models of text; of those with fewer key heads than heads."""
FIRST = 3
"""The first token that is a letter."""


class Letters:
    """A tokenizer of letters, which starts with 1 and ends with 2."""

    all_special_ids = (0, 1, 2)
    pad_token_id, cls_token_id, sep_token_id, unk_token_id = 0, 1, 2, None

    def __call__(self, texts, truncation, max_length):
        ids = [[FIRST + (ord(one) - 97) % 50 for one in text][: max_length - 2] for text in texts]
        return {"input_ids": [[1, *own, 2] for own in ids]}

    def convert_ids_to_tokens(self, number):
        return chr(94 + number) if number >= FIRST else f"[{number}]"


def letters(count=8, seed=0, least=6, most=12):
    """Texts of letters."""
    rng = np.random.default_rng(seed)
    return [
        "".join(map(chr, rng.integers(97, 123, size))) for size in rng.integers(least, most, count)
    ]


PICTURES = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
    image_size=16, patch_size=4,
)  # fmt: skip
HYBRID = {"num_hidden_layers": 6}
"""Of layers 2 and 5 alone have heads."""
WINDOWED = GROUPED | {"head_dim": 8, "sliding_window": 5}
FAMILIES = {
    "Albert": WIDTHS | {"embedding_size": 16},
    "Bert": WIDTHS,
    "Cohere": GROUPED,
    "DeepseekV3": WIDTHS | dict(
        num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8,
        qk_nope_head_dim=8, v_head_dim=8, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
        topk_group=1, moe_intermediate_size=16, first_k_dense_replace=1, n_shared_experts=1,
    ),
    "DistilBert": dict(
        vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=40,
        max_position_embeddings=64,
    ),
    "Electra": WIDTHS | {"embedding_size": 32},
    "GPT2": dict(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1,
        eos_token_id=2,
    ),
    "GPTNeoX": WIDTHS | {"rotary_pct": 0.5},
    "Gemma2": WINDOWED | {"attn_logit_softcapping": 1.0},
    "Gemma3Text": WINDOWED,
    "GptOss": WINDOWED | dict(num_local_experts=2, num_experts_per_tok=1),
    "Llama": GROUPED,
    "Mistral": WINDOWED,
    "ModernBert": WIDTHS | dict(
        local_attention=8, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2
    ),
    "OPT": dict(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        ffn_dim=40, max_position_embeddings=64, word_embed_proj_dim=32, pad_token_id=0,
    ),
    "Phi": WIDTHS,
    "Qwen2": GROUPED,
    "Qwen3": GROUPED | {"head_dim": 8},
    "Roberta": WIDTHS,
}  # fmt: skip
"""Settings of the families of which every head is bilinear."""
OTHERS = {
    "Bart": dict(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=40,
        decoder_ffn_dim=40, max_position_embeddings=64, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=2,
    ),
    "Bloom": dict(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4),
    "CLIPVision": PICTURES,
    "DebertaV2": WIDTHS,
    "Dinov2": PICTURES,
    "Falcon": WIDTHS,
    "Jamba": GROUPED | HYBRID | dict(
        attn_layer_period=3, attn_layer_offset=2, use_mamba_kernels=False, num_experts=2,
        num_experts_per_tok=1, mamba_d_state=4, mamba_dt_rank=4,
    ),
    "Lfm2": GROUPED | HYBRID | dict(
        layer_types=["conv", "conv", "full_attention", "conv", "conv", "full_attention"]
    ),
    "Qwen3Next": GROUPED | HYBRID | dict(
        head_dim=8, layer_types=["linear_attention", "linear_attention", "full_attention"] * 2,
        num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16,
        shared_expert_intermediate_size=16, linear_num_key_heads=2, linear_num_value_heads=2,
        linear_key_head_dim=8, linear_value_head_dim=8,
    ),
    "SmolLM3": GROUPED,
    "T5": dict(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4,
        pad_token_id=0, eos_token_id=2, decoder_start_token_id=0,
    ),
    "ViT": PICTURES,
    "XLNet": dict(vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=40),
}  # fmt: skip

FOLLOWS_LATER = {"ModernBert": "modernbert.modeling_modernbert", "T5": "t5.modeling_t5"}
"""Files of families that follow the attention interface in later versions only."""


def small(family, kind="Model", **settings):
    """A model whose scores are far from zero, of a family of transformers."""
    if family in FOLLOWS_LATER:
        file = importlib.import_module(f"transformers.models.{FOLLOWS_LATER[family]}")
        if not hasattr(file, "ALL_ATTENTION_FUNCTIONS"):
            pytest.skip(f"transformers {transformers.__version__} has another attention for it")
    settings = (FAMILIES | OTHERS)[family] | settings
    configuration = getattr(transformers, f"{family}Config")(**settings)
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}{kind}")._from_config(configuration)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()

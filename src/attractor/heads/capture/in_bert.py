"""Heads loaded into a model of transformers, to be captured as those of any model are."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float

from attractor.heads import Captured
from attractor.heads.capture._capture_heads import capture_heads


def captured_in_bert(
    states: Float[np.ndarray, "n T hidden"],
    K: Float[np.ndarray, "heads width hidden"],
    Q: Float[np.ndarray, "heads width hidden"],
) -> Captured:
    """Heads on given hidden states, in the only layer of a BERT.

    Args:
        states: Hidden states of mean zero and variance one, which layer norms leave as they are.
        K: Matrices of keys; heads times width are the hidden size.
        Q: Matrices of queries: scores are ``(K x)^T (Q z)``.
    """
    from transformers import BertConfig, BertModel

    heads, width, hidden = K.shape
    config = BertConfig(
        vocab_size=1, hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=1,
        intermediate_size=1, max_position_embeddings=states.shape[1], type_vocab_size=1,
        layer_norm_eps=0.0, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=None,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).double().eval()
    attention = model.encoder.layer[0].attention.self
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
        model.embeddings.token_type_embeddings.weight.zero_()
        for projection, given in ((attention.key, K), (attention.query, Q * np.sqrt(width))):
            projection.weight.copy_(torch.from_numpy(given.reshape(-1, hidden)))
            projection.register_parameter("bias", None)  # which was not trained
    return capture_heads(model, inputs={"inputs_embeds": torch.from_numpy(states)}, values=False)

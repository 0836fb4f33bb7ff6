"""How often an audit finds something in heads of random weights.

Two hundred models of five architectures, never trained, see real English, sentences of Python's
docstrings, through anisotropic embeddings; each is captured and audited. A calibrated null
rejects no more heads, and models for all heads together, than its level allows. The last column is
of margin ratios against the draws of their own. Run as ``python -m benchmarks.audit_calibration``,
with the extra ``transformers``; twenty minutes.
"""

from __future__ import annotations

import collections
import sys
from typing import Any

import numpy as np
import torch
import transformers

import attractor as at
from attractor.heads import Null
from attractor.heads.capture import capture_heads
from attractor.support.progress import progress_bar
from benchmarks.audit_turned_heads import share

MODELS, DRAWS, ALPHA = 200, 39, 0.05
DOCUMENTS, LENGTH, VOCABULARY, HIDDEN, HEADS = 260, 20, 400, 48, 4

_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY, "num_hidden_layers": 2, "hidden_size": HIDDEN,
    "num_attention_heads": HEADS, "intermediate_size": 2 * HIDDEN, "pad_token_id": None,
}  # fmt: skip
_GROUPED = _SIZES | {"num_key_value_heads": 2, "head_dim": HIDDEN // HEADS}
CONFIGS = {
    "BERT": transformers.BertConfig(**_SIZES | {"pad_token_id": 0}),
    "GPT-2": transformers.GPT2Config(vocab_size=VOCABULARY, n_layer=2, n_embd=HIDDEN, n_head=HEADS),
    "GPT-NeoX (rotary)": transformers.GPTNeoXConfig(**_SIZES),
    "Llama (rotary, grouped)": transformers.LlamaConfig(**_GROUPED),
    "Qwen3 (rotary, grouped, normed)": transformers.Qwen3Config(**_GROUPED),
}


def words() -> np.ndarray:
    """Numbers of the words of long sentences, ``(documents, length)``; 1 for a rare word."""
    sentences = at.datasets.docstring_sentences()
    long = [one[:LENGTH] for one in sentences if len(one) >= LENGTH]
    chosen = np.random.default_rng(0).permutation(len(long))[:DOCUMENTS]
    counted = collections.Counter(word for one in sentences for word in one)
    known = {word: at for at, (word, _) in enumerate(counted.most_common(VOCABULARY - 2), 2)}
    return np.array([[known.get(word, 1) for word in long[one]] for one in chosen])


def untrained(name: str, seed: int) -> Any:
    """A model of random weights whose embeddings have a mean and a spectrum that decays."""
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(CONFIGS[name]).eval()
    embedding = model.get_input_embeddings().weight
    with torch.no_grad():
        spectrum = torch.logspace(0, -1.5, HIDDEN)
        embedding.normal_().mul_(spectrum).add_(0.5 * torch.randn(HIDDEN) * spectrum)
    return model


def main() -> None:
    """Prints the table."""
    shown = torch.from_numpy(words())
    inputs = {"input_ids": shown, "attention_mask": torch.ones_like(shown)}
    heads: dict[str, list[np.ndarray]] = {name: [] for name in CONFIGS}
    models: dict[str, list[np.ndarray]] = {name: [] for name in CONFIGS}
    with progress_bar("models", MODELS, lines_every=30) as advance:
        for seed in range(MODELS):
            name = list(CONFIGS)[seed % len(CONFIGS)]
            captured = capture_heads(untrained(name, seed), inputs=inputs, values=False, seed=seed)
            data = at.audit_heads(
                captured, draws=DRAWS, alpha=ALPHA, training_texts=True, norms=[], seed=seed
            ).data
            alone = np.append(data["p"].to_numpy(), data["margin_p"].to_numpy()[..., None], -1)
            heads[name].append(alone.reshape(-1, len(Null) + 1) <= ALPHA)
            together = [*data["p_together"].transpose("null", ...), data["margin_p_together"]]
            models[name].append(np.array([[bool((one <= ALPHA).any()) for one in together]]))
            advance(1)
    print(f"{MODELS} models, {DRAWS} draws, alpha {ALPHA}; 95 % intervals in brackets", end="\n\n")
    for rejected, what in ((heads, "heads"), (models, "models, all heads together")):
        print(f"| {what} | of | " + " | ".join(null.value for null in Null) + " | margin |")
        print("| --- | --- |" + " --- |" * (len(Null) + 1))
        everything = [one for found in rejected.values() for one in found]
        for name, found in (*rejected.items(), ("all", everything)):
            flags = np.concatenate(found)
            counts = [share(int(column.sum()), len(flags)) for column in flags.T]
            print(f"| {name} | {len(flags)} | " + " | ".join(counts) + " |")
        print()


if __name__ == "__main__":
    sys.exit(main())

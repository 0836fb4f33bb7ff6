"""What a corpus file of arrays may hold."""

from __future__ import annotations

CORPUS_LAYOUT = {
    "sentences": ("(n, L)", "integers: token numbers, -1 after the end; every prefix is a sample"),
    "contexts": ("(n, T)", "in place of sentences: a context a row, -1 in front or at the end"),
    "labels": ("(n,)", "with contexts, integers: the token after each"),
    "counts": ("(n,)", "optional: how often each sentence or context counts"),
    "vocabulary": ("(V,)", "optional, texts: the name of every token number"),
    "embeddings": ("(V, d)", "optional: the vector of every token; else one-hot"),
    "context_length": ("()", "optional, an integer: only so many last tokens are the context"),
}
"""What a corpus file of arrays may hold: for each entry its shape and what it means.

The texts of ``vocabulary`` are an array of texts in ``.npz``, and a JSON list of texts in the
metadata of ``.safetensors``.
"""

MARKS = ("sentences", "contexts")
"""The arrays that tell a corpus from token sequences."""

PADDING = -1
"""Stands where a row has no token."""

CORPUS_TEXTS = ("vocabulary",)
"""The entries that lie in the metadata of ``.safetensors``."""

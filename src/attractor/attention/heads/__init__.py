"""Heads: the function that turns what attention returns into a prediction."""

from attractor.attention.heads.head import Head
from attractor.attention.heads.module import ModuleHead
from attractor.attention.heads.named import (
    ConcaveHead,
    LinearHead,
    ReLUHead,
    ValueMatrix,
    VocabularyHead,
    as_head,
    head_from_arrays,
    is_linear,
)

__all__ = [
    "ConcaveHead",
    "Head",
    "LinearHead",
    "ModuleHead",
    "ReLUHead",
    "ValueMatrix",
    "VocabularyHead",
    "as_head",
    "head_from_arrays",
    "is_linear",
]

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
from attractor.attention.heads.prediction_heads import PredictionHeads

__all__ = [
    "ConcaveHead",
    "Head",
    "LinearHead",
    "ModuleHead",
    "PredictionHeads",
    "ReLUHead",
    "ValueMatrix",
    "VocabularyHead",
    "as_head",
    "head_from_arrays",
    "is_linear",
]

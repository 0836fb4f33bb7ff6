"""Heads: the function that turns what attention returns into a prediction."""

from attractor.attention.heads.concave import ConcaveHead
from attractor.attention.heads.head import Head
from attractor.attention.heads.linear import LinearHead
from attractor.attention.heads.module import ModuleHead
from attractor.attention.heads.names import as_head, head_from_arrays
from attractor.attention.heads.relu import ReLUHead
from attractor.attention.heads.value_matrix import ValueMatrix
from attractor.attention.heads.vocabulary import VocabularyHead

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
]

"""Parameterizations: which numbers are trained, and the effective matrix they stand for."""

from attractor.attention.parameterization.attention_matrix import AttentionMatrix
from attractor.attention.parameterization.contract import Parameterization, Parameters
from attractor.attention.parameterization.joint import Joint
from attractor.attention.parameterization.key_query import KeyQuery, KeyQueryFactors
from attractor.attention.parameterization.names import get_parameterization
from attractor.attention.parameterization.prompt_vector import PromptVector

__all__ = [
    "AttentionMatrix",
    "Joint",
    "KeyQuery",
    "KeyQueryFactors",
    "Parameterization",
    "Parameters",
    "PromptVector",
    "get_parameterization",
]

"""Attention: the exact kernel, heads, losses, parameterizations, scaled gradients."""

from attractor.attention._scaled_gradient import ScaledGradient, mean_loss, scaled_gradient
from attractor.attention.heads import (
    ConcaveHead,
    Head,
    LinearHead,
    ModuleHead,
    PredictionHeads,
    ReLUHead,
    ValueMatrix,
    VocabularyHead,
)
from attractor.attention.losses import (
    CrossEntropy,
    Exponential,
    Linear,
    Logistic,
    Loss,
    NegativeLog,
    Squared,
    UserLoss,
    get_loss,
)
from attractor.attention.multi_head import AttentionHeads, MultiHead, get_parameterization
from attractor.attention.parameterization import (
    AttentionMatrix,
    Joint,
    KeyQuery,
    KeyQueryFactors,
    Parameterization,
    Parameters,
    PromptVector,
)
from attractor.attention.rows import Rows, attention_rows
from attractor.attention.scaled import Scaled
from attractor.attention.softmax import SoftmaxRow, row_cotangent, softmax_attention, softmax_row

__all__ = [
    "AttentionHeads",
    "AttentionMatrix",
    "ConcaveHead",
    "CrossEntropy",
    "Exponential",
    "Head",
    "Joint",
    "KeyQuery",
    "KeyQueryFactors",
    "Linear",
    "LinearHead",
    "Logistic",
    "Loss",
    "ModuleHead",
    "MultiHead",
    "NegativeLog",
    "Parameterization",
    "Parameters",
    "PredictionHeads",
    "PromptVector",
    "ReLUHead",
    "Rows",
    "Scaled",
    "ScaledGradient",
    "SoftmaxRow",
    "Squared",
    "UserLoss",
    "ValueMatrix",
    "VocabularyHead",
    "attention_rows",
    "get_loss",
    "get_parameterization",
    "mean_loss",
    "row_cotangent",
    "scaled_gradient",
    "softmax_attention",
    "softmax_row",
]

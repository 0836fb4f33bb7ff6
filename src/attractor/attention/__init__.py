"""The attention room: the exact kernel, heads, losses, parameterizations, scaled gradients."""

from attractor.attention.heads import Head, LinearHead
from attractor.attention.losses import Exponential, Linear, Logistic, Loss, get_loss
from attractor.attention.parameterization import (
    AttentionMatrix,
    Parameterization,
    get_parameterization,
)
from attractor.attention.rows import Rows, attention_rows
from attractor.attention.scaled import Scaled
from attractor.attention.scaled_gradient import ScaledGradient, mean_loss, scaled_gradient
from attractor.attention.softmax import SoftmaxRow, row_cotangent, softmax_attention, softmax_row

__all__ = [
    "AttentionMatrix",
    "Exponential",
    "Head",
    "Linear",
    "LinearHead",
    "Logistic",
    "Loss",
    "Parameterization",
    "Rows",
    "Scaled",
    "ScaledGradient",
    "SoftmaxRow",
    "attention_rows",
    "get_loss",
    "get_parameterization",
    "mean_loss",
    "row_cotangent",
    "scaled_gradient",
    "softmax_attention",
    "softmax_row",
]

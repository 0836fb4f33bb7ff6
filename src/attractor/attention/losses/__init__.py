"""Losses, with derivatives that keep their magnitude beside them.

A derivative such as ``-y sigmoid(-y f)`` leaves the range of floating point long before training
is over, so each loss gives it as a mantissa of order one and the logarithm of a scale.
"""

from attractor.attention.losses.cross_entropy import CrossEntropy
from attractor.attention.losses.loss import Loss
from attractor.attention.losses.margin import Exponential, Linear, Logistic, MarginLoss
from attractor.attention.losses.names import get_loss, is_margin_loss
from attractor.attention.losses.negative_log import NegativeLog
from attractor.attention.losses.squared import Squared
from attractor.attention.losses.user import UserLoss

__all__ = [
    "CrossEntropy",
    "Exponential",
    "Linear",
    "Logistic",
    "Loss",
    "MarginLoss",
    "NegativeLog",
    "Squared",
    "UserLoss",
    "get_loss",
    "is_margin_loss",
]

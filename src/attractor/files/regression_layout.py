"""What a regression task file may hold."""

from __future__ import annotations

REGRESSION_LAYOUT = {
    "covariance": ("(d, d)", "of the inputs x of a prompt, positive definite"),
    "query_covariance": ("(d, d)", "optional: of the query's input; default: covariance"),
    "weight_variance": ("()", "optional: of each weight w; default: 1"),
    "label_noise": ("()", "optional: variance of the noise in labels of the prompt; default: 0"),
    "query_noise": ("()", "optional: the same of the query's label; default: 0"),
    "length": ("() or (k,)", "optional, whole numbers: tokens of a prompt; default: 64, 256, 1024"),
    "initial_scale": ("()", "optional: ||A|| at the start; default: half the paper's bound"),
    "initial_value": ("()", "optional: b at the start; default: initial_scale, which is balanced"),
    "time": ("()", "optional: how long gradient flow runs; default: until it rests"),
}
"""What a regression task file may hold: for each entry its shape and what it means.

The task is in-context linear regression: tokens ``(x, y)`` with ``y = w^T x`` and perhaps noise,
the query ``(x_q, 0)``, and ``w^T x_q`` to be predicted.
"""

REGRESSION_MARKS = ("covariance", "weight_variance")
"""The arrays that tell a regression task from token sequences; head files have others besides."""

DEFAULT_LENGTHS = (64, 256, 1024)
"""Tokens of a prompt where a file says nothing of them."""

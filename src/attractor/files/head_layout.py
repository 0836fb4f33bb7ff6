"""What a head file may hold."""

from __future__ import annotations

HEAD_LAYOUT = {
    "W_Q": ("(k, e)", "query matrix, for queries of e numbers"),
    "W_K": ("(k, d)", "key matrix, for tokens of d numbers"),
    "W_V": ("(v, d)", "value matrix; times the output matrix, if that belongs to the head"),
    "divide_by_sqrt_head_dimension": ("()", "bool: True if scores are (W_K x)^T W_Q z / sqrt(k)"),
    "tokens": ("(n, d)", "sampled tokens x; or covariance in their place"),
    "covariance": ("(d, d)", "of Gaussian tokens, in place of samples"),
    "mean": ("(d,)", "optional, with covariance; default: zero"),
    "queries": ("(m, e)", "optional: sampled queries z; or query_covariance in their place"),
    "query_covariance": ("(e, e)", "optional: of Gaussian queries; default: the law of tokens"),
    "query_mean": ("(e,)", "optional, with query_covariance; default: zero"),
}
"""What a head file may hold: for each entry its shape and what it means.

Matrices act from the left on columns: a linear layer of PyTorch has its ``weight`` so, while code
that writes ``x @ W`` has the transpose.
"""

HEAD_MARKS = ("W_Q", "W_K", "W_V")
"""The arrays that tell a head from token sequences."""

DIVISION = "divide_by_sqrt_head_dimension"
"""The truth value that a head file must hold: nothing else in it says what scores are."""


def fewest_tokens(dimension: int) -> int:
    """How many sampled tokens are needed: a covariance of full rank from either half of them."""
    return 2 * (dimension + 1)

"""Training that keeps several tokens a sequence, compared with both parts of its prediction."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.margin import MarginProblem, decompose, solve
from attractor.margin.selection import Selection
from attractor.tokens import Tokens

PREDICTIONS = ("both parts", "direction", "single token")
"""``W_fin + R W_dir``; ``W_dir``; and the solution for the token attended to most alone."""
OUTCOMES = ("passes", "ambiguous", "all tokens kept", "infeasible")
"""Outcomes of the published filter: a trial passes, or the reason why not."""
REASONS = {
    "passes": "passes the filter",
    "ambiguous": "a weight between $10^{-6}$ and $10^{-3}$",
    "all tokens kept": "no token given up",
    "infeasible": "no margin solution",
}
"""The same in words."""


def compared_with_parts(
    tokens: Tokens,
    W: Float[np.ndarray, "instance step d e"],
    last_weights: Float[np.ndarray, "instance step d e"] | None = None,
) -> xr.Dataset:
    """Decomposes the last weights of attention and measures every step against the parts.

    Tokens with a weight of at least 1e-3 are kept. The published filter rejects a trial with a
    weight between 1e-6 and 1e-3, one that keeps all its tokens, and one without a solution.

    Args:
        tokens: The data sets, of one query a sequence.
        W: Trained matrices.
        last_weights: Matrices whose last is to give the weights; W itself if None. The published
            code takes those of the step before the last.

    Returns:
        Over (data_set, step, prediction): ``error``, 1 - correlation of W with what is predicted
        from the last step; NaN without a direction. Over (data_set, sequence) ``several``, whether
        more than one token is kept. Over data_set: ``outcome``, ``kept``, the mean number of tokens
        kept, ``largest_given_up``, the largest weight of another, as a power of ten,
        ``closed_form``, by how much the closed form of the last correlation is off, and
        ``angle``, the cosine between both parts.
    """
    end, own = W[:, -1], last_weights is None
    scores = tokens.scores(end if last_weights is None else last_weights[:, -1])
    parts = decompose(tokens, scores, logarithmic=True)
    attended = Selection.from_index(tokens, scores.argmax(-1)[..., 0])
    single = solve(MarginProblem.from_selection(tokens, attended))
    directed = ~parts.all_kept & np.isfinite(parts.directional.value)
    solved = directed & np.isfinite(parts.finite.value) & np.isfinite(single.value)
    predicted = (parts.nearest(end), parts.directional.W, single.W)
    errors = [1 - _cosine(W, one[:, None]) for one in predicted]
    kept, ambiguous = parts.selection.mask, np.asarray(parts.ambiguous.any((-1, -2)))
    outcome = np.select([ambiguous, parts.all_kept, ~solved], [1, 2, 3], 0)  # as in OUTCOMES
    logs = (scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)) / np.log(10)
    found = xr.Dataset(
        {
            "error": (
                ("data_set", "step", "prediction"),
                np.where(solved[:, None, None], np.stack(errors, -1), np.nan),
            ),
            "outcome": ("data_set", outcome.astype("int8")),
            "kept": ("data_set", kept.sum(-1).mean((-1, -2))),
            "several": (("data_set", "sequence"), kept.sum(-1)[..., 0] > 1),
            "largest_given_up": ("data_set", np.where(kept, -np.inf, logs).max((-1, -2, -3))),
            "angle": ("data_set", np.abs(_cosine(parts.finite.W, parts.directional.W))),
        },
        {"prediction": list(PREDICTIONS), "data_set": tokens.instance_numbers},
    )
    closed = parts.closed_form_correlation(end) if own else np.full(len(end), np.nan)
    last = np.where(solved, 1 - parts.correlation(end), np.nan)
    found["closed_form"] = ("data_set", np.abs(1 - closed - last))
    return found


def _cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Correlations of matrices; NaN where one is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        lengths = np.linalg.norm(A, axis=(-1, -2)) * np.linalg.norm(B, axis=(-1, -2))
        return (A * B).sum((-1, -2)) / lengths

"""Rows of scores of a head: queries against a prompt, and how concentrated they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attractor.prompt.concentration import RowConcentration, row_concentration
from attractor.prompt.head import AttentionHead
from attractor.prompt.length.moments import sampled_points
from attractor.prompt.measures.contract import Measure

_LONGEST = 10_000
"""Tokens of a prompt that is drawn, at most."""
_ENTRIES = 2**21
"""Scores looked at, at most."""


class ScoreRows(NamedTuple):
    """The rows of some queries against one prompt.

    Attributes:
        query: Numbers of the queries.
        concentration: The rates of their scores.
        top_probability: The attention of the head itself to the top token of each row.
        drawn: Whether the prompt was drawn from the law; otherwise it is all samples.
    """

    query: Int[np.ndarray, "row"]
    concentration: RowConcentration
    top_probability: Float[np.ndarray, "row"]
    drawn: bool

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return int(self.concentration.tokens[0])


def score_rows(
    head: AttentionHead,
    law: Measure,
    queries: Float[np.ndarray, "query e"],
    score_deviation: Float[np.ndarray, "query"],
    *,
    longest: float,
    seed: int,
) -> ScoreRows:
    """Computes rows of scores against the samples of a law, or a prompt drawn from it.

    Args:
        head: The head.
        law: The law of the tokens.
        queries: The queries.
        score_deviation: Their score deviations: rows are those of queries spread over them.
        longest: Tokens to draw, if that is not too many.
        seed: Names those drawn.
    """
    prompt = sampled_points("tokens", law)
    drawn = prompt is None
    if prompt is None:
        prompt = law.sample(int(np.clip(longest, 1, _LONGEST)), seed=seed)
    chosen = spread_over(score_deviation, max(1, _ENTRIES // len(prompt)))
    scores = queries[chosen] @ np.asarray(head.score_matrix).T @ prompt.T
    spread = np.exp(scores - scores.max(-1, keepdims=True)).sum(-1)
    return ScoreRows(chosen, row_concentration(scores), 1 / spread, drawn)


def spread_over(values: Float[np.ndarray, "query"], count: int) -> Int[np.ndarray, "chosen"]:
    """Places of so many values, all if they are fewer, at ranks in the middle of equal shares."""
    order = np.argsort(values, kind="stable")
    count = min(count, len(values))
    return order[((np.arange(count) + 0.5) * len(values) / count).astype(int)]

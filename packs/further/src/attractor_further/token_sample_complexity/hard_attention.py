"""Attention with wide scores: until prompts are very long it is hard, and errors fall slowly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from attractor.papers import Claims, Comparison, Measurement
from attractor.papers.data import line, random_head
from attractor.papers.given import GAUSSIAN_TOKENS
from attractor.prompts import AttentionHead, HeadCase
from attractor.prompts.finite_length import error_of_output
from attractor.prompts.measures import Empirical, Gaussian
from attractor_further.token_sample_complexity import PAPER

_QUERIES = 4
_DEVIATION = 16.0
"""That of the scores of a query, which is as long as makes it so."""
_SHARES = np.array([0.1, 0.25, 0.5, 0.75])
"""Logarithms of lengths, over that of ``exp(s^2 / 2)``."""
_MOST_ACROSS = 8.0


def _fixed_query(query: tuple[float, ...]) -> HeadCase:
    """A head on standard normal tokens, with one query only."""
    d = len(query)
    head = AttentionHead(np.eye(d), np.eye(d))
    tokens, queries = Gaussian(np.zeros(d), np.eye(d)), Empirical([query, query])
    return HeadCase(head, tokens, queries, about=f"the query {query}")


def _off_share(
    case: HeadCase, seed: int, missing: Callable[[Float[np.ndarray, "k"]], Float[np.ndarray, "k"]]
) -> Measurement:
    """The largest difference of the error, over the output of infinite prompts, from a share.

    With ``a = U z`` that output is ``V Gamma a`` beside the mean. Queries are left out where its
    square is below an eighth of what values have across it, which is an error of its own.
    """
    covariance, V = case.token_moments[1], case.V
    queries = case.queries.sample(_QUERIES, seed=seed)
    a = queries @ case.U.T
    deviations = np.sqrt(np.einsum("ni,ij,nj->n", a, covariance, a))
    outputs = np.linalg.norm(a @ covariance @ V.T, axis=-1)
    seen = outputs**2 * _MOST_ACROSS >= deviations**2 * np.trace(V @ covariance @ V.T)
    seen &= outputs > 0
    if not seen.any():
        return Measurement(np.nan, 0)
    longer = _DEVIATION / deviations[seen, None]
    lengths = np.exp(_SHARES * _DEVIATION**2 / 2)
    squares = error_of_output(
        covariance, case.U, V, (longer * queries[seen])[:, None], lengths[None]
    )
    found = np.sqrt(squares) / (longer * outputs[seen, None])
    difference = float(np.abs(found - missing(_SHARES)).max())
    return Measurement(difference, len(found), {"errors": found.tolist()})


def _of_largest(shares: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k"]:
    """What ``sqrt(2 log L)``, the largest of ``L`` standard normal numbers, leaves of ``s``."""
    return 1 - np.sqrt(shares)


def _in_proportion(shares: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k"]:
    """What ``2 log L / s`` leaves of ``s``."""
    return 1 - shares


HARD_ATTENTION = Claims(PAPER, HeadCase).claim(
    "hard-attention",
    "under scores of wide deviation s the error is 1 - sqrt(2 log L)/s until exp(s^2/2) tokens",
    statement="logarithmic rate in the limit of hard attention",
    assuming=(GAUSSIAN_TOKENS,),
    contrast=Comparison(
        "largest difference of the root-mean-square error of the output, over the output of "
        "infinite prompts, from 1 - sqrt(2 log L) / s, for scores of deviation s = 16",
        _off_share,
        lambda *_: _of_largest,
        "the same from 1 - 2 log L / s^2, an output that grows in proportion to the logarithm",
        lambda *_: _in_proportion,
        bound=0.05,
        reason="the largest of L normal numbers is below sqrt(2 log L) by (log log L + 2.5) / "
        "sqrt(8 log L), which over s is 0.025, and its square has a variance",
    ),
    data=lambda seed: [line(1.0), _fixed_query((1.0, 1.0)), random_head(seed, 3, rank=2)],
    note="derived, for Gaussian tokens alone: over these hard attention returns the token of the "
    "largest score, which grows for ever, so that errors fall with the logarithm of the length",
)

"""The logits that the feed-forward layer gives single tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.corpora.files.corpus import CorpusCase
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.corpus_hypotheses import ORTHOGONAL, ORTHONORMAL, REALIZABLE, ZERO_START
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.data import grammar, realizable, with_long_embeddings
from attractor.papers.next_token.training import (
    RANDOM_SCALE,
    feed_forward_solution,
    feed_forward_weights,
    first_stage,
    travelled,
    with_collocation,
)

_FROM_ZERO = (REALIZABLE, ORTHONORMAL, ZERO_START)


def _logit_gaps(case: CorpusCase, seed: int) -> Float[np.ndarray, "token other"]:
    """The gaps of each token's follower's logit over every other one, after stage one."""
    W = feed_forward_weights(first_stage(case, seed))[-1]
    known, labels = with_collocation(case)
    logits = case.table[known] @ W.T
    gaps = logits[np.arange(len(labels)), labels][:, None] - logits
    other = labels[:, None] != np.arange(case.corpus.vocabulary_size)
    return gaps[other].reshape(len(labels), -1)


def _spread(case: CorpusCase, seed: int, start: float) -> Measurement:
    """The largest difference of two other logits, from entries of a standard deviation."""
    gaps = _logit_gaps(case.replace(initial_scales=(start, 0.0)), seed)
    others = gaps.shape[1]
    return Measurement(float(np.ptp(gaps, axis=1).max()), len(gaps) * (others > 1))


EQUAL_LOGITS = CLAIMS.claim(
    "equal-other-logits",
    "from zero the feed-forward layer gives all tokens but the follower the same logit",
    statement="equal logits of tokens that do not follow",
    assuming=_FROM_ZERO,
    contrast=Comparison(
        "largest difference of two other logits of a token, which lie about 10 below the follower",
        _spread,
        lambda *_: 0.0,
        "the same from a random start",
        lambda *_: RANDOM_SCALE,
        bound=1e-10,
        reason="rounding: by symmetry they are the same at every step",
    ),
    data=realizable,
)


def _published_gap(case: CorpusCase, seed: int) -> float:
    """The gap ``D = T eta / (4 |W*|^2)`` that the published bounds are multiples of."""
    distance = travelled(case, first_stage(case, seed))[-1]
    return float(distance) / (4 * float(feed_forward_solution(case).value) ** 2)


def _true_gap(case: CorpusCase, seed: int) -> float:
    """``T eta / |W*|``, which every gap is from zero."""
    return 4 * float(feed_forward_solution(case).value) * _published_gap(case, seed)


def _least(case: CorpusCase, seed: int, bound: float) -> Measurement:
    gaps = _logit_gaps(case, seed)
    gap = float(gaps.min())
    return Measurement(gap / bound, gaps.size, {"gap": gap})


LOGIT_GAP_LEAST = CLAIMS.claim(
    "logit-gaps-from-below",
    "after stage one each follower leads by T eta/(4 |W*|^2) or more",
    statement="logit gaps after training the feed-forward layer, lower bound",
    assuming=_FROM_ZERO,
    contrast=Comparison(
        "smallest gap over T eta/(4 |W*|^2)",
        _least,
        _published_gap,
        "smallest gap over 1.01 T eta/|W*|, just above what it is",
        lambda case, seed: 1.01 * _true_gap(case, seed),
        bound=1.0,
        reason="the bound itself",
        sense=">=",
    ),
    data=realizable,
    note="published for T beyond about 1e9 at ordinary sizes; it holds at every T, with gaps "
    "4 |W*| times as large",
    exchange="gaps are 4 |W*| times the bound, and |W*| is 1 or more",
)


def _largest(case: CorpusCase, seed: int, share: float) -> Measurement:
    """The largest gap over its upper bound, of which ``T eta/(4 |W*|^2)`` is a share."""
    gaps = _logit_gaps(case, seed)
    bound = _published_gap(case, seed) / share
    true = _true_gap(case, seed)
    details = {"gap": float(gaps.max()), "T eta/|W*|": true, "upper bound": bound}
    return Measurement(float(gaps.max()) / bound, gaps.size, details)


LOGIT_GAP_LARGEST = CLAIMS.claim(
    "logit-gaps-from-above",
    "after stage one no follower leads by more than 3 T eta/(4 |W*|^2)",
    statement="logit gaps after training the feed-forward layer, upper bound",
    assuming=(REALIZABLE, ORTHOGONAL, ZERO_START),
    contrast=Comparison(
        "largest gap over 3 T eta/(4 |W*|^2)",
        _largest,
        lambda *_: 1 / 3,
        "largest gap over 2 T eta/(4 |W*|^2)",
        lambda *_: 1 / 2,
        bound=1.0,
        reason="the bound itself",
    ),
    data=lambda seed: [with_long_embeddings(grammar(), 3.0), *realizable(seed)],
    note="from zero the gap is T eta/|W*| at every T, and so above the bound wherever |W*| is more "
    "than 3/4; orthonormal embeddings, of which it is published, have |W*|^2 = V - 1. The proof "
    "takes a lower bound of the norm of the layer for an upper one",
)

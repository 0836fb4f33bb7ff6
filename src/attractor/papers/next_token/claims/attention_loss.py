"""The loss of the second stage: the bound on it, and how fast it nears its floor."""

from __future__ import annotations

import numpy as np

from attractor.corpora.files.corpus import CorpusCase
from attractor.papers.claim import Comparison, Measurement
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims.attention_path import ASSUMPTIONS
from attractor.papers.next_token.claims.optimal_attention import published_rate, rate_contrast
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import (
    feed_forward_solution,
    longest_context,
    measured,
    plan,
)


def _excess(case: CorpusCase, seed: int, rate: float) -> Measurement:
    """The largest logarithm of the loss over its bound for a rate C0, and over that in the end.

    In the end all attention is on optimal tokens, and the loss is what stage one leaves.
    """
    found, (steps, _) = measured(case, seed), plan(case).steps
    size, longest = case.corpus.vocabulary_size, longest_context(case)
    late = longest * np.exp(-published_rate(case) * found["step"].to_numpy())
    bound = np.log(size) - steps * rate * (1 - 2 * late / (late + 1))
    excess = np.log(found["loss"].to_numpy()) - bound
    floor = np.log1p((size - 1) * np.exp(-steps * _true_rate(case)))
    in_the_end = float(np.log(floor) - np.log(size) + steps * rate)
    details = {"in training": float(excess.max()), "in the end": in_the_end}
    return Measurement(float(max(excess.max(), in_the_end)), len(excess) + 1, details)


def _published_rate(case: CorpusCase) -> float:
    """``C0 = eta0 / (4 |W_ov*|^2)``."""
    return plan(case).rates[0] / (4 * float(feed_forward_solution(case).value) ** 2)


def _true_rate(case: CorpusCase) -> float:
    """``eta0 / |W_ov*|``, by which a step of stage one adds to the gaps of logits."""
    return plan(case).rates[0] / float(feed_forward_solution(case).value)


ATTENTION_LOSS = CLAIMS.claim(
    "attention-loss",
    "the loss is at most V exp(-T C0 (1 - 2L/(L + exp(C1 t)))), C0 = eta0/(4 |W_ov*|^2)",
    statement="convergence of the loss",
    assuming=ASSUMPTIONS,
    contrast=Comparison(
        "largest logarithm of the loss over its bound, in training and in the end",
        _excess,
        lambda case, seed: _published_rate(case),
        "the same with a quarter more than the true rate, C0 = 1.25 eta0/|W_ov*|",
        lambda case, seed: 1.25 * _true_rate(case),
        bound=0.0,
        reason="the bound itself",
    ),
    data=realizable,
    note="published for T and t beyond all practical sizes; it holds at every step, and in the end "
    "with a rate C0 that is 4 |W_ov*| times as large",
    exchange="twice the published rate is 4 |W_ov*| / 2 times below the true",
)


EXCESS_LOSS_RATE = CLAIMS.claim(
    "excess-loss-rate",
    "the loss above that of all attention on optimal tokens falls like exp(-t eta/|W*|)",
    statement="linear convergence of the loss",
    assuming=ASSUMPTIONS,
    contrast=rate_contrast("the excess loss", "log_excess_loss"),
    data=realizable,
    note="the published excess is over V exp(-T C0), an upper bound of the floor; that over the "
    "floor itself, log(1 + (V - 1) exp(-gap)), is measured here",
)

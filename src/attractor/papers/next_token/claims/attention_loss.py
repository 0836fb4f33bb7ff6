"""The loss of the second stage: the bound on it, and how fast it nears its floor."""

from __future__ import annotations

import numpy as np

from attractor.files.corpus import CorpusCase
from attractor.papers.claim import Contrast, Measurement
from attractor.papers.next_token.claims import CLAIMS
from attractor.papers.next_token.claims.attention_path import ASSUMPTIONS
from attractor.papers.next_token.claims.optimal_attention import (
    off_rate,
    published_rate,
    true_rate,
)
from attractor.papers.next_token.data import realizable
from attractor.papers.next_token.training import (
    attention_solution,
    feed_forward_solution,
    longest_context,
    measured,
    plan,
)


def _excess(case: CorpusCase, seed: int) -> Measurement:
    """The largest logarithm of the loss over the published bound."""
    found, chosen = measured(case, seed), plan(case)
    size, longest = case.corpus.vocabulary_size, longest_context(case)
    gap = chosen.steps[0] * chosen.rates[0] / (4 * float(feed_forward_solution(case).value) ** 2)
    late = longest * np.exp(-published_rate(case) * found["step"].to_numpy())
    bound = np.log(size) - gap * (1 - 2 * late / (late + 1))
    excess = np.log(found["loss"].to_numpy()) - bound
    return Measurement(float(excess.max()), len(excess))


def _above_floor(case: CorpusCase, seed: int) -> Measurement:
    """The logarithm of the last loss over half the loss of all attention on optimal tokens."""
    chosen, size = plan(case), case.corpus.vocabulary_size
    gap = chosen.steps[0] * chosen.rates[0] / float(feed_forward_solution(case).value)
    floor = np.log1p((size - 1) * np.exp(-gap))
    last = float(measured(case, seed)["loss"][-1])
    return Measurement(float(np.log(2 * last / floor)), 1, {"floor": float(floor), "loss": last})


ATTENTION_LOSS = CLAIMS.claim(
    "attention-loss",
    "the loss is at most V exp(-T C0 (1 - 2L/(L + exp(C1 t)))), C0 = eta0/(4 |W_ov*|^2)",
    statement="convergence of the loss",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "largest logarithm of the loss over its bound",
        _excess,
        "logarithm of the last loss over half of what stage one leaves, as if attention could "
        "bring it to zero",
        _above_floor,
        bound=0.0,
        reason="the bound itself",
    ),
    data=realizable,
    note="published for T and t beyond all practical sizes; it holds at every step",
)


def _off_rate(case: CorpusCase, seed: int, *, published: bool) -> Measurement:
    times = 4 * longest_context(case) * float(attention_solution(case).value) if published else 1
    return off_rate(case, seed, "log_excess_loss", true_rate(case) / times)


EXCESS_LOSS_RATE = CLAIMS.claim(
    "excess-loss-rate",
    "the loss above that of all attention on optimal tokens falls like exp(-t eta/|W*|)",
    statement="linear convergence of the loss",
    assuming=ASSUMPTIONS,
    contrast=Contrast(
        "relative distance of the rate of the excess loss from eta/|W*|",
        lambda case, seed: _off_rate(case, seed, published=False),
        "its relative distance from eta/(4 L |W*|^2), the rate that is published",
        lambda case, seed: _off_rate(case, seed, published=True),
        bound=0.02,
        reason="margins grow by eta/|W*| a step once W goes along W*",
    ),
    data=realizable,
    note="the published excess is over V exp(-T C0), an upper bound of the floor; that over the "
    "floor itself, log(1 + (V - 1) exp(-gap)), is measured here",
)

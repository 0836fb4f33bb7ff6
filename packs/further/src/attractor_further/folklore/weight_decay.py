"""Weight decay of keys and queries: the rank of W, and its margin in the nuclear norm."""

from __future__ import annotations

import numpy as np

from attractor.files import Case
from attractor.geometry import Frobenius, Nuclear
from attractor.papers import Comparison, Measurement, once
from attractor_further.folklore.margins import (
    CLAIMS,
    assuming,
    last_matrices,
    margin_claim,
    three,
    trained_tokens,
)

_PLAIN = "normalized gradient descent:learning_rate=0.1"
_DECAYED = f"{_PLAIN},weight_decay=0.01"
_UNTIL = f"{_PLAIN},weight_decay=0.1,weight_decay_steps=300"
_MILD = f"{_PLAIN},weight_decay=0.0001,weight_decay_steps=300"
_STEPS = 3_000
_ASSUMPTIONS = assuming("KQ", "normalized gradient descent")


@once
def _ranks(case: Case, seed: int, decay: float) -> Measurement:
    """The nuclear norm of W over its spectral norm, which is at most the rank."""
    decayed = case.replace(optimizer=f"{case.optimizer or _PLAIN},weight_decay={decay}")
    values = np.linalg.svd(last_matrices(decayed, seed)[-1], compute_uv=False)
    details = {"singular values": values.tolist()}
    return Measurement(float(values.sum() / values[0]), 1, details)


def _fourth(seed: int) -> list[Case]:
    """Three data sets, and one of the few on which W keeps rank two."""
    return [*three(_PLAIN, "KQ", steps=1000)(seed), trained_tokens(13, _PLAIN, "KQ", steps=1000)]


LOW_RANK = CLAIMS.claim(
    "weight-decay-low-rank",
    "weight decay of keys and queries makes W = K Q^T nearly of rank one",
    statement="weight decay of keys and queries lowers the rank",
    assuming=_ASSUMPTIONS,
    contrast=Comparison(
        "nuclear norm of W over its spectral norm, with a weight decay of 0.01",
        _ranks,
        lambda case, seed: 0.01,
        "the same without weight decay",
        lambda case, seed: 0.0,
        bound=1.1,
        reason="one is rank one; solutions of the nuclear norm have 1.2 to 2",
    ),
    data=_fourth,
    note="fails: on most data sets W comes to rank one, on some to rank two, where longer training "
    "leaves it; the decay is part of the gradient",
    exchange="with twice the weight decay the rank is low as well",
)


def _decayed(seed: int) -> list[Case]:
    ended, kept = (three(how, "KQ", steps=_STEPS)(seed) for how in (_UNTIL, _DECAYED))
    return [*ended, *kept]


NUCLEAR_MARGIN = margin_claim(
    "weight-decay-margin",
    "weight decay takes keys and queries to the largest margin in the nuclear norm",
    Nuclear(),
    Frobenius(),
    _decayed,
    _ASSUMPTIONS,
    optimizer=_DECAYED,
    statement="weight decay leads to the nuclear norm",
    holding=lambda: trained_tokens(0, _MILD, "KQ", steps=_STEPS),
    note="fails: a decay that stays ends the growth of W and the approach to the margin; one of "
    "0.1 that ends after 300 steps leaves factors of rank one, in which training goes on. "
    "Without any, gradient descent gets there (folklore/key-query-descent-margin), and after a "
    "mild decay that ends, too",
)

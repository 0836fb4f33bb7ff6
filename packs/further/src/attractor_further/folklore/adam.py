"""Adam, and the largest margin in l_inf."""

from __future__ import annotations

import numpy as np

from attractor.files import Case
from attractor.geometry import Frobenius, Lp
from attractor_further.folklore.margins import assuming, margin_claim, three, trained_tokens

_USUAL = "adam:learning_rate=0.001"
_SHORT = "adam:learning_rate=0.03,b2=0.9"
_LONGER = "adam:learning_rate=0.003,b2=0.99"
_ASSUMPTIONS = assuming("W", "Adam, eps = 0")


def _thousand_memories(seed: int) -> list[Case]:
    return [*three(_SHORT)(seed), trained_tokens(seed, _LONGER, steps=100_000)]


ADAM = margin_claim(
    "adam-margin",
    "Adam as it is used takes attention to the largest margin in l_inf",
    Lp(np.inf),
    Frobenius(),
    three(_USUAL),
    _ASSUMPTIONS,
    optimizer=_USUAL,
    statement="Adam maximizes the margin in l_inf",
    holding=lambda: trained_tokens(0, _SHORT),
    note="not settled by 10,000 steps of the usual 0.001 with b2 = 0.999, which are ten memories "
    "1 / (1 - b2): runs have some half of the margin and still move; it takes a thousand "
    "(folklore/adam-margin-in-memories)",
)
ADAM_IN_MEMORIES = margin_claim(
    "adam-margin-in-memories",
    "after a thousand memories 1 / (1 - b2) Adam has the largest margin in l_inf",
    Lp(np.inf),
    Frobenius(),
    _thousand_memories,
    _ASSUMPTIONS,
    optimizer=_SHORT,
    statement="Adam maximizes the margin in l_inf, in a time that its memory sets",
    note="steps of 0.3 (1 - b2), for b2 = 0.9 and 0.99; with 0.999 and a million steps 0.98 of the "
    "margin were measured. Larger steps take longer",
)

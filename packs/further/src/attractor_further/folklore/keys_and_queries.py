"""Keys and queries, and the largest margin in the nuclear norm of W = K Q^T."""

from __future__ import annotations

from attractor.geometry import Frobenius, Nuclear
from attractor_further.folklore.margins import assuming, margin_claim, three, trained_tokens

_DESCENT = "normalized gradient descent:learning_rate=0.1"
_ADAM = "adam:learning_rate=0.01,b2=0.9"

GRADIENT_DESCENT = margin_claim(
    "key-query-descent-margin",
    "gradient descent on keys and queries takes W to the largest margin in the nuclear norm",
    Nuclear(),
    Frobenius(),
    three(_DESCENT, "KQ"),
    assuming("KQ", "normalized gradient descent"),
    optimizer=_DESCENT,
    statement="gradient descent on keys and queries favors the nuclear norm",
    note="in normalized steps; no theorem covers it",
)
ANY_OPTIMIZER = margin_claim(
    "key-query-margin",
    "training keys and queries takes W to the largest margin in the nuclear norm, by Adam too",
    Nuclear(),
    Frobenius(),
    three(_ADAM, "KQ", size=(4, 4, 6)),
    assuming("KQ", "normalized gradient descent", "Adam, eps = 0"),
    optimizer=_DESCENT,
    statement="keys and queries favor the nuclear norm, whatever they are trained by",
    holding=lambda: trained_tokens(0, _DESCENT, "KQ"),
    note="fails for Adam, here with b2 = 0.9, so that it has had a thousand memories of squares: "
    "its steps depend on the basis that a head keeps its keys and queries in, W does not, and no "
    "norm of W says where it goes; it holds for gradient descent "
    "(folklore/key-query-descent-margin)",
)

"""The optimizers that are compared, and where the search for their learning rates begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import optax

from attractor.training import mirror_descent


class Contender(NamedTuple):
    """An optimizer whose learning rate is to be found.

    Attributes:
        name: Its name in tables and figures.
        make: Makes the optimizer of a learning rate.
        guess: Where the search begins, for losses summed over a batch of 100.
    """

    name: str
    make: Callable[[Any], optax.GradientTransformation]
    guess: float


def _mirror(p: float) -> Callable[[Any], optax.GradientTransformation]:
    def make(learning_rate: Any) -> optax.GradientTransformation:
        return mirror_descent(learning_rate, p=p, normalize=False)

    return make


def _momentum(learning_rate: Any) -> optax.GradientTransformation:
    return optax.sgd(learning_rate, momentum=0.9)


CONTENDERS = {
    each.name: each
    for each in (
        Contender("p = 1.1", _mirror(1.1), 2e-3),
        Contender("p = 2", _mirror(2.0), 3e-3),
        Contender("p = 3", _mirror(3.0), 1e-3),
        Contender("Adam", optax.adam, 3e-3),
        Contender("AdamW", optax.adamw, 3e-3),
        Contender("momentum", _momentum, 3e-4),
        Contender("sign", optax.sign_sgd, 1e-3),
        Contender("Muon", optax.contrib.muon, 3e-3),
    )
}
"""By name. Gradient descent is mirror descent with p = 2."""

"""The published training experiments that are timed, and how the library runs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

DATA_SETS = 100
SEQUENCES, TOKENS, DIMENSION = 6, 8, 10
LEARNING_RATE = 0.1
ROUNDING = 2.22e-16
"""What the published code adds to norms, and the weight of its penalty on K and Q."""


class Run(NamedTuple):
    """Training of one kind on every data set.

    Attributes:
        name: What the table calls it.
        parameterization: What is trained, ``"W"`` or ``"KQ"``.
        steps: How many steps.
        p: The exponent of mirror descent; None for normalized gradient descent.
    """

    name: str
    parameterization: str
    steps: int
    p: float | None = None


EXPERIMENTS = {
    "local convergence": (Run("W", "W", 2000), Run("(K, Q)", "KQ", 2000)),
    "mirror descent": (
        Run("p = 1.75", "W", 1500, 1.75),
        Run("p = 2", "W", 2000, 2.0),
        Run("p = 3", "W", 20000, 3.0),
    ),
}


def data(trials: int = DATA_SETS):
    """Tokens and heads of the published random data sets, one seed each."""
    from attractor.datasets import unit_tokens

    return unit_tokens(SEQUENCES, TOKENS, DIMENSION, seeds=trials)


def random_data(trials: int, n: int, length: int, d: int):
    """Tokens and heads of any size: Gaussian keys and queries, random labels."""
    import attractor as at

    random = np.random.default_rng(0)
    tokens = at.Tokens(
        random.normal(size=(trials, n, length, d)) / np.sqrt(d),
        random.normal(size=(trials, n, d)) / np.sqrt(d),
        np.where(random.random((trials, n)) < 0.5, -1.0, 1.0),
    )
    return tokens, at.LinearHead(random.normal(size=d))


def initial(run: Run) -> dict[str, np.ndarray]:
    """Where both sides start: a linear layer's default, or normal numbers for mirror descent."""
    random = np.random.default_rng(0)
    shape = (DATA_SETS, DIMENSION, DIMENSION)
    if run.p is not None:
        return {"W": random.normal(size=shape)}
    bound = DIMENSION**-0.5
    return {name: random.uniform(-bound, bound, shape) for name in run.parameterization}


def optimizer(run: Run):
    """The library's optimizer for a run."""
    import attractor as at
    from attractor.training import mirror_descent

    if run.p is not None:
        return mirror_descent(LEARNING_RATE, run.p)
    if run.parameterization == "W":
        return at.normalized_gradient_descent(LEARNING_RATE)
    return at.normalized_gradient_descent(LEARNING_RATE, per_factor=True, weight_decay=2 * ROUNDING)


def train(run: Run, steps: int | None = None):
    """Trains every data set in one call with default settings."""
    import attractor as at

    tokens, head = data()
    return at.train(
        tokens,
        head,
        optimizer(run),
        steps=run.steps if steps is None else steps,
        parameterization=run.parameterization,
        initial=initial(run),
    )

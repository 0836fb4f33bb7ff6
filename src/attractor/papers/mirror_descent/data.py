"""The data of the experiments of *Optimizing Attention with Mirror Descent*."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.files.case import Case
from attractor.support.randomness import generator
from attractor.tokens import Tokens

EXPONENTS = (1.75, 2.0, 3.0)
"""The exponents of the synthetic experiments."""

STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20_000}
"""Number of steps of each exponent."""

LEARNING_RATE = 0.1
"""The learning rate of the synthetic experiments."""

PUBLISHED_EPS = 2.22e-16
"""Constant that the published code adds to the norm of a gradient before dividing by it."""


def random_data_sets(seeds: int | Sequence[int]) -> tuple[Tokens, LinearHead]:
    """Random unit tokens, n = 6 sequences of T = 8 in R^10, one data set for each seed.

    Args:
        seeds: The seeds; those of the paper are 1 to 100.
    """
    return unit_tokens(6, 8, 10, seeds=seeds)


def normal_weights(tokens: Tokens, seed: int, about: str) -> Float[np.ndarray, "instance 1 d e"]:
    """Standard normal initial weights, those of a data set the same whatever runs beside it.

    Args:
        tokens: Data sets.
        seed: The seed.
        about: What they are for; other words give other weights.
    """
    shape = (tokens.key_dimension, tokens.query_dimension)
    return np.stack(
        [
            generator(seed, int(number), purpose=f"normal weights, {about}").normal(size=shape)
            for number in tokens.instance_numbers
        ]
    )[:, None]


def two_sequences() -> Tokens:
    """Two sequences of three tokens in the plane, for training head and attention together.

    Their queries are their first tokens.
    """
    keys = np.array(
        [
            [[-2.7, 1.2], [1.4, 2.1], [1.3, -0.1]],
            [[0.4, -2.2], [-1.1, -0.4], [0.9, 0.1]],
        ]
    )
    return Tokens(keys, keys[:, 0], np.array([1.0, -1.0]))


def random_case(seed: int, n: int = 3, T: int = 4, d: int = 4) -> Case:
    """Random unit tokens with a random head, for training W: data of the paper's kind."""
    tokens, head = unit_tokens(n, T, d, seeds=[seed])
    head = LinearHead(np.asarray(head.weight)[0])
    return Case(tokens[0], head, about=f"random data ({n}, {T}, {d}), seed {seed}")

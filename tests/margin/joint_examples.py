"""The published data of joint training, and random data in which labels can be told apart."""

import numpy as np

from attractor.margin.selection import Selection
from attractor.tokens import Tokens


def published_joint(third):
    """Three examples of two tokens; token 1 is selected; ``third`` is that of the last example."""
    keys = [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, -1.0]], [[0.0, 0.0], third]]
    tokens = Tokens.prompt_vector(keys, [1, -1, 1])
    return tokens, Selection.from_index(tokens, [1, 1, 1])


TIGHT, SLACK = [0.5, 1.0], [0.5, 1.5]


def random_joint(seed, n=3, T=3, d=4, e=2):
    """A random matrix of more dimensions than constraints has nothing infeasible about it."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1.0, 1.0], size=n)
    tokens = Tokens(rng.normal(size=(n, T, d)), rng.normal(size=(n, e)), labels)
    return tokens, Selection.from_index(tokens, rng.integers(0, T, size=n))

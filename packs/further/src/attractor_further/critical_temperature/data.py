"""Heads on samples of tokens, whose rows of scores are looked at one by one."""

from __future__ import annotations

from functools import cache

import numpy as np

from attractor.papers.data import random_head
from attractor.prompts import AttentionHead, HeadCase
from attractor.prompts.measures import Empirical


@cache
def logarithmic_gaps(count: int) -> HeadCase:
    """Tokens on a line whose ``k``-th smallest gap is ``log k``: none are nearer at the rate 1."""
    tokens = -np.log(np.arange(1, count + 1))[:, None]
    head = AttentionHead([[1.0]], [[1.0]])
    about = f"{count:,} tokens, the k-th of score -log k"
    return HeadCase(head, Empirical(tokens), Empirical([[1.0], [1.0]]), about=about)


@cache
def sampled_head(seed: int, count: int = 400) -> HeadCase:
    """A random head in three dimensions on so many samples of its Gaussian tokens."""
    case = random_head(seed, 3)
    samples = Empirical(case.tokens.sample(count, seed=seed))
    return case.replace(tokens=samples, about=f"{case.about}, {count} samples of tokens")

"""The sizes that tests draw data in.

JAX compiles a program for every size of its arrays, and for every optimizer, head and loss with it.
What a test shows seldom depends on the size: take one of these, and draw another seed where a test
wants other data. Training takes its trials block by block, so that the number of instances and of
seeds is free there.
"""

from typing import NamedTuple

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.tokens import Tokens


class Size(NamedTuple):
    """Data sets of n rows, which are T tokens in d dimensions and a query each."""

    instances: int
    n: int
    T: int
    d: int


USUAL = Size(instances=2, n=3, T=4, d=5)
"""The one to take: no two of its axes are of one length, so that none is taken for another."""

MANY = Size(instances=6, n=3, T=4, d=5)
"""The usual rows in more instances, for what averages over them, or shares them out."""

WIDE = Size(instances=2, n=6, T=8, d=10)
"""The data of arXiv 2308.16898, for what is compared with the published numbers."""

SMALLEST = Size(instances=1, n=1, T=2, d=2)
"""The smallest that has a choice: what can be worked out by hand, or is to be another program."""

ONE_ROW = Size(instances=2, n=1, T=4, d=5)
"""One row, whose margin problem is always feasible, and whose mean is the row itself."""

CROWDED = Size(instances=2, n=6, T=4, d=2)
"""More constraints than W has entries, so that not every selection can be had."""


def drawn(size: Size, seed: int = 1) -> tuple[Tokens, LinearHead]:
    """Unit tokens of a size and their heads; instances are of this seed and the next ones."""
    return unit_tokens(size.n, size.T, size.d, seeds=range(seed, seed + size.instances))

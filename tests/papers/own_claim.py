"""A claim about a kind of data, both from outside of the library: all that it takes."""

import dataclasses
from typing import ClassVar

import numpy as np

from attractor.files import ArrayFile, DataSet, register_file
from attractor.papers import Ledger, Paper, assumption


@register_file
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GraphCase(ArrayFile, DataSet):
    """A graph; what a graph file holds."""

    words, held, marks = "graph file", "a graph", ("edges",)
    layout: ClassVar = {"edges": ("(n, 2)", "pairs of numbered nodes")}
    edges: np.ndarray
    about: str = "graph"

    @classmethod
    def from_arrays(cls, arrays, texts, name):
        return cls(arrays["edges"], about=name)

    def to_arrays(self):
        return self.arrays(), {}

    def arrays(self):
        return {"edges": self.edges}

    @property
    def size(self):
        return len(self.edges)

    @property
    def size_in_words(self):
        return f"{self.size} edges"

    def smaller(self, trial):
        case = self
        for place in reversed(range(len(self.edges))):
            case = trial.smaller_of(case, case.replace(edges=np.delete(case.edges, place, 0)))
        return case


def _degrees(case):
    return np.bincount(case.edges.ravel())


@assumption("no loops", lambda: GraphCase(np.array([[0, 0]])))
def no_loops(case):
    """No edge leads back."""
    loops = int((case.edges[:, 0] == case.edges[:, 1]).sum())
    return not loops, f"{loops} loops"


def odd(case):
    """Nodes of odd degree."""
    return _degrees(case) % 2


def positive(case):
    """Nodes of positive degree."""
    return _degrees(case) > 0


EULER = Paper("bridges", "Solutio problematis ad geometriam situs", "Euler, L.", 1736, "")
claim = Ledger(EULER, GraphCase)


@claim(
    "handshakes", "an even number of nodes has odd degree",
    given=[no_loops], right=odd, wrong=positive, at_most=0, because="a count",
    on=lambda: GraphCase(np.array([[0, 1], [1, 2], [2, 0]])),
    exchange="other nodes may be even in number as well",
)  # fmt: skip
def number(case, nodes):
    """{}, modulo two."""
    return nodes.sum() % 2

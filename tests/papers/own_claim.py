"""A claim about a kind of data, both from outside of the library: all that it takes."""

import dataclasses
from typing import ClassVar

import numpy as np

from attractor.files import ArrayFile, DataSet, register_file
from attractor.papers import Assumption, Check, Claims, Contrast, Measurement, Paper, register_claim


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


def _without_loops(case):
    loops = int((case.edges[:, 0] == case.edges[:, 1]).sum())
    return Check(not loops, f"{loops} loops")


NO_LOOPS = Assumption(
    "no loops", "No edge leads back.", _without_loops, lambda: GraphCase(np.array([[0, 0]]))
)
EULER = Paper("bridges", "Solutio problematis ad geometriam situs", "Euler, L.", 1736, "")
HANDSHAKES = register_claim(
    Claims(EULER, GraphCase).claim(
        "handshakes",
        "an even number of nodes has odd degree",
        statement="sum of degrees",
        assuming=(NO_LOOPS,),
        contrast=Contrast(
            "nodes of odd degree, modulo two",
            lambda case, seed: Measurement(float((_degrees(case) % 2).sum() % 2)),
            "nodes of positive degree, modulo two",
            lambda case, seed: Measurement(float((_degrees(case) > 0).sum() % 2)),
            bound=0,
            reason="a count",
        ),
        data=lambda seed: [GraphCase(np.array([[0, 1], [1, 2], [2, 0]]))],
    )
)

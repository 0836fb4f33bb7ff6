"""Pairs of tokens of which the first is preferred to the second."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from attractor.files import ArrayFile


@dataclass(frozen=True)
class Preferences(ArrayFile):
    """Which token of each pair is preferred: a margin problem of constraints (x - y)^T W z >= 1."""

    words: ClassVar = "preference file"
    held: ClassVar = "preferences"
    marks: ClassVar = ("preferred",)
    layout: ClassVar = {
        "preferred": ("(n, d)", "the better token of every pair"),
        "other": ("(n, d)", "the other one"),
        "queries": ("(n, e)", "what the pair was asked for"),
    }
    preferred: np.ndarray
    other: np.ndarray
    queries: np.ndarray

    @classmethod
    def from_arrays(cls, arrays, texts, name):  # noqa: ANN001, ANN206
        """Puts together what lies in a file."""
        return cls(*(np.asarray(arrays[entry], float) for entry in cls.layout))

    def to_arrays(self):  # noqa: ANN201
        """The arrays of a file from which the same can be read."""
        return {entry: getattr(self, entry) for entry in self.layout}, {}

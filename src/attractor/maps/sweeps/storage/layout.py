"""The arrays of a sweep and their chunks, by arithmetic alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attractor.maps.sweeps.experiment import Experiment, Measure
from attractor.maps.sweeps.grid import Chunk, Grid, Value

MOST_CHUNKS = 10**5
"""Chunks of a sweep: each is a file for every measure, and a record that is read at every start."""


@dataclass(frozen=True)
class Layout:
    """The arrays of a sweep and their chunks: what a grid and an experiment come to.

    Attributes:
        grid: The grid.
        measures: Type and description of each measure, by name.
        along: Values of the further axes of measures.
        compiled_by: Axes whose every value needs a program of its own.
    """

    grid: Grid
    measures: Mapping[str, Measure]
    along: Mapping[str, tuple[Value, ...]]
    compiled_by: tuple[str, ...]

    @staticmethod
    def of(grid: Grid, experiment: Experiment) -> Layout:
        """That of a grid and an experiment."""
        measures: Any = experiment.measures
        along: Any = experiment.along
        return Layout(grid, measures, along, tuple(experiment.compiled_by))

    @functools.cached_property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of a chunk."""
        return self.grid.chunk_shape(self.compiled_by)

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        """Chunks along each axis."""
        return self.grid.chunk_counts(self.chunk_shape)

    @property
    def chunks(self) -> int:
        """Number of all chunks."""
        return math.prod(self.counts)

    def chunk(self, number: int) -> Chunk:
        """A chunk by its number, the last axis fastest."""
        return self.grid.chunk_at(self.place(number), self.chunk_shape)

    def place(self, number: int) -> tuple[int, ...]:
        """The place of a chunk in the grid of chunks."""
        left, place = int(number), []
        for count in reversed(self.counts):
            left, at = divmod(left, count)
            place.append(at)
        return tuple(place[::-1])

    def programs(self, numbers: np.ndarray) -> np.ndarray:
        """The number of the program that each chunk needs."""
        places = np.unravel_index(numbers, self.counts)
        program = np.zeros(len(numbers), dtype=np.int64)
        for name, place, count in zip(self.grid.dims, places, self.counts, strict=True):
            if name in self.compiled_by:
                program = program * count + place
        return program

    def trials(self, numbers: np.ndarray) -> int:
        """Trials of several chunks."""
        each = np.ones(len(numbers), dtype=np.int64)
        places = np.unravel_index(numbers, self.counts)
        for place, size, length in zip(places, self.chunk_shape, self.grid.shape, strict=True):
            each *= np.minimum(size, length - place * size)
        return int(each.sum())

    @property
    def dims(self) -> tuple[str, ...]:
        """Axes of every measure."""
        return (*self.grid.dims, *self.along)

    def shape(self, of: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an array, or of part of one, of which the grid has a shape."""
        return (*of, *map(len, self.along.values()))

    @property
    def bytes(self) -> int:
        """Bytes of all measures, before they are compressed."""
        one = sum(np.dtype(measure.dtype).itemsize for measure in self.measures.values())
        return one * math.prod(self.shape(self.grid.shape))

"""The arrays of a sweep and their chunks, by arithmetic alone, and what its numbers depend on."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attractor.maps.sweeps.experiment import DTYPES, Experiment, Measure
from attractor.maps.sweeps.grid import Chunk, Grid, Value, axis_values, check_word
from attractor.support.errors import InvalidInputError
from attractor.version import __version__

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


_FORMAT = 1
_GRID_NUMBERS = ("instances", "seeds", "chunk", "first_instance", "first_seed")
_LIBRARIES = ("jax", "jaxlib", "numpy", "scipy")
_SHOWN = 60


def identity_of(grid: Grid, experiment: Experiment) -> dict[str, Any]:
    """What the numbers of a sweep depend on, as JSON, but for the kind of processor."""
    return {
        "format": _FORMAT,
        "axes": {name: list(values) for name, values in grid.axes.items()},
        **{name: getattr(grid, name) for name in _GRID_NUMBERS},
        "experiment": experiment.identity(),
        "versions": {"attractor": __version__} | dict(_versions()),
    }


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    return tuple((name, importlib.metadata.version(name)) for name in _LIBRARIES)


def layout_of(identity: Mapping[str, Any]) -> Layout:
    """The layout that an identity out of a file describes.

    Raises:
        LookupError, TypeError, AttributeError: If it describes none.
    """
    if identity["format"] != _FORMAT:
        raise TypeError(f"its format is {identity['format']!r}, not {_FORMAT}")
    experiment = identity["experiment"]
    try:
        grid = Grid(identity["axes"], **{name: identity[name] for name in _GRID_NUMBERS})
        measures = {
            check_word("measures", name): Measure(str(dtype), str(description))
            for name, (dtype, description) in experiment["measures"].items()
        }
        along = {
            check_word("along", name): axis_values(name, values)
            for name, values in experiment["along"].items()
        }
    except (InvalidInputError, ValueError) as error:
        raise TypeError(str(error)) from None
    if not measures or any(measure.dtype not in DTYPES for measure in measures.values()):
        raise TypeError("its measures are of unknown types")
    layout = Layout(grid, measures, along, tuple(map(str, experiment["compiled_by"])))
    if layout.chunks > MOST_CHUNKS:
        raise TypeError(f"it has {layout.chunks:,} chunks")
    return layout


def differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """What differs between the identities of two sweeps, in words."""
    return list(_differences(there, json.loads(json.dumps(here))))


def _differences(there: Any, here: Any, at: str = "") -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict) and there.keys() == here.keys():
        for name in here:
            yield from _differences(there[name], here[name], f"{at}.{name}" if at else name)
    elif there != here:
        was, now = (
            text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            for text in map(str, (there, here))
        )
        yield f"{at} is {was} there and {now} here"

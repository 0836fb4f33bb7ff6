"""What is swept over, and how it is cut into chunks: a function of nothing but its arguments."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from attractor.support.checks import (
    MOST_COUNTED,
    as_number,
    check_count,
    check_readable,
    is_whole,
    shown,
)
from attractor.support.errors import InvalidInputError

Value: TypeAlias = int | float | str
"""A value of an axis: a number, or a name."""

_MOST_VALUES = 10**6
"""Values of an axis: each is kept, and written into the store."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OWN_AXES = ("instance", "seed")


@dataclass(frozen=True)
class Chunk:
    """A rectangle of the grid: what is computed, written and failed as one.

    Attributes:
        place: Its place in the grid of chunks.
        region: Its place in the arrays.
        values: The values of every axis in it.
        instances: Numbers of its data sets.
        seeds: Its seeds of initial parameters.
    """

    place: tuple[int, ...]
    region: tuple[slice, ...]
    values: Mapping[str, tuple[Value, ...]]
    instances: range
    seeds: range

    @property
    def points(self) -> list[dict[str, Value]]:
        """The value of every axis at its points, the last axis fastest."""
        every = itertools.product(*self.values.values())
        return [dict(zip(self.values, one, strict=True)) for one in every]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in the arrays."""
        return tuple(one.stop - one.start for one in self.region)

    @property
    def trials(self) -> int:
        """Points times instances times seeds."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Grid:
    """Every combination of the values of the axes, times instances, times seeds.

    Attributes:
        axes: The values of each axis, by its name: numbers or texts, each once.
        instances: Number of data sets at every point.
        seeds: Number of initial parameters for every data set.
        chunk: Trials that are computed, written and failed together, at most. The last bits of
            results may depend on it, and on nothing else about how a sweep is run.
        first_instance: Number of the first data set.
        first_seed: Seed of the first initial parameters.

    Raises:
        InvalidInputError: If an axis is empty, has a value twice, mixes numbers with texts, or has
            a name that is no word of letters, digits and underscores; or if a number is no count.
    """

    axes: Mapping[str, Sequence[Value]]
    instances: int
    seeds: int = 1
    chunk: int = 1000
    first_instance: int = 0
    first_seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.axes, Mapping):
            raise InvalidInputError(
                "axes",
                f"{shown(self.axes)} is no mapping",
                'Give the values of each axis by its name, such as {"d": [5, 10]}',
            )
        axes = {check_word("axes", name): _values(name, self.axes[name]) for name in self.axes}
        for name in _OWN_AXES:
            if name in axes:
                raise InvalidInputError(
                    f"axes[{name!r}]", "every grid has this axis", f"Give their number as {name}s"
                )
        object.__setattr__(self, "axes", axes)
        for name in ("instances", "seeds", "chunk"):
            object.__setattr__(self, name, check_count(name, getattr(self, name), 1, 2**31))
        for name in ("first_instance", "first_seed"):
            object.__setattr__(self, name, check_count(name, getattr(self, name), 0, 2**31))

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of all axes, with those of instances and seeds last."""
        return (*self.axes, *_OWN_AXES)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of all axes, with those of instances and seeds last."""
        return (*map(len, self.axes.values()), self.instances, self.seeds)

    @property
    def points(self) -> int:
        """Combinations of the values of the axes."""
        return math.prod(self.shape[:-2])

    @property
    def trials(self) -> int:
        """Points times instances times seeds."""
        return math.prod(self.shape)

    def chunk_shape(self, compiled_by: Collection[str] = ()) -> tuple[int, ...]:
        """The shape of a chunk: as many seeds as it holds, then instances, then points.

        Args:
            compiled_by: Axes along which every value needs a program of its own: a chunk has one
                value of each.
        """
        left, sizes = self.chunk, []
        for name, length in reversed(list(zip(self.dims, self.shape, strict=True))):
            size = 1 if name in compiled_by else min(length, left)
            left //= size
            sizes.append(size)
        return tuple(reversed(sizes))

    def chunk_counts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How many chunks of a shape there are along each axis."""
        return tuple(-(-length // size) for length, size in zip(self.shape, shape, strict=True))

    def chunk_at(self, place: Sequence[int], shape: Sequence[int]) -> Chunk:
        """The chunk at a place in the grid of chunks of a shape; the last ones may be smaller."""
        region = tuple(
            slice(at * size, min((at + 1) * size, length))
            for at, size, length in zip(place, shape, self.shape, strict=True)
        )
        values = {
            name: tuple(self.axes[name][part])
            for name, part in zip(self.axes, region, strict=False)
        }
        numbers, seeds = (
            range(first + part.start, first + part.stop)
            for first, part in zip((self.first_instance, self.first_seed), region[-2:], strict=True)
        )
        return Chunk(tuple(map(int, place)), region, values, numbers, seeds)


def check_word(argument: str, name: Any) -> str:
    """Checks that a name is a word of letters, digits and underscores, as names of arrays are."""
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        raise InvalidInputError(
            argument,
            f"{shown(name)} is no name",
            "Give letters, digits and underscores, such as 'learning_rate'",
        )
    return name


def _values(name: str, values: Any) -> tuple[Value, ...]:
    return axis_values(f"axes[{name!r}]", values)


def axis_values(argument: str, values: Any) -> tuple[Value, ...]:
    """The values of an axis as plain ones of Python: integers, floats or texts, all of one kind.

    Raises:
        InvalidInputError: If there is none, one twice, or one that is neither number nor text.
    """
    if isinstance(values, np.ndarray):
        check_readable(argument, values)
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str | bytes):
        raise InvalidInputError(argument, f"{shown(values)} is no list of values", "Give a list")
    if not len(values):
        raise InvalidInputError(argument, "it has no values", "Give at least one")
    if len(values) > _MOST_VALUES:
        raise InvalidInputError(
            argument, f"it has {len(values):,} values", f"Give at most {_MOST_VALUES:,}"
        )
    plain = [_value(argument, value) for value in values]
    texts = sum(isinstance(value, str) for value in plain)
    if texts not in (0, len(plain)):
        raise InvalidInputError(argument, f"{shown(values)} mixes numbers and texts", "Give either")
    if any(isinstance(value, float) for value in plain):
        plain = [float(value) for value in plain]
    seen: set[Value] = set()
    for value in plain:
        if value in seen:
            raise InvalidInputError(argument, f"{shown(value)} is there twice", "Give it once")
        seen.add(value)
    return tuple(plain)


def _value(argument: str, value: Any) -> Value:
    if isinstance(value, str) and value and value.isprintable():
        return str(value)
    if is_whole(value):
        return check_count(argument, value, -MOST_COUNTED)
    number = as_number(value)
    if not math.isfinite(number):
        raise InvalidInputError(
            argument, f"{shown(value)} is neither a finite number nor a text", "Give one of them"
        )
    return number + 0.0  # -0.0 is 0.0


def is_more_even(first: Float[np.ndarray, "value"], second: Float[np.ndarray, "value"]) -> bool:
    """Whether steps of the first vary less; of two values, whether they are a decade apart."""
    if len(first) == 2:
        return bool(second[1] >= 10 * second[0])
    spread = [np.std(np.diff(one)) / np.mean(np.diff(one)) for one in (first, second)]
    return bool(spread[0] < spread[1])

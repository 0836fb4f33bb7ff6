"""Instances of margin problems that several calls of ``solve`` share, solved and judged once."""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry
from attractor.margin.batching.empty_slots import Places, as_places, without_empty_slots
from attractor.margin.certificates.certificate import Certificate
from attractor.margin.faces.uniqueness import Uniqueness, uniqueness_of
from attractor.margin.problem import MarginProblem

_MOST_BYTES = 2**28
"""Answers kept in a block; those that come later are not."""


class Answers(NamedTuple):
    """What ``solve`` finds of several instances with as many constraints each.

    Attributes:
        W: Their matrices.
        multipliers: Their multipliers, no slot empty.
        status: Their statuses.
        certificate: What is proved of them, no slot empty.
    """

    W: Float[np.ndarray, "instance d e"]
    multipliers: Float[np.ndarray, "instance m"]
    status: np.ndarray
    certificate: Certificate


@dataclass
class Memory:
    """The answers found in a block, and which row of which holds an instance.

    Several threads may use it: at worst an instance is solved twice, to the same bits.
    """

    places: dict[Hashable, tuple[Answers, int]] = field(default_factory=dict)
    size: int = 0
    judged: dict[Hashable, tuple[Uniqueness, np.ndarray | None]] = field(default_factory=dict)

    def split(
        self, problem: MarginProblem, blocks: Sequence[Places], *settings: Hashable
    ) -> tuple[list[Places], list[tuple[Places, Answers]]]:
        """Blocks of the instances that are left to solve, and answers of those that are not.

        Args:
            problem: A batch.
            blocks: Instances of it with as many constraints each.
            settings: What answers depend on besides.
        """
        left: list[Places] = []
        known: list[tuple[Places, Answers]] = []
        for block in blocks:
            numbers = np.arange(len(problem))[block]
            found = [self.places.get(key) for key in _keys(problem, block, settings)]
            new = np.array([place is None for place in found])
            if new.any():
                left.append(block if new.all() else as_places(numbers[new]))
            if not new.all():
                known.append((numbers[~new], _rows([one for one in found if one is not None])))
        return left, known

    def uniqueness_of(
        self,
        problem: MarginProblem,
        W: Float[np.ndarray, "d e"],
        multipliers: Float[np.ndarray, "m"],
        gap: float,
        geometry: Geometry,
    ) -> tuple[Uniqueness, Float[np.ndarray, "d e"] | None]:
        """The same of ``uniqueness_of``, found once for solutions of the same bits."""
        arrays = problem.left, problem.right, problem.bounds, problem.equality, W, multipliers
        kind = type(geometry), geometry.name
        key = (_digest(arrays), problem.left.shape, problem.right.shape, gap, kind)
        if key not in self.judged:
            self.judged[key] = uniqueness_of(problem, W, multipliers, gap, geometry)
        return self.judged[key]

    def keep(
        self, problem: MarginProblem, block: Places, answers: Answers, *settings: Hashable
    ) -> None:
        """Keeps the answers of a block, while there is room."""
        self.size += answers.W.nbytes + answers.multipliers.nbytes
        if self.size <= _MOST_BYTES:
            keys = _keys(problem, block, settings)
            self.places.update((key, (answers, row)) for row, key in enumerate(keys))


_memory: contextvars.ContextVar[Memory | None] = contextvars.ContextVar("solved", default=None)


@contextlib.contextmanager
def solved_once() -> Iterator[None]:
    """Inside the block no instance is solved twice in one norm, to one tolerance.

    As an instance gets the same bits whatever is solved beside it, this changes none. It holds for
    threads that the block starts, too; blocks within one share its answers.
    """
    if _memory.get() is not None:
        yield
        return
    before = _memory.set(Memory())
    try:
        yield
    finally:
        _memory.reset(before)


def memory() -> Memory | None:
    """Where answers are kept; None outside of every block."""
    return _memory.get()


def _keys(problem: MarginProblem, block: Places, settings: tuple[Hashable, ...]) -> list[Hashable]:
    """What tells the instances of a block from all others."""
    part, _ = without_empty_slots(problem, block)
    keys: list[Hashable] = []
    for row in zip(part.left, part.right, part.bounds, part.equality, strict=True):
        keys.append((_digest(row), row[0].shape, row[1].shape, settings))
    return keys


def _digest(arrays: Iterable[np.ndarray]) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    for array in arrays:
        digest.update(array.tobytes())
    return digest.digest()


def _rows(places: list[tuple[Answers, int]]) -> Answers:
    """Rows of several answers, one after another."""
    return Answers(
        np.stack([answers.W[row] for answers, row in places]),
        np.stack([answers.multipliers[row] for answers, row in places]),
        np.array([answers.status[row] for answers, row in places], dtype=object),
        Certificate.concatenated([answers.certificate[row : row + 1] for answers, row in places]),
    )

"""A run on disk, from which a killed one goes on as if nothing had happened.

``state.safetensors`` says how far every block of trials has come and is replaced at each write. New
measurements go into a numbered file of their own before it, so that none is written twice. A
numbered file that the state does not count belongs to a write that was killed; it is removed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree
from safetensors.numpy import save

from attractor.results.provenance.fingerprint import digest
from attractor.support.containers import StoredTensors
from attractor.support.errors import FileFormatError
from attractor.support.storage import write_file
from attractor.training.measurements import Measurements
from attractor.training.programs.blocks import BlockProgress

_STATE = "state.safetensors"
_PART = "measurements-{:06d}.safetensors"
_ANY_PART = "measurements-*.safetensors"


class _StoredCarry(dict[str, np.ndarray]):
    """The leaves of a carry by their tree paths, as read from disk."""


class SavedRun:
    """The run in a folder, and how far every block of it has come.

    Attributes:
        progress: A ``BlockProgress`` for every block.
    """

    def __init__(
        self,
        folder: Path,
        every: float,
        blocks: Sequence[Int[np.ndarray, "block"]],
        measurements: Measurements,
    ) -> None:
        """Reads what the folder holds into the measurements.

        Raises:
            FileFormatError: If a file is damaged or missing.
        """
        self._folder, self._every = folder, every
        self._blocks, self._measurements = blocks, measurements
        self._writing = threading.Lock()
        self._last = time.monotonic()
        self._parts = 0
        self.progress = [BlockProgress(None, 0, 0) for _ in blocks]
        if (folder / _STATE).exists():
            try:
                self._read()
            except FileFormatError:
                raise
            except Exception as error:  # what is stored may be anything
                raise _damaged(folder / _STATE, repr(error)) from error
        self._remove_uncounted()
        self._stored = [each.records for each in self.progress]

    def ended(self, number: int) -> bool:
        """Whether a block has stored its last record."""
        return self.progress[number].records == self._measurements.records

    def carry(self, number: int, start: PyTree) -> PyTree:
        """The carry of a block as it is stored.

        Args:
            number: The block.
            start: Its carry before the first step, which has the same structure.

        Raises:
            FileFormatError: If the structure of the stored one is another.
        """
        stored = self.progress[number].carry
        if stored is None:
            return start
        named = _by_path(start)
        if _forms(stored) != _forms({name: _plain(leaf) for name, leaf in named.items()}):
            raise _damaged(self._folder / _STATE, f"block {number} is stored in another form")
        leaves = [_like(stored[name], leaf) for name, leaf in named.items()]
        return jax.tree.structure(start).unflatten(leaves)

    def note(self, number: int, reached: BlockProgress) -> None:
        """Notes how far a block has come, and writes if it is time."""
        ended = reached.records == self._measurements.records
        self.progress[number] = reached._replace(carry=None) if ended else reached
        if time.monotonic() - self._last >= self._every and self._writing.acquire(blocking=False):
            try:
                self._write()
            finally:
                self._writing.release()

    def write(self) -> None:
        """Writes everything; killed at any moment, it leaves the write before in force."""
        with self._writing:
            self._write()

    def _write(self) -> None:
        progress = list(self.progress)  # first: the records it counts are stored already
        grown = [
            (number, first, each.records)
            for number, (first, each) in enumerate(zip(self._stored, progress, strict=True))
            if each.records > first
        ]
        parts = self._parts
        if grown:
            new = {"ranges": np.array(grown)}
            for number, first, stop in grown:
                stored = self._measurements.stored(self._blocks[number], first, stop)
                new |= {f"block {number} {name}": array for name, array in stored.items()}
            _save(self._folder / _PART.format(parts), new)
            parts += 1
        state = {
            "steps": np.array([each.step for each in progress]),
            "records": np.array([each.records for each in progress]),
            "parts": np.array(parts),
            "status": self._measurements.status,
            "steps_taken": self._measurements.steps_taken,
        }
        for number, each in enumerate(progress):
            named = _by_path(each.carry)
            state |= {f"block {number} {name}": _plain(leaf) for name, leaf in named.items()}
        _save(self._folder / _STATE, state)
        self._parts, self._stored = parts, [each.records for each in progress]
        self._last = time.monotonic()

    def _read(self) -> None:
        state = _load(self._folder / _STATE)
        measurements = self._measurements
        measurements.status[:] = state.pop("status")
        measurements.steps_taken[:] = state.pop("steps_taken")
        steps, records = state.pop("steps").tolist(), state.pop("records").tolist()
        self._parts = int(state.pop("parts"))
        carries: dict[int, _StoredCarry] = {}
        for label, array in state.items():
            _, number, name = label.split(" ", 2)
            carries.setdefault(int(number), _StoredCarry())[name] = array
        self.progress = [
            BlockProgress(carries.get(number), steps[number], records[number])
            for number in range(len(self._blocks))
        ]
        stored = [0] * len(self._blocks)
        for part in range(self._parts):
            file = self._folder / _PART.format(part)
            arrays = _load(file)
            ranges = {number: (a, b) for number, a, b in arrays.pop("ranges").tolist()}
            for number, (first, stop) in ranges.items():
                if first != stored[number]:
                    raise _damaged(file, f"the records of block {number} do not begin at {first}")
                stored[number] = stop
            for label, array in arrays.items():
                _, number, name = label.split(" ", 2)
                block = self._blocks[int(number)]
                measurements.put(name, block, *ranges[int(number)], array)
        if stored != records:
            raise _damaged(self._folder / _STATE, "it counts other records than are stored")

    def _remove_uncounted(self) -> None:
        counted = {_PART.format(part) for part in range(self._parts)}
        for file in self._folder.glob(_ANY_PART):
            if file.name not in counted:
                file.unlink()


def _save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_file(path, save(arrays, metadata={"digest": _digest(arrays)}))


def _load(path: Path) -> dict[str, np.ndarray]:
    try:
        stored = StoredTensors(path)
        arrays = dict(stored)
    except FileFormatError as error:
        raise _damaged(path, str(error)) from error
    expected = stored.metadata.get("digest")
    if expected != _digest(arrays):
        raise _damaged(path, "its contents are not those written")
    return arrays


def _digest(arrays: dict[str, np.ndarray]) -> str:
    names = sorted(arrays)
    return digest(*(arrays[name] for name in names), text="\n".join(names))


def _damaged(path: Path, reason: str) -> FileFormatError:
    return FileFormatError(
        f"{path}: damaged or missing ({reason}). Restore it, or delete the folder to begin anew."
    )


def _by_path(carry: PyTree) -> dict[str, Any]:
    """The leaves of a carry by their tree paths; none for a block that has none."""
    if isinstance(carry, _StoredCarry):
        return dict(carry)
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(carry)}


def _forms(arrays: dict[str, np.ndarray]) -> dict[str, tuple]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


def _plain(leaf: Array | np.ndarray) -> np.ndarray:
    """A leaf as an array of numbers; random keys are their data."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _like(stored: np.ndarray, leaf: Array) -> Array | np.ndarray:
    """A stored array as the kind of leaf it was."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=jax.random.key_impl(leaf))
    return stored

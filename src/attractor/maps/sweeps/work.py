"""What a process does with a chunk: computes it, checks it, writes it where it sees the store."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attractor.maps.sweeps.experiment import Experiment, source_of
from attractor.maps.sweeps.grid import Chunk
from attractor.maps.sweeps.storage.store import DONE, Record, SweepStore, checksum
from attractor.support.checks import shown
from attractor.support.errors import AttractorError, InvalidInputError
from attractor.support.machine import kind_of_processor, use_compilation_cache
from attractor.support.randomness import seeded
from attractor.support.threads import use_threads

HANGS = "it hangs: there was no result in {:,.0f} s (patience_chunk)"
"""What is said of a chunk that took too long."""

_LONGEST = 4000
"""Characters of a traceback that are kept."""
_FAREWELL = 5.0
"""Seconds in which the answer of a process that will end reaches the scheduler."""


class Job(NamedTuple):
    """What all chunks of a sweep have in common.

    Attributes:
        path: The store, which this process may see or not.
        token: What tells the store from any other at the same path of another machine.
        experiment: What is done.
        source: SHA-256 of its source.
        threads: Threads of the library in each process; None for as many as it is set up for.
        client: The process that takes the answers.
    """

    path: str
    token: str
    experiment: Experiment
    source: str
    threads: int | None
    client: tuple[str, int]


class Outcome(NamedTuple):
    """What became of a chunk.

    Attributes:
        seconds: How long it took.
        record: Its record; None if it failed.
        arrays: Its measures, where this process does not see the store.
        error: What it failed with, in a sentence.
        traceback: Where it failed.
        worker: The address of a worker that has to end, as a chunk hangs in it.
    """

    seconds: float
    record: Record | None = None
    arrays: dict[str, np.ndarray] | None = None
    error: str = ""
    traceback: str = ""
    worker: str | None = None


def this_process() -> tuple[str, int]:
    """The machine and the number of this process."""
    return platform.node(), os.getpid()


def run_chunk(job: Job, chunk: Chunk, patience: float | None = None) -> Outcome:
    """Computes a chunk and writes it, its record last.

    Args:
        job: What all chunks have in common.
        chunk: The chunk.
        patience: Seconds after which it counts as hanging; None waits for ever.

    Returns:
        What became of it. What the experiment raises is an answer, and so is that it hangs.

    Raises:
        InvalidInputError: If this process has another experiment of that name, or none; or if the
            experiment returns what it must not.
        WriteError: If the store cannot be written.
    """
    began = time.perf_counter()
    require_same_source(job.experiment, job.source)
    elsewhere = this_process() != job.client
    if elsewhere:
        _prepare()
    try:
        computing = functools.partial(_compute, job, chunk)
        arrays = computing() if patience is None else _within(patience, computing)
    except _HangsError:
        worker = _end_soon() if elsewhere else None
        said = HANGS.format(patience)
        return Outcome(time.perf_counter() - began, error=said, worker=worker)
    except BrokenContractError as error:
        raise InvalidInputError("experiment", *error.args) from None
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}"[:_LONGEST]
        text = "".join(traceback.format_exception(error))[-_LONGEST:]
        return Outcome(time.perf_counter() - began, error=said, traceback=text)
    seconds = time.perf_counter() - began
    crc = checksum(arrays, job.experiment.measures)
    record = Record(DONE, crc, seconds, processor_kind())
    there = _visible(job.path, job.token)
    if there is None:
        return Outcome(seconds, record, arrays)
    there.write(chunk, arrays, record)
    return Outcome(seconds, record)


@functools.cache
def _prepare() -> None:
    """What a worker does once: programs that others compiled need not be compiled again."""
    use_compilation_cache()


def _compute(job: Job, chunk: Chunk) -> dict[str, np.ndarray]:
    with contextlib.nullcontext() if job.threads is None else use_threads(job.threads):
        return compute(job.experiment, chunk)


class BrokenContractError(Exception):
    """An experiment returned what it must not: what was wrong, and what would be right."""


def compute(experiment: Experiment, chunk: Chunk) -> dict[str, np.ndarray]:
    """The measures of a chunk, in its shape in the arrays.

    Raises:
        BrokenContractError: If the experiment returns other measures than it declares, or of
            another shape or kind; whatever else it raises passes.
    """
    function = experiment.function()
    parts = []
    for point in chunk.points:
        # Other chunks in this process do not wait: one that hangs would hold them up.
        with seeded(
            chunk.instances.start, chunk.seeds.start, purpose=f"a sweep at {point}", alone=False
        ):
            found = function(point, np.array(chunk.instances), chunk.seeds, **experiment.settings)
        parts.append(_checked(experiment, chunk, found))
    shape = (*chunk.shape, *map(len, experiment.along.values()))
    return {
        name: np.stack([part[name] for part in parts]).reshape(shape)
        for name in experiment.measures
    }


def _checked(experiment: Experiment, chunk: Chunk, found: Any) -> dict[str, np.ndarray]:
    """What an experiment returned of a point, in the declared types."""
    measures: Mapping[str, Any] = experiment.measures
    if not isinstance(found, Mapping) or found.keys() != measures.keys():
        named = sorted(map(str, found)) if isinstance(found, Mapping) else shown(found)
        raise BrokenContractError(
            f"{experiment.name} returned {named}", f"Return {sorted(measures)}, as it declares"
        )
    lengths = [len(values) for values in experiment.along.values()]
    shape = (len(chunk.instances), len(chunk.seeds), *lengths)
    arrays = {}
    for name, (dtype, _) in measures.items():
        array = np.asarray(found[name])
        if array.shape != shape:
            raise BrokenContractError(
                f"{experiment.name} returned {name} of the shape {array.shape}",
                f"Return the shape {shape}: instances, seeds, and the further axes",
            )
        flags = dtype == "i1"
        if array.dtype.kind not in ("biu" if flags else "biuf"):
            kinds = "truth values or integers, with -1 for what is missing" if flags else "numbers"
            raise BrokenContractError(
                f"{experiment.name} returned {name} as {array.dtype}", f"Return {kinds}"
            )
        if flags and array.size and not (array.min() >= -1 and array.max() <= 127):
            raise BrokenContractError(
                f"{experiment.name} returned {name} from {array.min()} to {array.max()}",
                "Return numbers from -1 to 127",
            )
        arrays[name] = array.astype(dtype)
    return arrays


class _HangsError(Exception):
    """There was no result in time."""


def _within(patience: float, work: Callable[[], Any]) -> Any:
    """The result of work in a thread of its own, which is left to itself if it takes too long."""
    answer: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            answer.append((work(), None))
        except BaseException as error:
            answer.append((None, error))

    thread = threading.Thread(target=run, daemon=True, name="attractor-chunk")
    thread.start()
    thread.join(patience)
    if not answer:
        raise _HangsError
    result, error = answer[0]
    if error is not None:
        raise error
    return result


def _end_soon() -> str | None:
    """Ends this process, a worker, once its answer is on its way: its thread cannot be ended."""
    from distributed import get_worker

    try:
        address = get_worker().address
    except ValueError:  # no worker
        return None
    timer = threading.Timer(_FAREWELL, os._exit, (1,))
    timer.daemon = True
    timer.start()
    return address


def require_same_source(experiment: Experiment, source: str) -> None:
    """Refuses to compute with another version of the experiment than the client has.

    Raises:
        InvalidInputError: If this process has another version, or none.
    """
    if _source(experiment.name) != source:
        raise InvalidInputError(
            "experiment",
            f"the file of {experiment.name} is another one on {platform.node()}",
            "Let every worker have the same version, and start them anew",
        )


@functools.cache
def _source(name: str) -> str:
    return source_of(name)


@functools.lru_cache(maxsize=8)
def _visible(path: str, token: str) -> SweepStore | None:
    """The store, if this process sees it, and not another one at the same path."""
    try:
        there = SweepStore.open(Path(path))
    except AttractorError:
        return None
    return there if there.token == token else None


@functools.cache
def processor_kind() -> int:
    """The kind of this machine, on which the last bits of results depend, as a number."""
    return int(kind_of_processor().rpartition("-")[2], 16)

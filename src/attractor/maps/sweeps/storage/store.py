"""The store of a sweep: a Zarr group, in which a chunk of work is one chunk of every array.

Every file is written under another name and renamed, and the record of a chunk last. A chunk
without a record is computed again and gives the same bytes, so that processes that do the same
chunk need no locks. What went wrong is listed beside the store, in a file that one process writes.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import math
import shutil
import uuid
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attractor.maps.sweeps.experiment import Experiment, Measure
from attractor.maps.sweeps.grid import Chunk, Grid
from attractor.maps.sweeps.storage.layout import (
    MOST_CHUNKS,
    Layout,
    differences,
    identity_of,
    layout_of,
)
from attractor.support.checks import check_path
from attractor.support.containers.damage import damaged, parsing
from attractor.support.containers.json_text import parse_json, read_json
from attractor.support.errors import FileFormatError, InvalidInputError, WriteError
from attractor.support.memory import require_memory_for
from attractor.support.storage import append_line, new_directory
from attractor.support.storage.paths import check_replaceable

DONE, FAILED = 1, 2
FIELDS = ("state", "checksum", "seconds", "processor", "failures")
RECORD = "chunk_record"
FILL = {"f8": math.nan, "f4": math.nan, "i1": -1}
"""What is missing, by the type of numbers."""

_KEY = "attractor_sweep"
_MARKER = "zarr.json"
_KEYS: dict[str, Any] = {
    "name": "default",
    "separator": ".",
}  # one folder for an array, not one for each axis
_CODECS = {"BytesCodec", "BloscCodec"}
_HEADER = 2**10
"""Bytes that a file of a chunk may have beyond its numbers."""


class Record(NamedTuple):
    """What is known of a chunk that is done, or failed."""

    state: int
    checksum: int = 0
    seconds: float = 0.0
    processor: int = 0
    failures: int = 0


def require_sweep_libraries(*modules: str) -> None:
    """Checks that the optional libraries are installed.

    Raises:
        InvalidInputError: Naming what to install, if one is not.
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise InvalidInputError(
                "sweep",
                f"the library {module} cannot be imported ({error})",
                "Run `pip install 'attractor[sweep]'`",
            ) from None


class SweepStore:
    """The store of a sweep, open for reading and writing.

    Attributes:
        path: Its folder.
        layout: Its arrays and chunks.
        identity: What its numbers depend on.
        token: What tells it from every other store, of the same sweep, too.
    """

    def __init__(self, path: Path, layout: Layout, identity: dict[str, Any], token: str) -> None:
        """Opens nothing yet."""
        self.path, self.layout, self.identity, self.token = path, layout, identity, token

    @staticmethod
    def create_or_open(path: Any, grid: Grid, experiment: Experiment) -> SweepStore:
        """The store of a sweep at a path, which is made if there is none.

        Raises:
            InvalidInputError: If something else is at the path, such as the store of another sweep;
                or if there is no room for it.
            WriteError: If it cannot be written.
        """
        require_sweep_libraries("zarr")
        target = check_replaceable(check_path("store", path), _MARKER, argument="store")
        layout, identity = Layout.of(grid, experiment), identity_of(grid, experiment)
        if not (target / _MARKER).is_file():
            _require_room(layout, target)
            with new_directory(target) as folder:
                _create(folder, layout, identity | {"token": uuid.uuid4().hex})
        there = SweepStore.open(target)
        differing = differences(there.identity, identity)
        if differing:
            raise InvalidInputError(
                "store",
                f"{path} is of another sweep: {'; '.join(differing[:4])}",
                "Give the name of a new folder, or run what it was made with",
            )
        return SweepStore(target, layout, there.identity, there.token)

    @staticmethod
    def open(path: Any) -> SweepStore:
        """The store at a path, known from its files alone: nothing is imported that they name.

        Raises:
            InvalidInputError: If there is none.
            FileFormatError: If it is damaged.
        """
        require_sweep_libraries("zarr")
        folder = check_path("store", path)
        if not (folder / _MARKER).is_file():
            raise InvalidInputError(
                "store", f"there is no store of a sweep at {folder}", "Give the folder of one"
            )
        described = read_json(folder / _MARKER)
        try:
            attributes = described["attributes"]
            if _KEY not in attributes:
                raise InvalidInputError(
                    "store",
                    f"the folder {folder} holds a Zarr group that is no sweep",
                    "Give the folder of a sweep, or the name of a new one",
                )
            identity = dict(attributes[_KEY])
            token = str(identity.pop("token"))
            layout = layout_of(identity)
        except (LookupError, TypeError, AttributeError) as error:
            raise damaged(folder, "Zarr", f"{type(error).__name__}: {error}") from None
        _require_memory(layout)
        return SweepStore(folder, layout, identity, token)

    @functools.cached_property
    def _arrays(self) -> dict[str, Any]:
        """The arrays of the measures and of the records, each as it must be."""
        import zarr

        layout, arrays = self.layout, {}
        for name, expected in _specifications(layout):
            try:
                array = zarr.open_array(self.path / name, mode="r+", zarr_format=3)
                codecs = {type(codec).__name__ for codec in array.metadata.codecs}  # pyright: ignore
            except Exception as error:
                raise damaged(self.path, "Zarr", str(error), name) from None
            found = (array.shape, array.chunks, array.dtype)
            if found != expected or not codecs <= _CODECS:
                raise damaged(self.path, "Zarr", f"{name} is not as it was made", name)
            arrays[name] = array
        return arrays

    def check_arrays(self) -> None:
        """Checks that every array is as it was made.

        Raises:
            FileFormatError: If one is not.
        """
        _ = self._arrays

    def write(self, chunk: Chunk, arrays: Mapping[str, np.ndarray], record: Record) -> None:
        """Writes a chunk of every measure, and its record when they are there.

        Raises:
            WriteError: If that fails, on a full disk say; chunks that are done stay.
        """
        try:
            for name in self.layout.measures:
                self._arrays[name][(*chunk.region, Ellipsis)] = arrays[name]
        except OSError as error:
            raise WriteError(self.path, error) from error
        self.write_record(chunk, record)

    def write_record(self, chunk: Chunk, record: Record) -> None:
        """Writes the record of a chunk.

        Raises:
            WriteError: If that fails.
        """
        try:
            self._arrays[RECORD][(*chunk.place, slice(None))] = np.array(record, dtype=np.float64)
        except OSError as error:
            raise WriteError(self.path, error) from error

    def read(self, number: int) -> dict[str, np.ndarray] | None:
        """The measures of a chunk in its shape in the arrays; None where it is not done.

        Raises:
            FileFormatError: If what is stored is not what was computed.
        """
        place = self.layout.place(number)
        record = self._record(place)
        if record[0] != DONE:
            return None
        with contextlib.suppress(FileFormatError):
            found = {name: self._stored(name, number) for name in self.layout.measures}
            if checksum(found, self.layout.measures) == record[1]:
                return found
        raise FileFormatError(
            f"{self.path} is damaged: the chunk {place} is not what was computed. "
            "Run the sweep again, by the same command: it computes that chunk anew."
        )

    def damaged(self, numbers: np.ndarray) -> list[int]:
        """The chunks, of some, that ``read`` would refuse.

        Raises:
            FileFormatError: If the arrays are not as they were made.
        """
        self.check_arrays()
        return [number for number in map(int, numbers) if self._is_damaged(number)]

    def _is_damaged(self, number: int) -> bool:
        try:
            self.read(number)
        except FileFormatError:
            return True
        return False

    def _stored(self, name: str, number: int) -> np.ndarray:
        """What is stored of a measure of a chunk: Zarr leaves out what is all fill value."""
        from numcodecs import Blosc

        layout, chunk = self.layout, self.layout.chunk(number)
        dtype, shape = layout.measures[name].dtype, layout.shape(layout.chunk_shape)
        whole = np.zeros(shape, f"<{dtype}")
        content = self._content(name, (*chunk.place, *[0] * len(layout.along)), whole.nbytes)
        with parsing(self.path, "Zarr", f"{name} {chunk.place}"):
            if content is None:
                whole[...] = FILL[dtype]
            elif int.from_bytes(content[12:16], "little") != len(content):
                raise ValueError("it does not have the length that it declares")
            else:  # which looks at no length but those declared, and at the room that there is
                Blosc().decode(content, out=whole)
        return whole[tuple(map(slice, chunk.shape))]

    def records(self) -> np.ndarray:
        """The records of all chunks by their numbers, with the ``FIELDS``; zeros where none is."""
        places = map(self.layout.place, range(self.layout.chunks))
        return np.stack([self._record(place) for place in places])

    def _record(self, place: tuple[int, ...]) -> np.ndarray:
        found = np.zeros(len(FIELDS))
        content = self._content(RECORD, (*place, 0), found.nbytes) or b""
        if len(content) == found.nbytes:
            stored = np.frombuffer(content, "<f8")
            if stored[0] in (DONE, FAILED) and np.isfinite(stored).all() and stored.min() >= 0:
                found[:] = stored
        return found

    def _content(self, name: str, place: tuple[int, ...], most: int) -> bytes | None:
        """The file of a chunk of an array, or its beginning; None where there is none.

        Files are read as they were written: through Zarr it takes many times as long.
        """
        file = self.path / name / ".".join(map(str, ("c", *place)))
        with parsing(self.path, "Zarr", file.name):
            if not file.is_file():
                return None
            with file.open("rb") as stream:
                return stream.read(most + _HEADER)

    def add_failure(self, share: tuple[int, int] | None, failure: Mapping[str, Any]) -> None:
        """Adds a failure to the list beside the store: of each share its own, so of one writer.

        Raises:
            WriteError: If that fails.
        """
        part = "" if share is None else f"-{share[0]}-of-{share[1]}"
        place = self.path.with_name(f"{self.path.name}.failures{part}.jsonl")
        append_line(place, json.dumps(failure, ensure_ascii=False))

    def failures(self) -> dict[tuple[int, ...], dict[str, Any]]:
        """The last failure of every chunk that ever failed, by its place."""
        found: dict[tuple[int, ...], dict[str, Any]] = {}
        for file in sorted(self.path.parent.iterdir()):
            beside = file.name.startswith(f"{self.path.name}.failures")
            if not (beside and file.name.endswith(".jsonl") and file.is_file()):
                continue
            with file.open("rb") as lines:
                for line in iter(lambda: lines.readline(2**16), b""):
                    try:
                        failure = parse_json(line)
                        found[tuple(map(int, failure["place"]))] = failure
                    except (ValueError, LookupError, TypeError, AttributeError):
                        continue  # a line cut short, or none of ours
        return found


def checksum(arrays: Mapping[str, np.ndarray], measures: Iterable[str]) -> int:
    """CRC-32 over a chunk of measures, in their order."""
    total = 0
    for name in measures:
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), total)
    return total


def coordinates(layout: Layout) -> Iterator[tuple[str, Any]]:
    """The values along each axis, by its name."""
    grid = layout.grid
    yield from grid.axes.items()
    yield "instance", grid.first_instance + np.arange(grid.instances)
    yield "seed", grid.first_seed + np.arange(grid.seeds)
    yield from layout.along.items()


def _specifications(
    layout: Layout,
) -> Iterator[tuple[str, tuple[tuple[int, ...], tuple[int, ...], np.dtype]]]:
    """Shape, shape of chunks and type of each measure, and of the records."""
    for name, measure in layout.measures.items():
        shape, chunks = layout.shape(layout.grid.shape), layout.shape(layout.chunk_shape)
        yield name, (shape, chunks, np.dtype(measure.dtype))
    ones, fields = (1,) * len(layout.counts), (len(FIELDS),)
    yield RECORD, ((*layout.counts, *fields), (*ones, *fields), np.dtype("f8"))


def _create(folder: Path, layout: Layout, identity: dict[str, Any]) -> None:
    """Writes the descriptions of all arrays, and the values along axes, into an empty folder."""
    import zarr

    group = zarr.open_group(folder, mode="a", zarr_format=3)
    for name, (shape, chunks, dtype) in _specifications(layout):
        record = name == RECORD
        dims = (*(f"chunk_{dim}" for dim in layout.grid.dims), "field") if record else layout.dims
        measure = layout.measures.get(name)
        described: Any = {"fields": list(FIELDS)} if measure is None else attributes(measure)
        group.create_array(
            name,
            shape=shape,
            chunks=chunks,
            dtype=dtype,
            fill_value=0 if measure is None else FILL[measure.dtype],
            dimension_names=dims,
            chunk_key_encoding=_KEYS,
            compressors=None
            if measure is None
            else [
                zarr.codecs.BloscCodec(
                    cname="zstd", clevel=5, shuffle="shuffle", typesize=dtype.itemsize
                )
            ],
            attributes=described,
        )
    for name, values in coordinates(layout):
        described, numbers = {}, np.asarray(values)
        if numbers.dtype.kind == "U":  # Zarr 3 has no settled form of texts yet
            codes = list(range(len(values)))
            described = {"flag_values": codes, "flag_meanings": list(values)}
            numbers = np.array(codes, dtype=np.int32)
        group.create_array(name, data=numbers, dimension_names=(name,), attributes=described)
    group.update_attributes({_KEY: identity})
    with warnings.catch_warnings():  # that it is no part of the specification yet
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(folder)  # or xarray warns that it looks for it


def attributes(measure: Measure) -> dict[str, Any]:
    """What an array says of its measure."""
    described: dict[str, Any] = {"long_name": measure.description}
    return described | ({"missing": -1} if measure.dtype == "i1" else {})


def _require_room(layout: Layout, target: Path) -> None:
    """Refuses a sweep with more chunks, or larger ones, than there is room for."""
    place = next(folder for folder in (target, *target.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if layout.chunks > MOST_CHUNKS or layout.bytes > free:
        grid = layout.grid
        raise InvalidInputError(
            "grid",
            f"{grid.points:,} points are {grid.trials:,} trials in {layout.chunks:,} chunks, which"
            f" would take up to {_size(layout.bytes)} of disk; {_size(free)} are free",
            f"Give fewer points, or larger chunks: at most {MOST_CHUNKS:,}",
        )
    _require_memory(layout)


def _require_memory(layout: Layout) -> None:
    """Refuses chunks, and axes, that do not fit into memory, whoever says that there are such."""
    require_memory_for(
        "chunk",
        math.prod(layout.chunk_shape),
        "trials at once",
        each=2 * layout.bytes / layout.grid.trials,
        otherwise="Give fewer values along the further axes",
    )
    for name in ("instances", "seeds"):
        require_memory_for(name, getattr(layout.grid, name), name, each=16, otherwise="Give fewer")


def _size(count: float) -> str:
    return f"{count / 1e12:,.1f} TB" if count >= 1e12 else f"{count / 1e9:,.2f} GB"

"""Captured heads on disk: one NetCDF file, a group a layer, written and read a layer at a time."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from attractor.heads.captured.captured import (
    Captured,
    CapturedLayer,
    CaptureStatus,
    Projections,
    worst,
)
from attractor.support.checks import check_path
from attractor.support.containers import parse_json, parsing, read_group
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import StreamedNetCDF, existing_file, writing_netcdf

if TYPE_CHECKING:
    import xarray as xr

_FORMAT = "attractor captured heads"
_VERSION = 1
_CHUNK = 2**18
"""Bytes of a chunk of rows, about: several are written at once."""
_AXES = {
    "queries": ("query", "head", "width"),
    "keys": ("query", "key_head", "token", "width"),
    "allowed": ("query", "token"),
    "attention": ("query", "head", "token"),
    "values": ("query", "key_head", "token", "value_width"),
}
"""The arrays of a layer with a row for each query."""
_PROJECTIONS = {
    "query": ("head", "width", "query_hidden"),
    "bias": ("head", "width"),
    "key": ("key_head", "width", "key_hidden"),
}
"""The matrices that a layer makes queries and keys with."""


class CapturedWriter:
    """A file of captured heads that is being written, a piece of a layer at a time."""

    def __init__(self, stored: StreamedNetCDF, path: Path) -> None:
        """Takes the file, which is empty yet, and where it will be."""
        self._stored, self._path, self._groups = stored, path, {}
        self._heads: dict[int, dict[int, tuple[np.ndarray, tuple[CaptureStatus, ...]]]] = {}

    def write(self, number: int, layer: CapturedLayer, start: int = 0) -> None:
        """Writes queries of a layer.

        Args:
            number: The number of the layer.
            layer: The queries.
            start: The number of the first of them; rows that were there already are replaced.

        Raises:
            OSError: If the disk does not take them.
        """
        if number not in self._groups:
            self._groups[number] = _group(self._stored.root, number, layer)
        group = self._groups[number]
        stop = start + len(layer.queries)
        if stop > group.dimensions["query"].size:
            group.resize_dimension("query", stop)
        for name in _AXES:
            array = getattr(layer, name)
            if array is not None:
                group.variables[name][start:stop] = array
        self._heads.setdefault(number, {})[start] = (layer.self_check, layer.status)
        self._stored.check()

    def layers(self, count: int) -> dict[int, Callable[[], CapturedLayer]]:
        """What reads each layer from the file, once that has appeared.

        Args:
            count: The number of queries; rows beyond them go.
        """
        for number, group in self._groups.items():
            group.resize_dimension("query", count)
            pieces = {start: one for start, one in self._heads[number].items() if start < count}
            self._heads[number] = pieces
        return {number: functools.partial(_layer, self._path, number) for number in self._groups}

    def describe(self, captured: Captured) -> None:
        """Writes what all layers share.

        Args:
            captured: What to write; its layers are not read.

        Raises:
            OSError: If the disk does not take it.
        """
        for number, group in self._groups.items():
            self_check, status = worst(list(self._heads[number].values()))
            _put(group, "self_check", ("head",), self_check)
            _put(group, "status", ("head",), [str(one) for one in status])
        numbers: dict[str, int] = {}
        text_of = [numbers.setdefault(one, len(numbers)) for one in captured.token.flat]
        _put(self._stored.root, "layers", ("layer",), sorted(self._groups))
        _put(self._stored.root, "document", ("query",), captured.document)
        _put(self._stored.root, "position", ("query",), captured.position)
        _put(self._stored.root, "texts", ("text",), list(map(_storable, numbers)))
        shape = captured.token.shape
        _put(self._stored.root, "text_of", ("query", "token"), np.reshape(text_of, shape))
        _put(self._stored.root, "special", ("query", "token"), captured.special)
        self._stored.root.attrs["format"] = _FORMAT
        self._stored.root.attrs["version"] = _VERSION
        self._stored.root.attrs["origin"] = json.dumps(captured.origin)
        self._stored.check()


@contextlib.contextmanager
def writing_captured(
    path: str | os.PathLike[str], *, needed: float = 0.0
) -> Iterator[CapturedWriter]:
    """Yields a writer of captured heads; the file appears when the block ends without an error.

    Args:
        path: The file, ending in ``.nc``; one that is there is replaced.
        needed: Bytes that it will take, where they are known.

    Raises:
        InvalidInputError: If the path cannot be written, or its name ends in anything else.
        WriteError: If the disk has less space free, or writing fails; what was there stays.
    """
    path = check_path("path", path)
    if path.suffix != ".nc":
        raise InvalidInputError("path", f"{path} ends in {path.suffix!r}", "Give .nc")
    with writing_netcdf(path, needed=needed) as stored:
        yield CapturedWriter(stored, path.absolute())


def load_captured(path: str | os.PathLike[str]) -> Captured:
    """Reads captured heads: what all layers share at once, a layer when it is asked for.

    Raises:
        InvalidInputError: If there is no such file, or less memory than it takes.
        FileFormatError: If the file is damaged, or holds something else.
    """
    file = existing_file(path, "Give a file that capture_heads or Captured.save wrote").absolute()
    data = read_group(file)
    if (data.attrs.get("format"), data.attrs.get("version")) != (_FORMAT, _VERSION):
        raise FileFormatError(f"{path}: no captured heads of version {_VERSION}.")
    with _restoring(file):
        texts, codes = data["texts"].to_numpy(), _array(data, "text_of", "iu")
        origin = parse_json(data.attrs["origin"])
        if not isinstance(origin, dict) or not all(isinstance(v, str) for v in origin.values()):
            raise ValueError("its origin is no object of texts")
        if codes.size and not (codes.min() >= 0 and codes.max() < len(texts)):
            raise ValueError("a token has no text")
        numbers = _array(data, "layers", "iu").tolist()
        if min(numbers) < 0 or len(set(numbers)) < len(numbers):
            raise ValueError("its layers are not numbered")
        return Captured(
            {number: functools.partial(_layer, file, number) for number in numbers},
            document=data["document"].to_numpy(),
            position=data["position"].to_numpy(),
            token=texts[codes],
            special=_array(data, "special", "b"),
            origin=origin,
        )


def _layer(file: Path, number: int) -> CapturedLayer:
    """A layer of a file."""
    data = read_group(file, _name(number))
    with _restoring(file):
        found = {name: _array(data, name, "f") for name in ("queries", "keys", "attention")}
        values = _array(data, "values", "f") if "values" in data else None
        matrices = {
            name: _array(data, f"projection_{name}", "f")
            for name in _PROJECTIONS
            if f"projection_{name}" in data
        }
        status = tuple(CaptureStatus(text) for text in data["status"].to_numpy().tolist())
        allowed = _array(data, "allowed", "b")
        self_check = _array(data, "self_check", "f")
        if not allowed.any(-1).all():
            raise ValueError(f"a query of layer {number} may attend to nothing")
        return CapturedLayer(
            **found,
            allowed=allowed,
            values=values,
            self_check=self_check,
            status=status,
            projections=Projections(**matrices) if matrices else None,
        )


@contextlib.contextmanager
def _restoring(file: Path) -> Iterator[None]:
    """Turns the error of arrays that do not fit into one of the file."""
    try:
        with parsing(file, _FORMAT):
            yield
    except InvalidInputError as error:
        raise FileFormatError(f"{file}: no captured heads that fit together: {error}") from error


def _array(data: xr.Dataset, name: str, kinds: str) -> np.ndarray:
    array = data[name].to_numpy()
    if array.dtype.kind not in kinds or 0 in array.shape:
        raise ValueError(f"{name} is of {array.dtype} and of the shape {array.shape}")
    return array


def _storable(text: str) -> str:
    """A text that HDF5 can hold: no zeros in it, no halves of characters."""
    return text.replace("\0", "\u2400").encode("utf-8", "replace").decode()


def _name(number: int) -> str:
    return f"layer_{number}"


def _group(root: Any, number: int, layer: CapturedLayer) -> Any:
    """A group of the file with the arrays of a layer, without rows yet."""
    group = root.create_group(_name(number))
    sizes = {"query": None}
    arrays = {name: getattr(layer, name) for name in _AXES}
    for name, array in arrays.items():
        if array is not None:
            sizes |= dict(zip(_AXES[name][1:], array.shape[1:], strict=True))
    group.dimensions = sizes
    for name, array in arrays.items():
        if array is not None:
            rows = max(1, min(1024, _CHUNK // (array[0].nbytes or 1)))
            _create(group, name, _AXES[name], array.dtype, chunks=(rows, *array.shape[1:]))
    for name, axes in _PROJECTIONS.items():
        matrices = getattr(layer.projections, name, None)
        if matrices is not None:
            _put(group, f"projection_{name}", axes, matrices)
    return group


def _put(group: Any, name: str, axes: tuple[str, ...], given: Any) -> None:
    """Writes a whole array."""
    array = np.asarray(given)
    for axis, size in zip(axes, array.shape, strict=True):
        if axis not in group.dimensions:
            group.dimensions[axis] = size
    _create(group, name, axes, array.dtype)[...] = array.astype(
        object if array.dtype.kind == "U" else array.dtype
    )


def _create(group: Any, name: str, axes: tuple[str, ...], dtype: np.dtype, **options: Any) -> Any:
    """An array of a group; NetCDF has no booleans, and texts of any length alone."""
    kind: Any = {"b": np.int8, "U": h5py.string_dtype()}.get(dtype.kind, dtype)
    variable = group.create_variable(name, axes, kind, **options)
    if dtype.kind == "b":
        variable.attrs["dtype"] = "bool"  # as xarray has it
    return variable

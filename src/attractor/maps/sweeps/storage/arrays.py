"""The labeled arrays of a sweep, read chunk by chunk."""

from __future__ import annotations

import itertools
import json
import math
import os
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core.indexing import (
    ExplicitIndexer,
    IndexingSupport,
    LazilyIndexedArray,
    explicit_indexing_adapter,
)

from attractor.maps.sweeps.storage.store import (
    FILL,
    SweepStore,
    attributes,
    coordinates,
)
from attractor.support.memory import require_memory


def open_sweep(store: str | os.PathLike[str]) -> xr.Dataset:
    """The results of a sweep as labeled arrays, which are read where they are used.

    What is not done yet, or failed, is NaN, and -1 in flags. Every chunk is compared with its
    checksum when it is read, and a damaged one refused. The store is a Zarr group, which
    ``xarray.open_zarr`` opens, too, with numbers in the place of texts, and without the comparison.

    Args:
        store: The folder that the sweep was written to.

    Returns:
        A variable for each measure, along the axes of the grid, ``instance``, ``seed``, and the
        further axes of the experiment.

    Raises:
        InvalidInputError: If there is no store of a sweep.
        FileFormatError: If it is damaged; where a chunk is, when that is read.
    """
    there = SweepStore.open(store)
    there.check_arrays()
    return xr.open_dataset(there, engine=_Reader)  # pyright: ignore[reportArgumentType]


class _Reader(BackendEntrypoint):
    """Opens what a sweep measures, known by name from its description, and nothing else."""

    open_dataset_parameters = ("filename_or_obj", "drop_variables")

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: Any = None) -> xr.Dataset:
        """The labeled arrays of a store."""
        layout, described = filename_or_obj.layout, filename_or_obj.identity["experiment"]
        return xr.Dataset(
            {
                name: (
                    layout.dims,
                    LazilyIndexedArray(_Measure(filename_or_obj, name)),
                    attributes(measure),
                )
                for name, measure in layout.measures.items()
            },
            {name: np.array(values) for name, values in coordinates(layout)},
            {"experiment": described["name"], "settings": json.dumps(described["settings"])},
        )


class _Measure(BackendArray):
    """A measure of a store, read a chunk at a time."""

    def __init__(self, store: SweepStore, name: str) -> None:
        layout = store.layout
        self._store, self._name = store, name
        self.shape = layout.shape(layout.grid.shape)
        self.dtype = np.dtype(layout.measures[name].dtype)

    def __getitem__(self, key: ExplicitIndexer) -> Any:
        return explicit_indexing_adapter(key, self.shape, IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        """What lies at some places along each axis."""
        layout = self._store.layout
        chosen = [np.arange(size)[one] for size, one in zip(self.shape, key, strict=True)]
        shape = [size for places in chosen for size in places.shape]
        require_memory(
            "store",
            f"{self._name}, of the shape {tuple(shape)},",
            needed=self.dtype.itemsize * math.prod(shape),
            remedy=lambda available: "Read a part of it",
        )
        found = np.full([places.size for places in chosen], FILL[self.dtype.str[1:]], self.dtype)
        sizes = layout.shape(layout.chunk_shape)
        axes = [_by_chunk(np.ravel(one), size) for one, size in zip(chosen, sizes, strict=True)]
        for parts in itertools.product(*axes):
            place = [at for at, _, _ in parts[: len(layout.counts)]]
            chunk = self._store.read(int(np.ravel_multi_index(place, layout.counts)))
            if chunk is not None:
                to, of = zip(*((to, of) for _, to, of in parts), strict=True)
                found[np.ix_(*to)] = chunk[self._name][np.ix_(*of)]
        return found.reshape(shape)


def _by_chunk(
    places: Int[np.ndarray, "place"], size: int
) -> list[tuple[int, Int[np.ndarray, "part"], Int[np.ndarray, "part"]]]:
    """Of places along an axis those in each chunk: its number, which they are, where they are."""
    order = np.argsort(places, kind="stable")
    numbers, first = np.unique(places[order] // size, return_index=True)
    parts = np.split(order, first[1:])
    return [
        (number, part, places[part] - number * size)
        for number, part in zip(numbers.tolist(), parts, strict=False)  # none of no places
    ]

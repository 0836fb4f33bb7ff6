"""What the numbers of a sweep depend on, and how that differs from another sweep's."""

from __future__ import annotations

import functools
import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from typing import Any

from attractor.maps.sweeps.experiment import DTYPES, Experiment, Measure
from attractor.maps.sweeps.grid import Grid, axis_values, check_word
from attractor.maps.sweeps.storage.layout import MOST_CHUNKS, Layout
from attractor.support.errors import InvalidInputError
from attractor.version import __version__

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

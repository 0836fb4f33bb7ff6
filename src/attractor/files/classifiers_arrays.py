"""What the variables of a file of classifier results mean together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attractor.errors import InvalidInputError
from attractor.files.classifiers_layout import CLASSIFIERS_LAYOUT
from attractor.files.classifiers_loaded import LoadedClassifiers

if TYPE_CHECKING:
    import xarray as xr

_WANTED = (
    "Give results of classifiers over the dimensions optimizer and seed, such as the results.nc "
    "beside the figures of mirror-descent/text-generalization"
)
_KINDS = ("text", "image")


def interpret_classifiers(data: xr.Dataset, file: str) -> LoadedClassifiers:
    """Checks the results of classifiers.

    Args:
        data: The results.
        file: Name of the file, for errors.

    Raises:
        InvalidInputError: If a dimension or the accuracies are missing, or a variable that claims
            read cannot be used.
    """
    for name in ("optimizer", "seed"):
        if not data.sizes.get(name):
            raise InvalidInputError(
                name, f"{file} holds no results over a dimension of this name", _WANTED
            )
    if "test_accuracy" not in data:
        raise InvalidInputError("test_accuracy", f"{file} has no such variable", _WANTED)
    data = data.assign_coords(
        {name: _names(name, data, file) for name in ("optimizer", "matrix") if name in data.sizes}
    )
    _check_seeds(data)
    for name, (dimensions, _) in CLASSIFIERS_LAYOUT.items():
        if name in data:
            _check_variable(data[name], dimensions)
    accuracy = data["test_accuracy"].to_numpy()
    if ((accuracy < 0) | (accuracy > 1)).any():
        raise InvalidInputError(
            "test_accuracy",
            f"it goes from {np.nanmin(accuracy):g} to {np.nanmax(accuracy):g}",
            "Give shares from 0 to 1, and NaN where a model has none",
        )
    _check_attributes(data)
    return LoadedClassifiers(data)


def _names(name: str, data: xr.Dataset, file: str) -> list[str]:
    """The names along a dimension; what reads NetCDF may keep text as Python objects."""
    names = data.indexes[name].tolist() if name in data.indexes else []
    if not names or not all(isinstance(each, str) for each in names):
        raise InvalidInputError(
            name,
            f"{file} does not name what lies along it by text",
            f"Give the dimension a coordinate of names: data.assign_coords({name}=[...])",
        )
    if len(set(names)) < len(names):
        raise InvalidInputError(name, f"its names repeat: {', '.join(names)}", "Name each once")
    return names


def _check_seeds(data: xr.Dataset) -> None:
    seeds = data["seed"].to_numpy()
    if seeds.dtype.kind not in "iu" or len(np.unique(seeds)) < len(seeds):
        raise InvalidInputError(
            "seed", f"they are {seeds.tolist()}", "Number them by different whole numbers"
        )


def _check_variable(variable: xr.DataArray, dimensions: tuple[str, ...]) -> None:
    if set(variable.dims) != set(dimensions):
        found = ", ".join(map(str, variable.dims)) or "nothing"
        raise InvalidInputError(
            str(variable.name), f"it lies over {found}", f"Give it over {', '.join(dimensions)}"
        )
    if variable.dtype.kind not in "fiub" or np.isinf(variable.to_numpy()).any():
        raise InvalidInputError(
            str(variable.name), "it holds other things than finite numbers", "Give numbers or NaN"
        )


def _check_attributes(data: xr.Dataset) -> None:
    kind = data.attrs.get("data", _KINDS[0])
    if kind not in _KINDS:
        raise InvalidInputError(
            "data", f"the attribute is {kind!r}", f"Give {' or '.join(map(repr, _KINDS))}"
        )
    chance = data.attrs.get("chance", 0.5)
    if not _is_number(chance) or not 0 < chance < 1:
        raise InvalidInputError(
            "chance", f"the attribute is {chance!r}", "Give the accuracy of guessing"
        )
    examples = data.attrs.get("test_examples", 1)
    if not _is_number(examples) or examples < 1 or examples != int(examples):
        raise InvalidInputError(
            "test_examples",
            f"the attribute is {examples!r}",
            "Give how many examples an accuracy rests on",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(np.isfinite(value))

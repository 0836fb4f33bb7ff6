"""Results of trained classifiers: their files, and the claims' data in them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attractor.files.contents import DataSet, FileContents, Layout
from attractor.support.checks import check_kinds, check_path
from attractor.support.containers import read_netcdf
from attractor.support.errors import InvalidInputError
from attractor.support.storage import existing_file, save_netcdf

if TYPE_CHECKING:
    import xarray as xr

CLASSIFIERS_LAYOUT = {
    "test_accuracy": (
        ("optimizer", "seed"),
        "share of examples not seen that are classified correctly",
    ),
    "validation_accuracy": (
        ("optimizer", "seed", "epoch"),
        "share of the validation split that is classified correctly, by epoch",
    ),
    "at_edge": (("optimizer",), "whether the learning rate is the least or the largest tried"),
    "status": (("optimizer", "seed"), "how training ended, as the numbers of TrialStatus"),
    "hoyer": (
        ("optimizer", "seed", "matrix", "block"),
        "Hoyer's sparsity of weights; matrix: queries, keys, values",
    ),
    "attention": (
        ("optimizer", "seed", "block"),
        "of the read-out on words that determine the class, mean over heads",
    ),
    "attention_by_frequency": (
        ("optimizer", "seed", "block"),
        "attention that those words would get as others of like frequency do",
    ),
    "attention_by_chance": (("optimizer", "seed"), "attention that they would get by chance"),
    "rescaled_attention": (
        ("optimizer", "seed"),
        "on them in the last block, rescaled from 0 to 1 in each text",
    ),
}
"""The variables that claims read: the dimensions of each, and its meaning.

Only ``test_accuracy`` and the names of ``optimizer`` must be there; a claim says what else it
needs. Mirror descent is called ``p = 1.1``, gradient descent ``p = 2``. Equal numbers of ``seed``
name runs from the same start. Attributes: ``data`` ("text" or "image"), ``chance`` (the accuracy of
guessing), ``test_examples`` (how many an accuracy is measured on) and ``same_start`` (1 if all
seeds start from one model). Anything else is kept and not read.
"""

_WANTED = (
    "Give results of classifiers over the dimensions optimizer and seed, such as the results.nc "
    "beside the figures of mirror-descent/text-generalization; Trajectory.load reads a run, "
    "load_audit an audit"
)
_DATA = ("text", "image")
_READ = ("data", "chance", "test_examples", "same_start")
"""The attributes that outcomes depend on."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ClassifierCase(FileContents, DataSet):
    """Results of models trained by several optimizers; the contents of a NetCDF file.

    Attributes:
        data: Accuracies and other numbers over ``optimizer`` and ``seed``.
        about: What the data are, in words.
    """

    words: ClassVar[str] = "file of classifier results"
    held: ClassVar[str] = "results of classifiers"
    suffix: ClassVar[str] = ".nc"
    missing: ClassVar[str] = "Give a .nc file"
    layout: ClassVar[Layout] = CLASSIFIERS_LAYOUT
    data: xr.Dataset
    about: str = "results of classifiers"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ClassifierCase:
        """Reads a NetCDF file of classifier results; see ``FileContents``."""
        file = existing_file(path, cls.missing)
        return cls(_checked(read_netcdf(file), file.name), about=file.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a NetCDF file from which ``load`` gives the same.

        Args:
            path: The destination, ending in ``.nc``; replaced atomically.

        Raises:
            InvalidInputError: If the name ends in anything else, or a variable cannot be used;
                nothing is written then.
        """
        file = Path(check_path("path", path))
        if file.suffix != self.suffix:
            raise InvalidInputError(
                "path", f"{file.name} does not end in .nc", "Choose such a name"
            )
        save_netcdf(_checked(self.data, file.name), file)

    def arrays(self) -> dict[str, np.ndarray]:
        """All variables, and the attributes that claims read, for hashing."""
        variables = {
            f"{name} over {', '.join(map(str, variable.dims))}": _fixed(variable.to_numpy())
            for name, variable in self.data.variables.items()
        }
        attributes = {
            f"attribute {name}": np.array(self.data.attrs[name])
            for name in _READ
            if name in self.data.attrs
        }
        return variables | attributes

    @property
    def size(self) -> int:
        """Trained models."""
        return self.data.sizes["optimizer"] * self.data.sizes["seed"]

    @property
    def size_in_words(self) -> str:
        """Optimizers and seeds."""
        names = ", ".join(self.data["optimizer"].values.tolist())
        return f"{names}; {self.data.sizes['seed']} seeds each"


def save_classifiers(path: str | os.PathLike[str], loaded: ClassifierCase) -> None:
    """Writes results of classifiers, so that ``load`` gives the same.

    Args:
        path: The destination, ending in ``.nc``; replaced atomically.
        loaded: The results.

    Raises:
        InvalidInputError: If the name ends in anything else, or a variable cannot be used; nothing
            is written then.
    """
    check_kinds(loaded=(loaded, ClassifierCase))
    loaded.save(path)


def _checked(data: xr.Dataset, file: str) -> xr.Dataset:
    """The results, with names as text; refused where a claim could not read them."""
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
    return data


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
    kind = data.attrs.get("data", _DATA[0])
    if kind not in _DATA:
        raise InvalidInputError(
            "data", f"the attribute is {kind!r}", f"Give {' or '.join(map(repr, _DATA))}"
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
            "Give how many examples an accuracy is measured on",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(np.isfinite(value))


def _fixed(array: np.ndarray) -> Any:
    """Text at the width it needs, which a file may change; numbers as they are."""
    return array.astype(object).astype(str) if array.dtype.kind in "OTU" else array

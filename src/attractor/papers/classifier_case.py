"""``ClassifierCase``: the results that a claim on trained classifiers is examined on."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr

from attractor.files import LoadedClassifiers, save_classifiers
from attractor.papers.data_set import DataKind, DataSet
from attractor.provenance import data_hash

if TYPE_CHECKING:
    from attractor.papers._examine import Finding
    from attractor.papers.trial import Trial

_READ = ("data", "chance", "test_examples", "same_start")
"""The attributes that outcomes depend on."""


@dataclasses.dataclass(frozen=True, eq=False)
class ClassifierCase(DataSet):
    """What models trained by several optimizers came to; what a file of results holds.

    Attributes:
        data: Accuracies and other numbers over ``optimizer`` and ``seed``.
        about: What the data are, in words.
    """

    kind: ClassVar[DataKind] = DataKind.CLASSIFIERS
    data: xr.Dataset
    about: str = "results of classifiers"

    @classmethod
    def from_loaded(cls, loaded: LoadedClassifiers, name: str) -> ClassifierCase:
        """The case in what a file of results holds.

        Args:
            loaded: What it holds.
            name: The name of the file.
        """
        return cls(loaded.data, about=name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the case as a file of results."""
        save_classifiers(path, LoadedClassifiers(self.data))

    @property
    def hash(self) -> str:
        """SHA-256 of all variables, and of the attributes that claims read."""
        variables = {
            f"{name} over {', '.join(map(str, variable.dims))}": _fixed(variable.to_numpy())
            for name, variable in self.data.variables.items()
        }
        attributes = {
            f"attribute {name}": np.array(self.data.attrs[name])
            for name in _READ
            if name in self.data.attrs
        }
        return data_hash(None, None, **variables, **attributes)

    @property
    def size(self) -> int:
        """Trained models."""
        return self.data.sizes["optimizer"] * self.data.sizes["seed"]

    @property
    def size_in_words(self) -> str:
        """Optimizers and seeds."""
        names = ", ".join(self.data["optimizer"].values.tolist())
        return f"{names}; {self.data.sizes['seed']} seeds each"

    def smaller(self, trial: Trial, first: Finding) -> ClassifierCase:
        """The case itself: without some of its seeds it would be another finding."""
        return self


def _fixed(array: np.ndarray) -> Any:
    """Text at the width it needs, which a file may change; numbers as they are."""
    return array.astype(object).astype(str) if array.dtype.kind in "OTU" else array

"""What is compared with another of its kind: a verdict, a bias matrix, or a report on disk."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attractor.analysis import Verdict, verify
from attractor.analysis.bias import BiasMatrix
from attractor.checks import check_path
from attractor.containers import read_json, read_netcdf
from attractor.errors import AttractorError, InvalidInputError
from attractor.geometry import Geometry
from attractor.provenance import Provenance, data_hash, read_provenance
from attractor.training import Trajectory

VERDICT, MATRIX, CLAIMS = "verdict", "matrix", "claims"
_NUMBERS = ("claims.json", "audit.json", "summary.json")
"""Files of numbers in the folder of a report; the first that is there is read."""
_MOST_LISTED = 12
"""Numbers of a list that are compared one by one; a longer one is data."""
_REMEDY = (
    "Give a Verdict, a Trajectory, a BiasMatrix, the folder of a report, or a run that `attractor "
    "train` wrote"
)


@dataclasses.dataclass(frozen=True)
class Side:
    """One of two results that are compared.

    Attributes:
        kind: Kind of result, ``"verdict"``, ``"matrix"`` or the name of the command.
        settings: What it was made with, as texts by name.
        studies: Measures over trials, by the name of what was trained; empty of other kinds.
        numbers: Single numbers by name.
        texts: Single words by name, such as outcomes of claims.
        same_trials: What has to be equal for trials of the same number to be of the same data.
        bibtex: BibTeX entries that it cites.
    """

    kind: str
    settings: Mapping[str, str]
    studies: Mapping[str, xr.Dataset] = dataclasses.field(default_factory=dict)
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    same_trials: str = ""
    bibtex: tuple[str, ...] = ()

    def arrays(self) -> dict[str, Any]:
        """All that is compared, as arrays by name, to be hashed."""
        words = [self.kind, *(dict(sorted(one.items())) for one in (self.settings, self.texts))]
        numbers = dict(sorted(self.numbers.items()))
        found = {
            "words": np.array(json.dumps(words)),
            "names": np.array(list(numbers), dtype=str),
            "numbers": np.array(list(numbers.values()), dtype=float),
        }
        for study, data in self.studies.items():
            for name, values in data.data_vars.items():
                if values.dtype.kind in "biuf":
                    found[f"{study} {name}"] = values.to_numpy()
        return found


def is_run(given: Any) -> bool:
    """Whether what is compared is a run, or the file of one that lies in no report."""
    if not isinstance(given, str | os.PathLike):
        return isinstance(given, Trajectory)
    place = Path(given)
    return place.is_file() and place.suffix == ".nc" and not (place.parent / _MEASURES).is_file()


def side_of(argument: str, given: Any, geometry: Geometry | str | None = None) -> Side:
    """Reads one side.

    Args:
        argument: The name to use in errors.
        given: A result, or the path of a report's folder or of a saved run.
        geometry: The norm that a run is verified in; default: the one that it descended.

    Raises:
        InvalidInputError: If it is none of these.
        FileFormatError: If a file of it is damaged.
    """
    if is_run(given):
        run = given if isinstance(given, Trajectory) else Trajectory.load(given)
        given = verify(run, geometry=geometry)
    if isinstance(given, Verdict):
        return _of_verdict(given)
    if isinstance(given, BiasMatrix):
        return _of_matrix(given)
    if not isinstance(given, str | os.PathLike):
        raise InvalidInputError(argument, f"it is a {type(given).__name__}", _REMEDY)
    place = Path(check_path(argument, given))
    return _of_folder(argument, place.parent if place.is_file() else place)


_MEASURES = "measures.nc"


def _of_verdict(verdict: Verdict) -> Side:
    run = verdict.trajectory
    settings = {"optimizer": run.optimizer_name, "geometry": verdict.solution.geometry.name}
    shared = data_hash(run.tokens, run.head) if run.head is not None else data_hash(run.tokens)
    studies = {words: one.data for words, one in verdict.by_hyperparameters.items()}
    settings |= dict(_leaves(run.settings)) | {"data": shared[:12]}
    return Side(VERDICT, settings, studies, same_trials=shared)


def _of_matrix(matrix: BiasMatrix, provenance: Provenance | None = None) -> Side:
    attributes = {str(name): str(value) for name, value in matrix.data.attrs.items()}
    attributes.pop("provenance", None)
    rows = [str(name) for name in matrix.data["optimizer"].values]
    studies = {row: matrix.data.sel(optimizer=row) for row in rows}
    each = {
        f"{row}: {name}": str(data[name].item())
        for row, data in studies.items()
        for name in ("settings", "steps", "parameterization", "reads")
    }
    same = "; ".join(f"{name} {value}" for name, value in attributes.items())
    settings = attributes | each if provenance is None else _made_with(provenance) | each
    answers = {
        "answer" if len(studies) == 1 else f"{row}: answer": matrix.answer_at(row).verdict
        for row, data in studies.items()
        if {"trained", "movement"} <= set(data.data_vars)
    }
    return Side(MATRIX, settings, studies, texts=answers, same_trials=same)


def _of_folder(argument: str, folder: Path) -> Side:
    file = next((folder / name for name in _NUMBERS if (folder / name).is_file()), None)
    if file is None:
        raise InvalidInputError(argument, f"there is no report in {folder}", _REMEDY)
    try:
        provenance = read_provenance(file)
    except AttractorError:
        provenance = None  # which a report need not have
    cited = () if provenance is None else provenance.bibtex
    return dataclasses.replace(_of_numbers_file(folder, file, provenance), bibtex=cited)


def _of_numbers_file(folder: Path, file: Path, provenance: Provenance | None) -> Side:
    if (folder / "matrix.nc").is_file():
        return _of_matrix(BiasMatrix.load(folder / "matrix.nc"), provenance)
    settings = {} if provenance is None else _made_with(provenance)
    shared = (provenance.data if provenance else None) or ""
    measures = sorted(folder.glob("measures*.nc"))
    if measures:
        studies = {one.stem.removeprefix("measures").strip("_"): one for one in measures}
        read = {name: read_netcdf(one) for name, one in studies.items()}
        if not shared and provenance is not None:  # drawn by the command, from its seeds
            shared = f"{provenance.name} {provenance.seeds} {provenance.arguments}"
        return Side(VERDICT, settings, read, same_trials=shared)
    kind = CLAIMS if file.name == "claims.json" else provenance.name if provenance else file.stem
    return _of_numbers(kind, settings, read_json(file))


def _of_numbers(kind: str, settings: Mapping[str, str], contents: Any) -> Side:
    if kind == CLAIMS:
        outcomes = {name: str(one["outcome"]) for name, one in contents["claims"].items()}
        return Side(kind, settings, texts=outcomes)
    numbers, texts = {}, {}
    for name, value in _flat(contents):
        if isinstance(value, str | bool):
            texts[name] = str(value)
        elif value is not None:
            numbers[name] = float(value)
    return Side(kind, settings, numbers=numbers, texts=texts)


def _made_with(provenance: Provenance) -> dict[str, str]:
    found = {
        "command": provenance.name,
        "data": (provenance.data or "-")[:12],
        "seeds": ", ".join(map(str, provenance.seeds)),
        "version": provenance.version,
        "platform": provenance.platform,
    }
    return found | dict(_leaves({**provenance.settings, **provenance.arguments}, "data"))


def _leaves(values: Mapping[str, Any], *left_out: str) -> Iterator[tuple[str, str]]:
    for name, value in _flat(dict(values)):
        if name not in left_out:
            yield name, "-" if value is None else str(value)


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The single values within a value of JSON, by their places: ``required 0 tokens 0.5``."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(one, f"{name} {key}".replace("_", " ").strip())
    elif isinstance(value, list | tuple):
        if len(value) <= _MOST_LISTED:
            for place, one in enumerate(value):
                yield from _flat(one, f"{name} {place}".strip())
    elif not isinstance(value, float) or not math.isnan(value):
        yield name, value

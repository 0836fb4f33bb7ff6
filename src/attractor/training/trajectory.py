"""``Trajectory``: the records of training, in labeled arrays."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, Real

from attractor.attention import Head
from attractor.attention.heads import as_head, head_from_arrays
from attractor.attention.heads.named import is_known
from attractor.attention.heads.prediction_heads import by_attention_head
from attractor.geometry import Frobenius, get_geometry
from attractor.results import AXES, Plotted, RecordedRun, Rows, StoredRun, reading_run, save_run
from attractor.support.checks import check_choice, check_count, shown
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens
from attractor.training.initial import INITIAL_SCALE
from attractor.training.loop import Records
from attractor.training.stored.trajectory_check import ATTENTION_HEAD, check_trajectory

_KIND = "trajectory"
_TOKEN_ARRAYS = ("keys", "queries", "values", "labels", "mask")
_READ_AGAIN = ("loss", "parameterization", "arrangement", "geometry_of_a_head")
"""The settings that are read from a file where it has them."""
_OF_EACH = "head_each_"
"""How names begin of the arrays of prediction heads, with the number of one."""
_DIMENSIONS = {
    "loss": (),
    "norm": (),
    "log_gradient_norm": (),
    "log_time": (),
    "conserved_drift": (),
    "attended": ("sequence", "query"),
    "attended_probability": ("sequence", "query"),
    "W": ("row", "column"),
    "K": ("row", "width"),
    "Q": ("column", "width"),
    "p": ("row",),
}
_DESCRIPTIONS = {
    "loss": "training loss",
    "norm": "norm of W in the geometry descended",
    "log_gradient_norm": "logarithm of the Euclidean norm of the gradient",
    "log_time": "logarithm of the time the algorithm would have taken unnormalized",
    "conserved_drift": "change of what gradient flow conserves, relative to its scale",
    "attended": "token with the highest attention weight",
    "attended_probability": "attention weight of that token",
    "W": "attention matrix",
    "K": "key matrix",
    "Q": "query matrix",
    "p": "prompt vector",
    "status": "how the trial ended",
    "steps_taken": "steps that changed the trial before it ended or froze",
}
RECORDED = frozenset({*_DESCRIPTIONS, "instance", "seed", *AXES} - {"epoch"})
"""Names that the data of a trajectory may have by itself; epochs are those of classifiers."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Plotted, RecordedRun):
    """The records of training, trial by trial.

    A trial is an (instance, seed) pair; both axes are always there, of length one if need be. Where
    hyperparameters, or the scale of the start, had several values, each has an axis before them.

    Attributes:
        data: Labeled arrays over instance, seed, step, sequence, query, row and column: ``loss``,
            ``norm``, ``log_gradient_norm``, ``log_time``, ``attended``, ``attended_probability``,
            ``W`` (with a step axis if all were kept; likewise ``K`` and ``Q``, ``p``, and
            ``head_...``, where they were trained), ``status``, ``steps_taken``, and metrics of the
            user. Of several attention heads, matrices and what is attended to have an axis
            ``attention_head`` before their own. ``log_time`` is the logarithm of the equivalent raw
            time: of what the step sizes
            of the same algorithm without normalization would add up to; NaN where it is none.
            Of paths and flows, ``radius``, ``time`` or ``logarithmic_time`` takes the place of
            step; flows have ``conserved_drift``, too.
        tokens: What was trained on.
        head: The head: fixed, or where its training started; None if a file could not keep it.
        optimizer_name: The optimizer.
        geometry: Name of the norm of ``W`` that training descended, or "not known".
        settings: Every other argument of ``train``.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=1000)
        >>> run.data.norm.isel(step=-1).values.round()
        array([[96.],
               [99.]])
        >>> run.data.attended.isel(step=-1).shape
        (2, 1, 3, 1)
    """

    data: xr.Dataset
    tokens: Tokens
    head: Head | None
    optimizer_name: str
    geometry: str
    settings: dict[str, Any]

    @property
    def weights_kept(self) -> str:
        """``"all"`` if the matrices of every recorded step are here, ``"last"`` if not."""
        return self._kept("W")

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """The hyperparameters that had several values, which are axes of the data.

        ``initial_scale`` is among them where the start had several scales.
        """
        return tuple(str(name) for name in self.data["status"].dims[:-2])

    @property
    def variants(self) -> list[dict[str, float]]:
        """Every combination of values of these, by name; one empty one where there are none."""
        labels = [self.data[name].values.tolist() for name in self.hyperparameters]
        return [
            dict(zip(self.hyperparameters, values, strict=True))
            for values in itertools.product(*labels)
        ]

    def require_one_variant(self, argument: str) -> None:
        """Refuses a run whose hyperparameters had several values.

        Raises:
            InvalidInputError: If they had.
        """
        if self.hyperparameters:
            name = self.hyperparameters[0]
            raise InvalidInputError(
                argument,
                f"it holds {self.data.sizes[name]} values of {name}",
                f"Take one of them: .sel({name}={self.data[name].values[0]:g})",
            )

    def sel(self, **values: float) -> Trajectory:
        """The run with one value of a hyperparameter that had several, or of some of these.

        Args:
            values: Values that it was trained with, by name: ``learning_rate=0.1``.

        Raises:
            InvalidInputError: If there was no such hyperparameter or value.
        """
        optimizer, start = dict(self.settings.get("optimizer", {})), {}
        for name, value in values.items():
            check_choice("values", name, self.hyperparameters)
            if value not in self.data[name]:
                trained = ", ".join(f"{each:g}" for each in self.data[name].values)
                raise InvalidInputError(
                    name, f"{shown(value)} was not trained with", f"Give one of {trained}"
                )
            (start if name == INITIAL_SCALE else optimizer)[name] = float(value)
        data = self.data.sel(values, drop=True)
        settings = self.settings | start | {"optimizer": optimizer}
        return replace(self, data=data, settings=settings)

    @property
    def attention_heads(self) -> int | None:
        """Number of attention heads; None where matrices have no axis of them."""
        return self.data.sizes.get(ATTENTION_HEAD)

    def attention_head(self, number: int) -> Trajectory:
        """The run of one attention head, as if it were alone.

        Its loss and gradient are those of all heads; its norm is its own.

        Args:
            number: The number of the head, from zero.

        Raises:
            InvalidInputError: If there is no such head.
        """
        count = self.attention_heads
        number = check_count("number", number, least=0)
        if count is None or number >= count:
            found = "no axis of attention heads" if count is None else f"{count} attention heads"
            raise InvalidInputError("number", f"the run has {found}", "Give one of these, from 0")
        data = self.data.isel({ATTENTION_HEAD: number})
        own, others = f"{_OF_EACH}{number}_", [n for n in data if str(n).startswith(_OF_EACH)]
        data = data.drop_vars([name for name in others if not str(name).startswith(own)])
        data = data.rename({n: f"head_{str(n)[len(own) :]}" for n in data if n in others})
        geometry = self.settings.get("geometry_of_a_head", "not known")
        measure = Frobenius() if geometry == "not known" else get_geometry(geometry)
        order = [axis for axis in data["norm"].dims if axis in data["W"].dims]
        norms = data["norm"].transpose(*order, ...).astype(float)
        known = measure.norm(data["W"].transpose(*order, "row", "column").to_numpy())
        if self.axis in order:
            norms = norms.copy(data=known)
        else:  # of earlier records the matrices were not kept
            norms = norms.copy(data=np.full(norms.shape, np.nan))
            norms[{self.axis: -1}] = known
        data["norm"] = norms
        data = data.assign_attrs({ATTENTION_HEAD: number})
        head = by_attention_head(self.head, count)[number] if self.head is not None else None
        name = self.settings.get("parameterization", "")
        layer = re.sub(r"\d+ x ", "", name)
        settings = self.settings | {"parameterization": layer, "attention_head": number}
        return replace(self, data=data, head=head, geometry=geometry, settings=settings)

    def W(self, step: float | None = None) -> Float[np.ndarray, "*trials d e"]:
        """The attention matrices at a recorded step, over instances and seeds.

        Of several attention heads they have an axis of heads before rows and columns.

        Args:
            step: The step, radius or time; None for the last.

        Raises:
            InvalidInputError: If the step was not recorded, or its matrices were not kept.
        """
        remedy = 'Train by train(..., weights="all"), or with fewer recorded steps'
        return self._at("W", step, "matrices", remedy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        save_run(path, _KIND, self.stored())

    @classmethod
    def load(cls, path: str | os.PathLike[str], head: Any = None) -> Trajectory:
        """Reads a file that ``save`` wrote.

        Args:
            path: The file.
            head: The head it was trained with, where the file cannot tell: of an Equinox module,
                or a head of the user's own class, a file keeps the arrays but no code. Without it
                such a trajectory has None for a head.

        Raises:
            FileFormatError: If the file is not a whole trajectory.
            InvalidInputError: If the head is not the one in the file.
        """
        with reading_run(path, _KIND, ("tokens", "head")) as stored:
            found = cls.of(stored)
        if head is None:
            return found
        given = as_head(head, found.tokens.value_dimension)
        return replace(found, head=_same_head(given, stored.texts["head"], stored.arrays["head"]))

    def stored(self) -> StoredRun:
        """The contents of a file of it."""
        tokens, head = self.tokens, self.head
        own_values = tokens.values is not tokens.keys
        arrays = {
            name: getattr(tokens, name) for name in _TOKEN_ARRAYS if name != "values" or own_values
        }
        if tokens.weights is not None:
            arrays["weights"] = tokens.weights
        arrays["mask"] = arrays["mask"].astype(np.int8)
        arrays["instance_numbers"] = tokens.instance_numbers
        texts = {
            "optimizer": self.optimizer_name,
            "geometry": self.geometry,
            "head": "" if head is None else head.name,
        }
        groups = {"tokens": arrays, "head": {} if head is None else head.arrays()}
        return StoredRun(self.data, texts, self.settings, groups)

    @classmethod
    def of(cls, stored: StoredRun) -> Trajectory:
        """A trajectory from the contents of a file, checked.

        Raises:
            InvalidInputError: If an array cannot be used.
            ValueError: If anything does not fit.
        """
        tokens, texts = Tokens(**stored.arrays["tokens"]), stored.texts
        name = texts["head"]
        known = head_from_arrays(name, stored.arrays["head"]) if is_known(name) else None
        check_trajectory(stored.data, tokens, known)
        for setting in _READ_AGAIN:
            if not isinstance(stored.settings.get(setting, ""), str):
                raise ValueError(f"its setting {setting} is no text")
        optimizer, geometry = texts["optimizer"], texts["geometry"]
        return cls(stored.data, tokens, known, optimizer, geometry, stored.settings)

    def _picture(self) -> tuple[str, dict[str, xr.Dataset]]:
        runs = {
            ", ".join(f"{name} = {value:g}" for name, value in variant.items()): self.sel(**variant)
            for variant in self.variants
        }
        found = {words: one.data for words, one in runs.items()}
        if self.attention_heads is not None:
            heads = [(number, f"attention head {number}") for number in range(self.attention_heads)]
            found = {
                f"{words}, {name}" if words else name: one.attention_head(number).data
                for words, one in runs.items()
                for number, name in heads
            }
        return "trajectory_figure", found

    def _heads_rows(self) -> Rows:
        if self.attention_heads is None:
            return []
        arrangement = self.settings.get("arrangement", "not known")
        return [("attention heads", f"{self.attention_heads}, as one matrix {arrangement}")]

    def _summary(self) -> tuple[str, Rows]:
        last = self.data.isel({self.axis: -1})
        return "Trajectory", [
            ("trials", self._trials()),
            ("optimizer", self._optimizer(self.optimizer_name)),
            ("geometry", self.geometry),
            *self._heads_rows(),
            self._last_record(),
            self._kept_row("W", "matrices"),
            self._loss_row(),
            ("norm, median", f"{float(last['norm'].median()):.4g}"),
            ("highest weight, mean", f"{float(last['attended_probability'].mean()):.6f}"),
        ]


def trajectory_data(
    records: Records,
    instance_numbers: Int[np.ndarray, "instance"],
    seeds: Int[np.ndarray, "seed"],
    values: Real[np.ndarray, "records"],
    axis: str = "step",
    last_only: frozenset[str] = frozenset(),
    hyperparameters: Mapping[str, tuple[float, ...]] = {},
    descriptions: Mapping[str, str] = {},
) -> xr.Dataset:
    """Labels measurements.

    Args:
        records: Measurements over (trial, record, ...).
        instance_numbers: Numbers of the instances.
        seeds: The seeds.
        values: Steps, radii or times of the records.
        axis: The name of their axis: ``"step"``, ``"radius"`` or ``"time"``.
        last_only: Names of measurements of the last record alone.
        hyperparameters: Those that have several values.
        descriptions: Of measurements that training does not take, or in place of its own.
    """
    axes = {**hyperparameters, "instance": instance_numbers, "seed": seeds}
    trial, trials = tuple(axes), tuple(map(len, axes.values()))
    variables: dict[str, Any] = {}
    for name, array in records.series.items():
        along = () if name in last_only else (axis,)
        unnamed = tuple(f"{name}_{place}" for place in range(array.ndim - 1 - len(along)))
        own = _DIMENSIONS.get(name, unnamed)
        if len(unnamed) == len(own) + 1:
            own = (ATTENTION_HEAD, *own)
        variables[name] = ((*trial, *along, *own), array.reshape(*trials, *array.shape[1:]))
    variables["status"] = (trial, records.status.reshape(trials))
    variables["steps_taken"] = (trial, records.steps_taken.reshape(trials))
    coordinates = {name: np.asarray(labels) for name, labels in axes.items()}
    data = xr.Dataset(variables, coordinates | {axis: values})
    for name, description in {**_DESCRIPTIONS, **descriptions}.items():
        if name in data:
            data[name].attrs["description"] = description
    return data


def _same_head(head: Head, name: str, stored: dict[str, np.ndarray]) -> Head:
    """Returns the head, if it is the one that was saved."""
    arrays = head.arrays()
    differ = [
        key
        for key in sorted({*arrays, *stored})
        if key not in arrays or key not in stored or not np.array_equal(arrays[key], stored[key])
    ]
    if head.name == name and not differ:
        return head
    raise InvalidInputError(
        "head",
        f"its arrays {differ} are not those in the file"
        if head.name == name
        else f"it is {head.name!r}, but the file was saved with {name or 'none'!r}",
        "Give the head that the run was trained with",
    )

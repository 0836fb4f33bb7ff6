"""The record of training a classifier, in labeled arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Int

from attractor.models.classifier_training import BEST, LAST
from attractor.models.transformers import CONFIGS, Config, Model, model_shapes, named_weights
from attractor.results import RecordedRun, Rows, StoredRun, check_records, reading_run, save_run
from attractor.support.checks import check_choice, check_count
from attractor.support.containers import parse_json
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.loop import Records

_KIND = "classifier trajectory"
_CURVES = {
    f"{split}_{name}" for split in ("train", "validation", "test") for name in ("loss", "accuracy")
}
_ALWAYS = {"train_loss", "train_accuracy", "best_epoch", "epochs_taken", "status"}

_DESCRIPTIONS = {
    "train_loss": "mean cross-entropy over an epoch, each batch before its step, with dropout",
    "train_accuracy": "share classified rightly over an epoch, likewise",
    "validation_loss": "mean cross-entropy of the validation examples after an epoch",
    "validation_accuracy": "share of the validation examples classified rightly",
    "test_loss": "mean cross-entropy of the test examples after an epoch",
    "test_accuracy": "share of the test examples classified rightly",
    "best_epoch": "epoch of the highest accuracy on the validation examples; 0 if none is whole",
    "test_accuracy_at_best_epoch": "accuracy on the test examples at that epoch",
    "last_test_accuracy": "accuracy on the test examples after the last epoch",
    "best_test_accuracy_over_epochs": (
        "maximum over epochs of the accuracy on the test examples, as published; chosen by what it "
        "is judged by, it is too high"
    ),
    "epochs_taken": "whole epochs of training",
    "status": "how the trial ended",
}


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierTrajectory(RecordedRun):
    """The record of training a classifier, seed by seed.

    Attributes:
        data: Labeled arrays over seed and epoch: ``train_loss`` and ``train_accuracy`` as training
            saw them, each batch before its step and with dropout; ``validation_...`` and
            ``test_...`` after the epoch; NaN where a seed had ended. Over seed alone:
            ``best_epoch`` by validation (the last where there are no such examples),
            ``test_accuracy_at_best_epoch``, ``last_test_accuracy``,
            ``best_test_accuracy_over_epochs`` as published, ``epochs_taken``, ``status``.
        config: The configuration of the models.
        optimizer_name: The optimizer.
        settings: Every other argument.
    """

    data: xr.Dataset
    config: Config
    optimizer_name: str
    settings: dict[str, Any]
    _weights: dict[str, np.ndarray] = field(default_factory=dict)

    def model(self, seed: int, epoch: str = "best") -> Model:
        """The model of a seed; ``save_model`` writes it.

        Args:
            seed: The seed.
            epoch: ``"best"`` by validation, or ``"last"``. The last epoch of a diverged seed ended
                where it diverged.

        Raises:
            InvalidInputError: If the seed was not trained, or ``epoch`` is neither.
        """
        check_choice("epoch", epoch, ("best", "last"))
        seed = check_count("seed", seed, 0)
        found = np.flatnonzero(self.data["seed"].to_numpy() == seed)
        if not found.size:
            raise InvalidInputError(
                "seed", f"{seed!r} was not trained", f"Give one of {self.data['seed'].values}"
            )
        prefix = BEST if epoch == "best" else LAST
        shapes = model_shapes(self.config)
        with double_precision():
            leaves = [
                jnp.asarray(self._weights[prefix + name][found[0]])
                for name in named_weights(shapes)
            ]
        return jax.tree.structure(shapes).unflatten(leaves)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        texts = {"optimizer": self.optimizer_name, "config": self.config.to_json()}
        run = StoredRun(self.data, texts, self.settings, {"weights": self._weights})
        save_run(path, _KIND, run)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ClassifierTrajectory:
        """Reads a file that ``save`` wrote.

        Raises:
            FileFormatError: If the file holds no trained classifiers.
        """
        with reading_run(path, _KIND, ("weights",)) as stored:
            text, data, weights = stored.texts["config"], stored.data, stored.arrays["weights"]
            config = CONFIGS[parse_json(text)["model"]].from_json(text)
            optional = {name for name in _DESCRIPTIONS if name in data}
            check_records(
                data,
                numbered=("seed", "epoch"),
                arrays={
                    name: ("seed", "epoch") if name in _CURVES else ("seed",)
                    for name in optional | _ALWAYS
                },
                sizes={},
            )
            if 2 * config.blocks > len(weights):
                raise ValueError(f"it has too few weights for {config.blocks} blocks")
            for name, leaf in named_weights(model_shapes(config)).items():
                for prefix in (BEST, LAST):
                    if weights[prefix + name].shape != (data.sizes["seed"], *leaf.shape):
                        raise ValueError(f"{name} is of another model")
            for setting in ("batch", "reduction"):
                if setting not in stored.settings:
                    raise ValueError(f"its setting {setting} is missing")
            return cls(data, config, stored.texts["optimizer"], stored.settings, dict(weights))

    def _summary(self) -> tuple[str, Rows]:
        data, settings = self.data, self.settings
        sizes = f"{self.config.blocks} blocks of {self.config.heads} heads"
        rows = [
            ("seeds", self._trials()),
            ("model", f"{self.config.kind}, {sizes}, width {self.config.width}"),
            ("optimizer", self._optimizer(self.optimizer_name)),
            ("batch", f"{settings['batch']}, losses combined by {settings['reduction']}"),
            ("epochs", _spread(data["epochs_taken"], "{:.0f}")),
            ("best epoch", _spread(data["best_epoch"], "{:.0f}")),
            ("last train loss", _spread(_last(data["train_loss"], data), "{:.4g}")),
            ("last train accuracy", _spread(_last(data["train_accuracy"], data), "{:.2%}")),
        ]
        if "validation_accuracy" in data:
            best = data["validation_accuracy"].max("epoch")
            rows.append(("best validation accuracy", _spread(best, "{:.2%}")))
        named = {
            "test_accuracy_at_best_epoch": "test accuracy at the best epoch",
            "last_test_accuracy": "test accuracy after the last",
            "best_test_accuracy_over_epochs": "highest test accuracy of any",
        }
        rows += [
            (words, _spread(data[name], "{:.2%}")) for name, words in named.items() if name in data
        ]
        return "Trained classifiers", rows


def classifier_data(
    records: Records, seeds: Int[np.ndarray, "seed"], epochs: int, steps_per_epoch: int
) -> tuple[xr.Dataset, dict[str, np.ndarray]]:
    """Labels the measurements, and separates the weights from them.

    Args:
        records: Measurements over (seed, record, ...).
        seeds: The seeds.
        epochs: Number of recorded epochs.
        steps_per_epoch: Batches of an epoch.
    """
    numbers = np.arange(1, epochs + 1)
    taken = records.steps_taken // steps_per_epoch
    ended = numbers > taken[:, None]
    weights = {
        name: array for name, array in records.series.items() if name.startswith((BEST, LAST))
    }
    curves = {
        name: np.where(ended, np.nan, array)
        for name, array in records.series.items()
        if name.endswith(("_loss", "_accuracy")) and not name.startswith("best_")
    }
    variables: dict[str, Any] = {name: (("seed", "epoch"), array) for name, array in curves.items()}
    variables["best_epoch"] = ("seed", records.series["best_epoch"][:, -1])
    variables["epochs_taken"] = ("seed", taken)
    variables["status"] = ("seed", records.status)
    data = xr.Dataset(variables, {"seed": seeds, "epoch": numbers})
    if "test_accuracy" in data:
        test = data["test_accuracy"]
        at_best = test.where(data["epoch"] == data["best_epoch"]).max("epoch")
        data["test_accuracy_at_best_epoch"] = at_best
        data["last_test_accuracy"] = _last(test, data)
        data["best_test_accuracy_over_epochs"] = test.max("epoch")
    for name in data.data_vars:
        data[name].attrs["description"] = _DESCRIPTIONS[str(name)]
    return data, weights


def _last(curve: xr.DataArray, data: xr.Dataset) -> xr.DataArray:
    """The number after the last whole epoch of each seed, NaN where there is none."""
    return curve.where(data["epoch"] == data["epochs_taken"]).max("epoch")


def _spread(values: xr.DataArray, form: str) -> str:
    """The mean over seeds, with the lowest and the highest where they differ."""
    known = values.to_numpy()[np.isfinite(values.to_numpy())]
    if not known.size:
        return "none"
    if known.min() == known.max():
        return form.format(known.min())
    low, mean, high = map(form.format, (known.min(), known.mean(), known.max()))
    return f"{mean} ({low} to {high})"

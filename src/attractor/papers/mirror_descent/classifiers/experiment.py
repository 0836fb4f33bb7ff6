"""Classifiers trained by several optimizers, and what is kept of them."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optax
import xarray as xr
from jaxtyping import Float

from attractor.analysis.sparsity import hoyer_sparsity
from attractor.models import (
    ClassificationData,
    ClassifierTrajectory,
    LearningRateSearch,
    head_matrices,
    save_model,
    search_learning_rate,
    train_classifier,
)
from attractor.models.classifier_training import Augment, Prepare
from attractor.models.transformers import Config, Model
from attractor.papers.drawing import read_data
from attractor.papers.figure import Request, stacked
from attractor.support.storage import save_netcdf
from attractor.support.threads import in_threads
from attractor.training import mirror_descent
from attractor.version import __version__


class Contender(NamedTuple):
    """An optimizer whose learning rate is to be found.

    Attributes:
        name: Its name in tables and figures.
        make: Makes the optimizer of a learning rate.
        guess: Where the search begins, for losses summed over a batch of 100.
    """

    name: str
    make: Callable[[Any], optax.GradientTransformation]
    guess: float


def _mirror(p: float) -> Callable[[Any], optax.GradientTransformation]:
    def make(learning_rate: Any) -> optax.GradientTransformation:
        return mirror_descent(learning_rate, p=p, normalize=False)

    return make


def _momentum(learning_rate: Any) -> optax.GradientTransformation:
    return optax.sgd(learning_rate, momentum=0.9)


CONTENDERS = {
    each.name: each
    for each in (
        Contender("p = 1.1", _mirror(1.1), 2e-3),
        Contender("p = 2", _mirror(2.0), 3e-3),
        Contender("p = 3", _mirror(3.0), 1e-3),
        Contender("Adam", optax.adam, 3e-3),
        Contender("AdamW", optax.adamw, 3e-3),
        Contender("momentum", _momentum, 3e-4),
        Contender("sign", optax.sign_sgd, 1e-3),
        Contender("Muon", optax.contrib.muon, 3e-3),
    )
}
"""By name. Gradient descent is mirror descent with p = 2."""


MATRICES = ("queries", "keys", "values")
_BINS = 60
_REACH = 0.6
"""The largest weight of the histograms; larger ones count in the last bin."""


def measure_weights(model: Model) -> xr.Dataset:
    """Hoyer's sparsity of queries, keys and values by block, and histograms of magnitudes."""
    matrices = head_matrices(model)
    whole = [matrices[name].reshape(model.config.blocks, -1) for name in MATRICES]
    hoyer = [[hoyer_sparsity(block) for block in matrix] for matrix in whole]
    return xr.Dataset(
        {
            "hoyer": (("matrix", "block"), hoyer),
            "largest_weight": ("matrix", [float(np.abs(matrix).max()) for matrix in whole]),
            "share_of_weights": (("matrix", "bin"), [_histogram(matrix) for matrix in whole]),
        },
        {
            "matrix": list(MATRICES),
            "block": np.arange(1, model.config.blocks + 1),
            "bin": _REACH * np.arange(_BINS) / _BINS,
        },
    )


def _histogram(weights: Float[np.ndarray, "..."]) -> Float[np.ndarray, "bin"]:
    """Shares of the magnitudes in bins of one width; the last has all larger ones."""
    place = np.minimum((np.abs(weights) * (_BINS / _REACH)).astype(int), _BINS - 1)
    return np.bincount(place.ravel(), minlength=_BINS) / weights.size


@dataclass(frozen=True)
class Schedule:
    """Length of training, and tries of the search for a learning rate.

    Attributes:
        epochs: Most epochs of a run, and of each try of a learning rate: a shorter search would
            favor rates that learn fast over those that learn much.
        patience: Epochs without a better validation accuracy after which it ends.
        tries: How many learning rates are tried, the same for every optimizer.
        batch: Examples of a step; their losses are summed.
        guesses: Where the search for the learning rate of an optimizer begins; for those that
            are missing, where it usually does.
    """

    epochs: int
    patience: int | None
    tries: int
    batch: int = 100
    guesses: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ClassifierTask(abc.ABC):
    """A task for classifiers.

    Attributes:
        data: The examples.
        config: The model.
        schedule: Length of training.
        augment: What changes inputs at random in training; None for nothing.
        prepare: What turns inputs into what the model reads; None for nothing.
    """

    data: ClassificationData
    config: Config
    schedule: Schedule
    augment: Augment | None = None
    prepare: Prepare | None = None

    @property
    def arrays(self) -> dict[str, Any]:
        """Everything that results depend on, by name."""
        return dict(self.data.arrays)

    @abc.abstractmethod
    def measure(self, model: Any) -> xr.Dataset:
        """Measures of a trained model beside its accuracy."""


_TIE = 1e-4
"""Weight of the loss beside the accuracy in the search: less than one example counts."""
_SEARCH_SEED = 10_000
"""Apart from the seeds of the runs that are reported."""


def experiment(
    request: Request,
    task: ClassifierTask,
    names: Sequence[str],
    *,
    kind: str,
    same_start: bool = False,
    searched: xr.Dataset | None = None,
) -> xr.Dataset:
    """Every optimizer with its own learning rate: what it knows, and what the task measures.

    Where figures share a folder, each optimizer's numbers and models are kept there, and are not
    trained again; all numbers together are in its ``results.nc``, which claims can be checked on.

    Args:
        request: Gives the seeds and the folder.
        task: The task.
        names: Which optimizers.
        kind: What the data are, "text" or "image"; the folder's name begins with it.
        same_start: Whether all seeds start from the model of the first, as published.
        searched: Results of the same task, whose learning rates are taken; None to search.
    """
    request.uses("data", **task.arrays)
    folder = _folder(request, task, kind, same_start)
    schedule = task.schedule
    batches = -(-len(task.data.train) // schedule.batch)
    tries = schedule.tries if searched is None else 0
    epochs = (tries + request.seeds) * schedule.epochs
    with request.bar(f"{kind} classifiers", len(names) * epochs * batches) as advance:

        def kept(name: str) -> xr.Dataset:
            return _kept(
                CONTENDERS[name],
                task,
                folder,
                seed=request.seed,
                seeds=request.seeds,
                same_start=same_start,
                searched=None if searched is None else searched.sel(optimizer=name),
                advance=advance,
            )

        found = dict(in_threads(kept, names))
    test = task.data.test
    results = stacked([found[name] for name in names], "optimizer", list(names)).assign_attrs(
        data=kind,
        chance=1 / task.config.classes,
        test_examples=0 if test is None else len(test),
        same_start=int(same_start),
    )
    if folder is not None:
        save_netcdf(results, folder / "results.nc")
    return results


def _folder(request: Request, task: ClassifierTask, kind: str, same_start: bool) -> Path | None:
    """The folder of this experiment, named by a hash of its settings; None without a shared one."""
    if request.shared is None:
        return None
    settings = {
        "attractor": __version__,
        "data": request.hashes["data"],
        "config": task.config.to_json(),
        "schedule": dataclasses.asdict(task.schedule),
        "seed": request.seed,
        "seeds": request.seeds,
        "same start": same_start,
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    return request.shared / f"{kind}-models-{digest}"


def _kept(
    contender: Contender, task: ClassifierTask, folder: Path | None, **arguments: Any
) -> xr.Dataset:
    """The results of an optimizer, read from the folder or trained and written there."""
    if folder is None:
        return trained(contender, task, place=None, **arguments)[0]
    name = contender.name.replace(" ", "")
    file, place = folder / f"{name}.nc", folder / f".{name}-unfinished"
    if file.is_file():
        return read_data(file)
    found, run = trained(contender, task, place=place, **arguments)
    for seed in found["seed"].values.tolist():
        save_model(folder / f"{name}-seed-{seed}.safetensors", run.model(seed))
    save_netcdf(found, file)
    shutil.rmtree(place, ignore_errors=True)
    return found


def trained(
    contender: Contender,
    task: ClassifierTask,
    *,
    seed: int,
    seeds: int,
    same_start: bool,
    place: Path | None,
    advance: Callable[[float], None],
    searched: xr.Dataset | None = None,
) -> tuple[xr.Dataset, ClassifierTrajectory]:
    """Searches for the learning rate on the validation split, and trains from every seed.

    Args:
        contender: The optimizer.
        task: The task.
        seed: The first seed.
        seeds: Number of seeds.
        same_start: Whether all seeds start from the model of the first.
        place: A folder for checkpoints; None for none.
        advance: Callback with the number of steps just done.
        searched: Earlier results of this optimizer, whose learning rates are taken; None to search.

    Returns:
        Accuracies and what the task measures, by seed; and the run itself with its models.
    """
    if searched is None:
        rates = _search(contender, task, seed, place, advance)
    else:
        rates = LearningRateSearch(searched["tried_rate"].values, searched["tried_accuracy"].values)
    run = _run(
        contender,
        task,
        rates.best,
        seed=seed,
        seeds=seeds,
        same_initial_model=same_start,
        checkpoint=place and place / "runs",
        progress=advance,
    )
    curves = run.to_xarray()
    found = xr.Dataset(
        {
            "validation_accuracy": curves["validation_accuracy"],
            "test_accuracy": curves["test_accuracy_at_best_epoch"],
            "highest_test_accuracy": curves["best_test_accuracy_over_epochs"],
            "best_epoch": curves["best_epoch"],
            "status": curves["status"],
            "tried_rate": ("try", rates.rates),
            "tried_accuracy": ("try", rates.scores),
            "learning_rate": rates.best,
            "at_edge": rates.at_edge,
        }
    )
    measured = [task.measure(run.model(each)) for each in range(seed, seed + seeds)]
    return found.merge(xr.concat(measured, curves["seed"])), run


def _search(
    contender: Contender,
    task: ClassifierTask,
    seed: int,
    place: Path | None,
    advance: Callable[[float], None],
) -> LearningRateSearch:
    """Looks for the rate that comes to know most of the validation split; sees no tests."""
    untested = dataclasses.replace(task, data=dataclasses.replace(task.data, test=None))

    def score(rate: float) -> float:
        run = _run(
            contender,
            untested,
            rate,
            seed=_SEARCH_SEED + seed,
            checkpoint=place and place / f"rate-{rate:.6g}",
            progress=advance,
        )
        curves = run.to_xarray()
        # Before anything is learned accuracies are equal; the loss ranks rates even then.
        loss = float(curves["validation_loss"].min())
        return float(curves["validation_accuracy"].max()) - _TIE * loss  # NaN if it diverged

    guess = task.schedule.guesses.get(contender.name, contender.guess)
    return search_learning_rate(score, guess, tries=task.schedule.tries)


def _run(
    contender: Contender, task: ClassifierTask, rate: float, **arguments: Any
) -> ClassifierTrajectory:
    return train_classifier(
        task.config,
        task.data,
        contender.make,
        learning_rate=rate,
        epochs=task.schedule.epochs,
        batch=task.schedule.batch,
        reduction="sum",
        patience=task.schedule.patience,
        augment=task.augment,
        prepare=task.prepare,
        **arguments,
    )

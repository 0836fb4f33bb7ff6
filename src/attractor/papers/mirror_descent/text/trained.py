"""One optimizer on a text task: its learning rate searched for, then models from several seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.analysis.sparsity import hoyer_sparsity
from attractor.models import (
    ClassifierTrajectory,
    LearningRateSearch,
    TextTransformer,
    head_matrices,
    search_learning_rate,
    train_classifier,
)
from attractor.papers.mirror_descent.text.attended_words import attended_words
from attractor.papers.mirror_descent.text.contenders import Contender
from attractor.papers.mirror_descent.text.task import TextTask

MATRICES = ("queries", "keys", "values")
_SEARCH_SEED = 10_000
"""Apart from the seeds of the runs that are reported."""
_BINS = 60
_REACH = 0.6
"""The largest weight of the histograms; larger ones count in the last bin."""


def trained(
    contender: Contender,
    task: TextTask,
    *,
    seed: int,
    seeds: int,
    same_start: bool,
    place: Path | None,
    advance: Callable[[float], None],
) -> tuple[xr.Dataset, ClassifierTrajectory]:
    """Searches for the learning rate on the validation split, and trains from every seed.

    Args:
        contender: The optimizer.
        task: The task.
        seed: The first seed.
        seeds: Number of seeds.
        same_start: Whether all seeds start from the model of the first.
        place: A folder for checkpoints; None for none.
        advance: Told of steps just done.

    Returns:
        Accuracies, where the read-out attends to and how sparse the weights are, by seed; and the
        run itself with its models.
    """
    searched = _search(contender, task, seed, place, advance)
    run = _run(
        contender, task, searched.best, seed, seeds,
        place=place and place / "runs", advance=advance, same_start=same_start,
    )  # fmt: skip
    curves = run.to_xarray()
    found = xr.Dataset(
        {
            "validation_accuracy": curves["validation_accuracy"],
            "test_accuracy": curves["test_accuracy_at_best_epoch"],
            "highest_test_accuracy": curves["best_test_accuracy_over_epochs"],
            "best_epoch": curves["best_epoch"],
            "status": curves["status"],
            "tried_rate": ("try", searched.rates),
            "tried_accuracy": ("try", searched.scores),
            "learning_rate": searched.best,
            "at_edge": searched.at_edge,
        }
    )
    measured = [_measured(run, each, task) for each in range(seed, seed + seeds)]
    return found.merge(xr.concat(measured, curves["seed"])), run


def _search(
    contender: Contender,
    task: TextTask,
    seed: int,
    place: Path | None,
    advance: Callable[[float], None],
) -> LearningRateSearch:
    """Looks for the rate whose best epoch knows most of the validation split; sees no tests."""
    untested = dataclasses.replace(task, data=dataclasses.replace(task.data, test=None))

    def score(rate: float) -> float:
        run = _run(
            contender, untested, rate, _SEARCH_SEED + seed, 1,
            place=place and place / f"rate-{rate:.6g}", advance=advance, same_start=False,
        )  # fmt: skip
        return float(run.to_xarray()["validation_accuracy"].max())  # NaN if it diverged at once

    return search_learning_rate(score, contender.guess, tries=task.schedule.tries)


def _run(
    contender: Contender,
    task: TextTask,
    rate: float,
    seed: int,
    seeds: int,
    *,
    same_start: bool,
    place: Path | None,
    advance: Callable[[float], None],
) -> ClassifierTrajectory:
    return train_classifier(
        task.config,
        task.data,
        contender.make,
        learning_rate=rate,
        epochs=task.schedule.epochs,
        batch=task.schedule.batch,
        seed=seed,
        seeds=seeds,
        reduction="sum",
        patience=task.schedule.patience,
        same_initial_model=same_start,
        checkpoint=place,
        progress=advance,
    )


def _measured(run: ClassifierTrajectory, seed: int, task: TextTask) -> xr.Dataset:
    """Where the read-out of a model looks on texts to test with, and how sparse its weights are."""
    model, test = run.model(seed), task.data.test
    assert isinstance(model, TextTransformer) and test is not None
    mask = np.ones(test.inputs.shape, bool) if test.mask is None else test.mask
    looked = attended_words(model, test.inputs, mask, task.telling, task.frequencies)
    matrices = head_matrices(model)
    whole = [matrices[name].reshape(model.config.blocks, -1) for name in MATRICES]
    hoyer = [[hoyer_sparsity(block) for block in matrix] for matrix in whole]
    return xr.Dataset(
        {
            "attention": ("block", looked.attention),
            "attention_by_frequency": ("block", looked.by_frequency),
            "attention_by_chance": looked.chance,
            "rescaled_attention": looked.rescaled,
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

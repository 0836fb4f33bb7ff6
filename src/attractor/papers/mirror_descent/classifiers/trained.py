"""One optimizer on a task: its learning rate searched for, then models from several seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import xarray as xr

from attractor.models import (
    ClassifierTrajectory,
    LearningRateSearch,
    search_learning_rate,
    train_classifier,
)
from attractor.papers.mirror_descent.classifiers.contenders import Contender
from attractor.papers.mirror_descent.classifiers.task import ClassifierTask

_TIE = 1e-4
"""Weight of the loss beside the accuracy in the search: less than one example counts."""
_SEARCH_SEED = 10_000
"""Apart from the seeds of the runs that are reported."""


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
        advance: Told of steps just done.
        searched: Earlier results of this optimizer, whose learning rates are taken; None to search.

    Returns:
        Accuracies and what the task measures, by seed; and the run itself with its models.
    """
    if searched is None:
        rates = _search(contender, task, seed, place, advance)
    else:
        rates = LearningRateSearch(searched["tried_rate"].values, searched["tried_accuracy"].values)
    run = _run(
        contender, task, rates.best, seed, seeds,
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
            contender, untested, rate, _SEARCH_SEED + seed, 1,
            place=place and place / f"rate-{rate:.6g}", advance=advance, same_start=False,
        )  # fmt: skip
        curves = run.to_xarray()
        # Before anything is learned all rates know as much; the loss tells which goes somewhere.
        loss = float(curves["validation_loss"].min())
        return float(curves["validation_accuracy"].max()) - _TIE * loss  # NaN if it diverged

    guess = task.schedule.guesses.get(contender.name, contender.guess)
    return search_learning_rate(score, guess, tries=task.schedule.tries)


def _run(
    contender: Contender,
    task: ClassifierTask,
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
        augment=task.augment,
        prepare=task.prepare,
        checkpoint=place,
        progress=advance,
    )

"""Tasks that the statements on in-context regression are checked on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from jaxtyping import ArrayLike

from attractor.files.regression import RegressionCase
from attractor.papers.assumption import Assumption
from attractor.prompt.regression._trained_limit import initial_scale_bounds
from attractor.prompt.regression.covariances import kac_murdock_szego
from attractor.prompt.regression.task import RegressionTask

LONG = (256, 1024, 4096)
"""Lengths of prompts, long enough for what long prompts do to be seen."""


@cache
def independent(
    dimension: int = 5, lengths: tuple[int, ...] = LONG, *, time: float = math.inf
) -> RegressionCase:
    """Standard normal inputs that are independent, labels without noise."""
    words = "until it rests" if math.isinf(time) else f"for a time of {time:g}"
    about = f"{dimension} independent inputs, gradient flow {words}"
    task = RegressionTask(np.eye(dimension))
    return RegressionCase(task, lengths, 0.2, time=time, about=about)


@cache
def correlated(dimension: int = 5, scale: float = 0.2) -> RegressionCase:
    """Inputs with the Kac-Murdock-Szego covariance of correlation 1/2."""
    task = RegressionTask(kac_murdock_szego(dimension, 0.5))
    about = f"{dimension} inputs of correlation 1/2 between neighbors, start {scale:g}"
    return RegressionCase(task, LONG, scale, about=about)


@cache
def unequal(first: float = 1.0, second: float = 2.0) -> RegressionCase:
    """Two independent inputs of different variances."""
    task = RegressionTask(np.diag([first, second]))
    return RegressionCase(task, LONG, 0.2, about=f"inputs of variances {first:g} and {second:g}")


@cache
def random_task(seed: int, dimension: int = 3) -> RegressionCase:
    """Inputs of a random covariance, started at half the bound on the scale."""
    draws = np.random.default_rng([seed, 5, dimension])
    factor = draws.standard_normal((dimension, 2 * dimension))
    covariance = factor @ factor.T / (2 * dimension)
    scale = initial_scale_bounds(covariance).large_prompt / 2
    about = f"{dimension} inputs of a random covariance, seed {seed}"
    return RegressionCase(RegressionTask(covariance), LONG, scale, about=about)


@cache
def small_input() -> RegressionCase:
    """One input of variance 1/4 started at 4, below one bound on the scale and above another."""
    about = "one input of variance 1/4, start 4"
    return RegressionCase(RegressionTask(np.array([[0.25]])), (256,), 4.0, about=about)


def noisy(case: RegressionCase) -> RegressionCase:
    """The case with noise in the labels of the prompt."""
    return case.replace(task=_changed(case.task, label_noise=0.5))


def _changed(
    task: RegressionTask, *, query_covariance: ArrayLike | None = None, label_noise: float = 0.0
) -> RegressionTask:
    queries = task.query_covariance if query_covariance is None else query_covariance
    return RegressionTask(
        task.covariance, np.asarray(queries), task.weight_variance, label_noise, task.query_noise
    )


BROKEN: Mapping[str, Callable[[], RegressionCase]] = {
    "independent inputs": correlated,
    "labels without noise": lambda: noisy(independent()),
    "queries like inputs": lambda: independent().replace(
        task=_changed(independent().task, query_covariance=2 * np.eye(5))
    ),
    "balanced start": lambda: independent().replace(initial_value=1.0),
    "scale below the bound": lambda: independent().replace(initial_scale=1.5),
    "several lengths": lambda: independent(5, (256,)),
    "prompts of some length": lambda: independent(5, (4, 256)),
    "a fixed time": independent,
    "training until it rests": lambda: independent(time=2.0),
    "horizon above 0.707": lambda: independent(9),
    "horizon at most 0.6": lambda: independent(1),
    "some noise": independent,
}
"""By name of an assumption, a case that breaks it."""


def broken(assumptions: Sequence[Assumption]) -> Mapping[str, Callable[[], RegressionCase]]:
    """By name of each of some assumptions, a case that breaks it."""
    return {assumption.name: BROKEN[assumption.name] for assumption in assumptions}

"""Tasks that the statements on in-context regression are checked on."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.regression import initial_scale_bounds
from attractor.prompts.regression.task import RegressionTask, kac_murdock_szego

LONG = (256, 1024, 4096)
"""Lengths of prompts, long enough for what long prompts do to be seen."""


@cache
def independent(
    dimension: int = 5, lengths: tuple[int, ...] = LONG, *, time: float = math.inf
) -> RegressionCase:
    """Standard normal inputs that are independent, labels without noise."""
    words = "until it converges" if math.isinf(time) else f"for a time of {time:g}"
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
    return case.replace(task=replace(case.task, label_noise=0.5))

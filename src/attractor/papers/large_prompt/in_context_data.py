"""In-context tasks that the general theorem on long prompts is checked on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from attractor.prompts.files.in_context import InContextCase
from attractor.prompts.in_context.families import built_in, negative_controls

_INPUTS = 3
FAMILIES = ("noisy", "linear", "logistic", "features", "index")
"""Families that meet the hypotheses, by name."""
_LENGTHS, _SHORT = (64, 256, 1024), (16, 64, 256)
_SETTINGS: dict[str, dict[str, Any]] = {
    "noisy": {"tasks": 1536, "longest": 1024, "lengths": _LENGTHS, "time": 15.0},
    "linear": {"tasks": 512, "longest": 1024, "lengths": _LENGTHS, "time": 15.0},
    "logistic": {"tasks": 2048, "longest": 1024, "lengths": _SHORT, "time": 120.0},
    "features": {"tasks": 512, "longest": 4096, "lengths": _LENGTHS, "time": 60.0},
    "index": {"tasks": 512, "longest": 4096, "lengths": _LENGTHS, "time": 60.0},
}
"""Infinite prompts are exact for Gaussian tokens, or else four times as long as the longest."""


@cache
def family(name: str, seed: int = 0) -> InContextCase:
    """Tasks of a family.

    Args:
        name: One of ``FAMILIES``.
        seed: Same seed, same tasks.
    """
    return InContextCase.of_task(built_in(_INPUTS)[name], seed=seed, **_SETTINGS[name])


@cache
def small() -> InContextCase:
    """A few tasks of linear regression with noisy labels, for hypotheses that data break."""
    return InContextCase.of_task(built_in(_INPUTS)["noisy"], 64, 256, (4, 64), time=15.0)


@cache
def heavy_weights() -> InContextCase:
    """Linear regression with Cauchy weights, whose sub-Gaussian parameters have a heavy tail."""
    task = negative_controls(_INPUTS)["Cauchy weights"]
    return InContextCase.of_task(task, 64, 256, (4, 64), time=15.0)


@cache
def heavy_tokens() -> InContextCase:
    """Linear regression with Laplace inputs, which no Gaussian dominates."""
    task = negative_controls(_INPUTS)["Laplace inputs"]
    tokens = InContextCase.of_task(task, 256, 2048, (16, 256), time=15.0)
    return tokens.replace(sigma=small().sigma)


@cache
def long_queries() -> InContextCase:
    """Queries of three times the deviation that the theorem allows."""
    return small().replace(queries=3 * small().queries)


@cache
def curved_loss() -> InContextCase:
    """Logistic loss of labels -3 and 3, whose curvature is above 1."""
    labels = 3 * np.sign(small().labels)
    return small().replace(labels=labels, loss_number=1)


@cache
def without_sigma() -> InContextCase:
    """Tasks whose sub-Gaussian parameters are not given."""
    return replace(small(), sigma=None)

"""Training of the experiments, exact and with the artifacts of the published code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import xarray as xr

from attractor.attention import LinearHead
from attractor.files.case import Case
from attractor.papers.figure import stacked
from attractor.training import Optimizer, train

EXACT, PUBLISHED = "exact", "as published"


class Kernel(NamedTuple):
    """A way to train.

    Attributes:
        name: What figures call it.
        optimizer: The steps.
        kernel: How gradients are taken.
        dtype: In which precision.
    """

    name: str
    optimizer: Optimizer
    kernel: str = "exact"
    dtype: str = "float64"


def kernels(exact: Optimizer, published: Optimizer, *, both: bool) -> list[Kernel]:
    """The exact way, and beside it the published one: plain gradients in single precision.

    Args:
        exact: The steps.
        published: The same as the published code takes them.
        both: Whether the published way is wanted.
    """
    ways = [Kernel(EXACT, exact), Kernel(PUBLISHED, published, "plain", "float32")]
    return ways if both else ways[:1]


def run(case: Case, ways: Sequence[Kernel], **arguments: Any) -> xr.Dataset:
    """The records of training on a case in several ways, over ``kernel``, without instances."""
    head = arguments.pop("head", case.head)
    runs = [
        train(
            case.tokens,
            LinearHead(head) if not isinstance(head, LinearHead) else head,
            way.optimizer,
            parameterization=case.parameterization,
            kernel=way.kernel,
            dtype=way.dtype,
            **arguments,
        )
        for way in ways
    ]
    panels = [each.data.isel(instance=0, drop=True) for each in runs]
    return stacked(panels, "kernel", [way.name for way in ways])

"""Training runs that several figures of next-token prediction are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int

from attractor.next_token.corpus import Corpus
from attractor.next_token.generators import order_first_corpus
from attractor.next_token.two_stage import train_two_stages
from attractor.next_token.two_stage_measures import measure_two_stages
from attractor.next_token.two_stage_trajectory import TwoStageTrajectory
from attractor.papers.figure import Request, stacked

STARTS = ("zero", "Gaussian")
"""The starts of both matrices."""
SCALES = (0.06, 0.058)
"""Standard deviations of Gaussian starts: what reproduces the norms of the published figure."""


def corpora(count: int, seed: int, **settings: Any) -> list[Corpus]:
    """Realizable corpora drawn from seeds in a row."""
    return [
        order_first_corpus(seed=number, **settings).corpus for number in range(seed, seed + count)
    ]


def train_drawn(
    request: Request, drawn: Sequence[Corpus], name: str, *, copies: int = 1, **training: Any
) -> TwoStageTrajectory:
    """Two-stage training of corpora, noted as data of the figure, with a checkpoint of that name.

    Args:
        request: The request for the figure.
        drawn: The corpora.
        name: Names the data and the checkpoint.
        copies: How often every corpus is trained, all in one batch.
        **training: Other arguments of ``train_two_stages``.
    """
    request.uses(name, **{f"tokens_{i}": corpus.tokens for i, corpus in enumerate(drawn)})
    return train_two_stages(
        [*drawn] * copies,
        checkpoint=request.checkpoint(name),
        progress=request.progress,
        **training,
    )


def train_from_both_starts(
    request: Request, drawn: Sequence[Corpus], name: str, **training: Any
) -> xr.Dataset:
    """Measures of two-stage training of every corpus, from zero and from Gaussian entries.

    Returns:
        As ``measure_two_stages``, with a dimension ``start``.
    """
    count = len(drawn)
    scales = tuple(np.repeat([0.0, scale], count) for scale in SCALES)
    run = train_drawn(
        request, drawn, name, copies=2, initial_scales=scales, seed=request.seed, **training
    )
    measured = measure_two_stages(run)
    parts = [measured.isel(instance=slice(i * count, (i + 1) * count)) for i in range(len(STARTS))]
    numbered = [part.assign_coords(instance=np.arange(count)) for part in parts]
    return stacked(numbered, "start", STARTS)


def log_spaced(last: int, count: int = 60) -> Int[np.ndarray, "records"]:
    """Steps from 1 to the last, evenly spread over the logarithm."""
    return np.unique(np.rint(np.geomspace(1, last, count)).astype(np.int64))

"""Results of classifiers: trained ones, and made-up ones that are small."""

from __future__ import annotations

from functools import cache

import numpy as np
import xarray as xr

from attractor.files.classifiers import ClassifierCase
from attractor.papers.figure import Request
from attractor.papers.mirror_descent.classifiers.comparison import Comparison
from attractor.papers.mirror_descent.classifiers.experiment import experiment
from attractor.papers.mirror_descent.classifiers.weights import MATRICES
from attractor.papers.mirror_descent.text.sizes import SIZES, task_of

_SHARED = 0.01 * np.array([-1, 0.5, 0, -0.5, 1])
"""What five made-up seeds have in common, whatever the optimizer."""
_OWN = 0.004 * np.array([[1, -1, 0, 0.5, -0.5], [-0.5, 0.5, 1, 0, -1]])
_BLOCKS = 2


@cache
def trained_texts(seed: int) -> ClassifierCase:
    """Small models trained on made-up reviews with planted words, some two minutes of work."""
    request = Request("quick", SIZES["quick"], seed)
    found = experiment(request, task_of(request), ("p = 1.1", "p = 2"), kind="text")
    return ClassifierCase(found, f"classifiers of planted words, seed {seed}")


@cache
def trained_images(seed: int) -> ClassifierCase:
    """Small vision transformers trained on handwritten digits, some minutes of work."""
    from attractor.papers.mirror_descent.figures.vision import VISION  # which need not load else

    settings = VISION.settings("quick") | {"optimizers": ("p = 1.1", "Adam")}
    found = VISION.compute(Request("quick", settings, seed))
    return ClassifierCase(found, f"classifiers of handwritten digits, seed {seed}")


def made_up(comparison: Comparison, gap: float) -> ClassifierCase:
    """Made-up results of five seeds.

    Args:
        comparison: Says of which data and optimizers.
        gap: By how much the first optimizer has more of everything than the second, in the mean.
    """
    over_seeds = np.array([[gap], [0.0]]) + _SHARED + _OWN
    ones = np.ones((*over_seeds.shape, len(MATRICES), _BLOCKS))
    variables = {
        "test_accuracy": (("optimizer", "seed"), 0.8 + over_seeds),
        "status": (("optimizer", "seed"), np.zeros(over_seeds.shape, int)),
        "at_edge": ("optimizer", [False, False]),
        "hoyer": (
            ("optimizer", "seed", "matrix", "block"), (0.3 + over_seeds)[..., None, None] * ones
        ),
    }  # fmt: skip
    chance = 0.1
    if comparison.data == "text":
        chance = 0.5
        attention = (0.4 + over_seeds)[..., None] * np.ones(_BLOCKS)
        by_block = ("optimizer", "seed", "block")
        variables |= {
            "attention": (by_block, attention),
            "attention_by_frequency": (by_block, np.full_like(attention, 0.05)),
            "attention_by_chance": (("optimizer", "seed"), np.full_like(over_seeds, 0.075)),
            "rescaled_attention": (("optimizer", "seed"), 0.3 + over_seeds),
        }
    data = xr.Dataset(
        variables,
        {
            "optimizer": list(comparison.names),
            "seed": np.arange(over_seeds.shape[1]),
            "matrix": list(MATRICES),
            "block": np.arange(1, _BLOCKS + 1),
        },
        {"data": comparison.data, "chance": chance, "test_examples": 2000},
    )
    return ClassifierCase(data, "made-up results")


def other_data(case: ClassifierCase) -> ClassifierCase:
    """The results as if they were of images in place of texts, or the other way round."""
    other = "image" if case.data.attrs["data"] == "text" else "text"
    return case.replace(data=case.data.assign_attrs(data=other))


def rate_at_edge(case: ClassifierCase) -> ClassifierCase:
    """The results as if the search had ended at the edge for the first optimizer."""
    data = case.data.assign(at_edge=("optimizer", [True, False]))
    return case.replace(data=data)


def one_start(case: ClassifierCase) -> ClassifierCase:
    """The results as if all seeds had started from one model, as published."""
    return case.replace(data=case.data.assign_attrs(same_start=1))


def mostly_stuck(case: ClassifierCase) -> ClassifierCase:
    """The results with most seeds of the second optimizer at chance."""
    data = case.data.copy(deep=True)
    data["test_accuracy"][1, 2:] = data.attrs["chance"]
    return case.replace(data=data)

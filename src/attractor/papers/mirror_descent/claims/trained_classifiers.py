"""Classifiers of texts and of images trained by mirror descent with p = 1.1."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import xarray as xr

from attractor.files.classifiers import ClassifierCase
from attractor.papers.claim import Claim, Claims, Contrast
from attractor.papers.figure import Request
from attractor.papers.mirror_descent.classifiers.comparison import Comparison, Quantity
from attractor.papers.mirror_descent.classifiers.experiment import experiment
from attractor.papers.mirror_descent.classifiers.hypotheses import (
    learned,
    own_starts,
    rates_inside,
    results_of,
)
from attractor.papers.mirror_descent.classifiers.weights import MATRICES
from attractor.papers.mirror_descent.text.sizes import SIZES, task_of
from attractor.papers.paper import MIRROR_DESCENT

CLAIMS = Claims(MIRROR_DESCENT, ClassifierCase)

_ORDER = "the claim is of an order"
_NEAR = -0.02
_COUNTED = (
    "models that have learned nothing count in accuracy alone; the interval of 95 % is over seeds"
)
_GAP = 0.05
"""Of made-up results, by which the claims hold."""

_ACCURACY = Quantity("test accuracy", "test_accuracy", of_all=True)
_KEYS, _QUERIES, _VALUES = (
    Quantity(f"sparsity of the {matrix}", "hoyer", matrix)
    for matrix in ("keys", "queries", "values")
)
_ATTENTION = Quantity("attention of the last block on telling words", "attention", last=True)
_OTHER_ATTENTION = (
    Quantity("rescaled attention, the published reading", "rescaled_attention"),
    Quantity("attention of all blocks on telling words", "attention"),
    Quantity("attention as on words of like frequency", "attention_by_frequency", last=True),
    Quantity("attention by chance", "attention_by_chance"),
)
_SHARED = 0.01 * np.array([-1, 0.5, 0, -0.5, 1])
"""Deviations of five made-up seeds that all optimizers share."""
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


def _claim(
    name: str,
    statement: str,
    summary: str,
    comparison: Comparison,
    *,
    published: str,
    bound: float = 0.0,
    reason: str = _ORDER,
    gap: float = _GAP,
) -> Claim[ClassifierCase]:
    """A claim that one optimizer has more of something, or not less of it than a bound allows."""
    trained: Callable[[int], ClassifierCase]
    trained = trained_texts if comparison.data == "text" else trained_images

    def holding() -> ClassifierCase:
        return made_up(comparison, gap)

    return CLAIMS.claim(
        name,
        summary,
        statement=statement,
        assuming=(
            results_of(comparison).broken_by(lambda: other_data(holding())),
            rates_inside(comparison.names).broken_by(lambda: rate_at_edge(holding())),
            own_starts().broken_by(lambda: one_start(holding())),
            learned(comparison.names).broken_by(lambda: mostly_stuck(holding())),
        ),
        contrast=Contrast(
            f"mean over seeds of {comparison.words}",
            comparison.measure,
            "mean over seeds of the difference the other way round",
            comparison.measure_reversed,
            bound=bound,
            reason=reason,
            sense=">=",
            wrong_bound=abs(bound),
        ),
        data=lambda seed: [trained(seed)],
        holding=holding,
        note=f"{published}; {_COUNTED}",
    )


TEXT_GENERALIZATION = _claim(
    "text-generalization",
    "experiment: sentiment of film reviews, test accuracy",
    "mirror descent with p = 1.1 classifies unseen texts better than gradient descent",
    Comparison("text", "p = 1.1", "p = 2", _ACCURACY),
    published="published as the highest accuracy of all epochs on the test set, from one start",
)
TEXT_SELECTION = _claim(
    "text-selection",
    "experiment: sentiment of film reviews, token selection",
    "the read-out attends more to words that tell the class with p = 1.1 than with p = 2",
    Comparison("text", "p = 1.1", "p = 2", _ATTENTION, _OTHER_ATTENTION),
    published="published of one model each, .4387 and .3122 of rescaled attention",
)
WEIGHT_SPARSITY = _claim(
    "weight-sparsity",
    "experiment: sentiment of film reviews, sparsity of weights",
    "attention weights of text classifiers are sparser with p = 1.1 than with p = 2",
    Comparison("text", "p = 1.1", "p = 2", _KEYS, (_QUERIES, _VALUES)),
    published="published as histograms of one model each",
)
VISION_ACCURACY = _claim(
    "vision-accuracy",
    "experiment: vision transformer, test accuracy",
    "a vision transformer trained with p = 1.1 is at most .02 less accurate than one by Adam",
    Comparison("image", "p = 1.1", "Adam", _ACCURACY),
    published="published on CIFAR-10 are .808 and .815, one run each",
    bound=_NEAR,
    reason="about three times the published gap",
    gap=-0.005,
)
VISION_SPARSITY = _claim(
    "vision-sparsity",
    "experiment: vision transformer, sparsity of weights",
    "attention weights of a vision transformer are sparser with p = 1.1 than with Adam",
    Comparison("image", "p = 1.1", "Adam", _KEYS, (_QUERIES, _VALUES)),
    published="published as histograms of one model each",
)

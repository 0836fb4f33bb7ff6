"""A small experiment with everything that results of the library rest on: training and solving."""

import warnings

import numpy as np

import attractor as at
from attractor.maps.sweeps import Experiment

MEASURES = {"margin_ratio": ("f8", "of the trained direction"), "norm": ("f8", "of the solution")}


def run(point, instances, seeds):
    tokens, head = at.datasets.unit_tokens(3, point["T"], 4, seeds=instances.tolist())
    rule = at.normalized_gradient_descent(point["learning_rate"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.support.errors.AttractorWarning)
        trained = at.train(
            tokens, head, rule, steps=50, seeds=len(seeds), seed=seeds.start, record=[50]
        )
        verdict = at.verify(trained).data.isel(step=-1)
    order = ("instance", "seed")
    found = {"margin_ratio": verdict["margin_ratio"], "norm": verdict["solution_norm"]}
    return {name: np.asarray(array.transpose(*order)) for name, array in found.items()}


EXPERIMENT = Experiment("trained:run", MEASURES, ["T", "learning_rate"], ["T"])

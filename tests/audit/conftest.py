"""Audits made up from known numbers, as ``audit_heads`` lays them out."""

import numpy as np
import pytest
import xarray as xr

from attractor.audit.result import Audit, Learnable, Margin


def made_audit(layers=6, heads=12, *, draws=99, queries=12, seed=0, margins=False, prompts=True):
    """A third of the heads beat their nulls, as a small text encoder might."""
    random = np.random.default_rng(seed)
    shape = (layers, heads)
    place = ("layer", "head")
    null = random.normal(0.3, 0.05, (draws, *shape)).clip(0, 1)
    strength = random.gamma(0.5, 0.12, shape) * (random.random(shape) < 0.6)
    accuracy = (0.3 + strength + random.normal(0, 0.03, shape)).clip(0, 1)
    p = (1 + (null >= accuracy).sum(0)) / (draws + 1)
    deviation = (accuracy - null.mean(0)) / null.std(0)
    together = np.where(deviation > 3.2, 1 / (draws + 1), np.minimum(1, 20 * p))
    learnable = np.full(shape, str(Learnable.NOT_TOLD_APART), dtype=object)
    learnable[together <= 0.05] = str(Learnable.LEARNABLE)
    offset_share = random.beta(1, 5, shape)
    sink_share = random.beta(2, 1, shape)
    selection = np.full(shape, "mixed", dtype=object)
    selection[sink_share > 0.9] = "sink"
    if layers > 1:
        selection[0, 2], offset_share[0, 2] = "offset -1", 0.95
        accuracy[0, 2], learnable[0, 2], together[0, 2] = 0.97, str(Learnable.POSITIONAL), 0.01
        learnable[-1, -1], accuracy[-1, -1] = str(Learnable.TOO_FEW), np.nan
        null[:, -1, -1] = p[-1, -1] = together[-1, -1] = np.nan
    data = {
        "capture": np.full(shape, "bilinear", dtype=object),
        "sink_mass": sink_share * 0.9,
        "sink_share": sink_share,
        "offset": np.full(shape, -1),
        "offset_share": offset_share,
        "self_share": random.beta(1, 8, shape),
        "top_probability": random.beta(4, 3, shape),
        "effective_size": random.gamma(3, 2, shape),
        "selection": selection,
        "documents": np.full(shape, 200),
        "test_queries": np.full(shape, 200),
        "accuracy": accuracy,
        "accuracy_low": (accuracy - 0.06).clip(0, 1),
        "accuracy_high": (accuracy + 0.06).clip(0, 1),
        "accuracy_query_free": random.normal(0.25, 0.05, shape).clip(0, 1),
        "accuracy_offset": np.where(selection == "offset -1", 0.96, 0.12 * random.random(shape)),
        "chance": np.full(shape, 0.05),
        "q": np.full(shape, np.nan),
        "learnable": learnable,
    }
    variables = {name: (place, value) for name, value in data.items()}
    for name, value in {"p": p, "p_together": together}.items():
        variables[name] = (("null", *place), value[None])
    variables["accuracy_null"] = (("null", "draw", *place), null[None])
    if margins:
        ratio = random.random((2, *shape))
        margin = np.where(ratio[0] > 0.9, f"{Margin.AT} (nuclear)", str(Margin.ELSEWHERE))
        variables["margin_ratio"] = (("norm", *place), ratio)
        variables["margin_p"] = (("norm", *place), random.random((2, *shape)))
        variables["specificity"] = (("norm", *place), random.normal(0, 0.2, (2, *shape)))
        variables["gap"] = (("norm", *place), np.full((2, *shape), 1e-6))
        variables["margin"] = (place, margin.astype(object))
    if prompts:
        variables["score_deviation"] = (place, random.gamma(3, 0.4, shape))
        variables["horizon"] = (place, random.gamma(3, 0.5, shape))
        variables["defect"] = (place, random.beta(2, 8, shape))
        length = np.exp(random.normal(6, 2, (2, *shape)))
        variables["required_length"] = (("error", *place), length)
        words = np.where(length[0] < 1000, "short", "long").astype(object)
        variables["prompt"] = (place, words)
    tokens = random.integers(0, 9, (queries, *shape))
    variables["selected"] = (("query", *place), tokens)
    variables["selected_probability"] = (("query", *place), random.random((queries, *shape)))
    coordinates = {
        "layer": np.arange(layers),
        "head": np.arange(heads),
        "null": ["pairing"],
        "document": ("query", np.arange(queries)),
        "position": ("query", np.full(queries, 5)),
        "token": ("query", np.array(["word"] * queries, dtype=object)),
    }
    if margins:
        coordinates["norm"] = ["nuclear", "frobenius"]
    if prompts:
        coordinates["error"] = [0.3, 0.1]
    settings = {"null": "pairing", "alpha": 0.05, "draws": draws, "seed": seed}
    return Audit(xr.Dataset(variables, coordinates, settings))


@pytest.fixture
def audit():
    return made_audit()

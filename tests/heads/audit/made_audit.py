"""Audits made up from random numbers, as ``audit_heads`` lays them out."""

import numpy as np
import xarray as xr

from attractor.heads.audit.result import Audit, Learnable


def made_curves(documents=((3, 6, 12), (3, 6, 12)), *, draws=9, seed=0):
    """Learning curves: of even heads above all draws from the second size on, of odd ones below."""
    random = np.random.default_rng(seed)
    shape = np.shape(documents)
    null = random.uniform(0.2, 0.4, (*shape, draws))
    above = (np.arange(shape[0]) % 2 == 0)[:, None] & (np.arange(shape[1]) > 0)
    accuracy = np.where(above, 0.8, 0.1)
    of_size = {
        "documents": np.array(documents),
        "accuracy": accuracy,
        "accuracy_low": accuracy - 0.1,
        "accuracy_high": accuracy + 0.1,
        "accuracy_query_free": np.full(shape, 0.15),
        "accuracy_offset": np.full(shape, 0.12),
        "chance": np.full(shape, 0.05),
    }
    variables = {name: (("curve", "size"), value) for name, value in of_size.items()}
    variables["accuracy_null"] = (("curve", "size", "draw"), null)
    verdicts = np.where(above[:, -1], Learnable.LEARNABLE, Learnable.NOT_TOLD_APART)
    variables["learnable"] = ("curve", verdicts.astype(str))
    coordinates = {
        "layer": ("curve", np.arange(shape[0]) // 2), "head": ("curve", np.arange(shape[0])),
    }  # fmt: skip
    return xr.Dataset(variables, coordinates, {"null": "rotation", "seed": seed, "draws": draws})


def made_audit(layers=6, heads=12, *, draws=99, queries=12, seed=0, prompts=True):
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
        "advantage": np.full(shape, 0.1),
        "advantage_low": np.full(shape, -0.02),
        "advantage_high": np.full(shape, 0.2),
        "chance": np.full(shape, 0.05),
        "q": np.full(shape, np.nan),
        "learnable": learnable,
    }
    variables = {name: (place, value) for name, value in data.items()}
    for name, value in {"p": p, "p_together": together}.items():
        nulled = np.stack([value, value / 2, np.ones(shape) + 0 * value], -1)
        variables[name] = ((*place, "null"), nulled)
    null = np.moveaxis(null, 0, -1)
    variables["accuracy_null"] = ((*place, "null", "draw"), np.stack([null, null - 0.1, null], 2))
    if prompts:
        variables["score_deviation"] = (place, random.gamma(3, 0.4, shape))
        variables["horizon"] = (place, random.gamma(3, 0.5, shape))
        variables["defect"] = (place, random.beta(2, 8, shape))
        length = np.exp(random.normal(6, 2, (*shape, 2)))
        variables["required_length"] = ((*place, "error"), length)
        words = np.where(length[..., 0] < 1000, "short", "long").astype(object)
        variables["prompt"] = (place, words)
    tokens = random.integers(0, 9, (*shape, queries))
    variables["selected"] = ((*place, "query"), tokens)
    variables["selected_probability"] = ((*place, "query"), random.random((*shape, queries)))
    coordinates = {
        "layer": np.arange(layers),
        "head": np.arange(heads),
        "null": ["rotation", "pairing", "signs"],
        "document": ("query", np.arange(queries)),
        "position": ("query", np.full(queries, 5)),
        "token": ("query", np.array(["word"] * queries, dtype=object)),
    }
    if prompts:
        coordinates["error"] = [0.3, 0.1]
    settings = {
        "null": "rotation",
        "alpha": 0.05,
        "draws": draws,
        "seed": seed,
        "sink_positions": "by mask",
    }
    return Audit(xr.Dataset(variables, coordinates, settings))


def judged(*learnable, **changed):
    """Heads of one layer with these verdicts."""
    data = made_audit(1, len(learnable), draws=19, **changed).data
    words = np.array([list(learnable)], dtype=object)
    return data.assign(learnable=(("layer", "head"), words))


def with_margins(audit, *, draws=19, seed=0):
    """The same, asked of training texts: head 0.0 is at its nuclear margin solution."""
    random = np.random.default_rng(seed)
    place = ("layer", "head")
    shape = audit.data["learnable"].shape
    ratio = random.random((*shape, 2)) / 9
    ratio[0, 0] = 0.7, 0.98
    verdict = np.full(shape, "elsewhere", dtype=object)
    verdict[0, 0] = "at the margin solution (nuclear)"
    together = np.where(verdict == "elsewhere", 0.6, 0.05)
    estimators = ["frobenius", "nuclear", "logistic 0.1", "mean difference"]
    variables = {
        "margin": (place, verdict),
        "margin_space": (place, np.full(shape, "K^T Q")),
        "margin_ratio": ((*place, "norm"), ratio),
        "margin_gap": ((*place, "norm"), np.full((*shape, 2), 1e-9)),
        "margin_cosine": ((*place, "estimator"), random.random((*shape, 4))),
        "margin_ratio_null": ((*place, "margin_draw"), random.random((*shape, draws)) / 9),
        "margin_p": (place, together / 2),
        "margin_p_together": (place, together),
        "margin_queries": (place, np.full(shape, 128.0)),
        "margin_rows": (place, np.full(shape, 4224.0)),
    }
    coordinates = {"norm": estimators[:2], "estimator": estimators}
    return Audit(audit.data.assign(variables).assign_coords(coordinates))


def made_control(heads=24, *, seed=0):
    """A positive control in which all is as it should be but for one head of the second arm."""
    random = np.random.default_rng(seed)
    arms = ["W, trained to the end", "K and Q, trained to the end", "K and Q, stopped early"]
    there = [True, True, False]
    ratio = np.stack([random.normal(mean, 0.02, (3, heads)) for mean in (0.7, 0.8)], -1)
    ratio[0, :, 0], ratio[1, :, 1], ratio[2] = 0.99, 0.98, ratio[2] / 3
    verdict = np.full((3, heads), "on the way (nuclear)", dtype=object)
    verdict[0], verdict[1, 1:] = (
        "at the margin solution (frobenius)",
        "at the margin solution (nuclear)",
    )
    right = (verdict != "on the way (nuclear)") == np.array(there)[:, None]
    names = ("arm", "control_head", "norm")
    return xr.Dataset(
        {
            "verdict": (names[:2], verdict),
            "right": (names[:2], right),
            "margin_ratio": (names, ratio),
            "margin_cosine": (names, ratio - 0.01),
        },
        {"arm": arms, "expected": ("arm", there), "norm": ["frobenius", "nuclear"]},
        {"width": 16, "tokens": 8, "sequences": 16, "steps": 2000, "draws": 19, "alpha": 0.05},
    )

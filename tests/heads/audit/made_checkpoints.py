"""Heads of known movement, captured at two checkpoints, and an audit made up of random numbers."""

import numpy as np
import xarray as xr

import attractor as at
from attractor.heads import Captured, CheckpointAudit, Projections
from attractor.heads.audit.margin_solution import problem_of
from attractor.heads.captured.rows import trained_factors
from attractor.heads.checkpoints.checkpoint_result import VARIABLES

QUERIES, TOKENS, HIDDEN, WIDTH = 32, 6, 14, 6


def captured_heads(K, Q, b=None, *, seed=0, queries=QUERIES, **changed):
    """Heads of a layer on anisotropic hidden states, the same for the same seed."""
    random = np.random.default_rng(seed)
    states = random.standard_normal((queries, TOKENS, HIDDEN)) * np.geomspace(2, 0.3, HIDDEN) + 0.2
    position = random.integers(TOKENS, size=queries)
    made = np.einsum("nd,hwd->nhw", states[np.arange(queries), position], Q)
    arrays = {
        "keys": np.einsum("ntd,hwd->nhtw", states, K),
        "queries": made if b is None else made + b,
        "position": position,
        "projections": Projections(query=Q, key=K, bias=b),
    }
    return Captured.from_arrays(**(arrays | changed))


def weights(seed, heads=2, size=1.0):
    """Keys, queries and biases of independent Gaussian numbers."""
    random = np.random.default_rng((7, seed))
    K, Q = (size * random.standard_normal((heads, WIDTH, HIDDEN)) for _ in range(2))
    return K, Q, size * random.standard_normal((heads, WIDTH))


def moved_along_the_solution(amount, seed=0):
    """Heads before and after a step along the margin solution of what they then select."""
    K, Q, b = weights(seed)
    last = captured_heads(K, Q, b)
    first_Q, first_b = Q.copy(), b.copy()
    for head in range(len(K)):
        tokens, left, right = trained_factors(last.layer(0), head)
        W = left.T @ right
        M = at.solve(problem_of(tokens, W), "frobenius").W
        step = np.linalg.pinv(left.T) @ M * (amount * np.linalg.norm(W) / np.linalg.norm(M))
        first_b[head] -= step[:, -1]
        first_Q[head] -= step[:, :-1] @ np.linalg.pinv(right[:, :-1]) @ Q[head]
    return captured_heads(K, first_Q, first_b), last


def made_checkpoint_audit(checkpoints=1, layers=3, heads=4, *, draws=19, seed=0):
    """An audit as it might be: one head toward, one away, one not asked."""
    random = np.random.default_rng(seed)
    shape = (checkpoints, layers, heads)
    cosine = random.normal(0.2, 0.02, shape)
    direction = np.full(shape, "elsewhere", dtype=object)
    cosine[0, 0, 1], direction[0, 0, 1] = 0.5, "toward"
    cosine[0, 0, 2], direction[0, 0, 2] = -0.1, "away"
    direction[-1, -1, -1], cosine[-1, -1, -1] = "not asked: keys are rotated by position", np.nan
    ratio = random.normal(0.94, 0.03, shape)
    data = {
        "norm_ratio": ratio,
        "radial_cosine": random.uniform(-1, 0, shape),
        "agreement": random.uniform(0, 1, shape),
        "top_probability_before": random.uniform(0, 0.5, shape),
        "top_probability_after": random.uniform(0.5, 1, shape),
        "direction": direction,
        "gap_null": np.zeros(shape),
        "p_together": np.where(direction == "elsewhere", 0.7, 0.05),
    }
    variables = {name: (("checkpoint", "layer", "head"), value) for name, value in data.items()}
    place = ("checkpoint", "layer", "head", "norm")
    variables |= {name: (place, cosine[..., None]) for name in ("cosine", "gap")}
    null = random.normal(0.2, 0.02, (*shape, draws))
    null[-1, -1, -1] = np.nan
    variables["cosine_null"] = ((*place[:3], "draw"), null)
    assert set(variables) <= set(VARIABLES)
    coordinates = {
        "checkpoint": [str(number) for number in range(checkpoints)],
        "layer": np.arange(layers),
        "head": np.arange(heads),
        "norm": ["frobenius"],
    }
    settings = {"draws": draws, "alpha": 0.05, "seed": seed, "last": str(checkpoints)}
    return CheckpointAudit(xr.Dataset(variables, coordinates, settings))

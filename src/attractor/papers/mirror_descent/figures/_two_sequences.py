"""Joint mirror descent of head and attention on two sequences in the plane."""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr

from attractor.attention import LinearHead
from attractor.geometry import Lp
from attractor.margin import MarginProblem, label_problem, solve
from attractor.margin.selection import Selection
from attractor.papers.figure import Request
from attractor.papers.measurements.mirror_steps import divergences
from attractor.papers.mirror_descent.data import EXPONENTS, STEPS, two_sequences
from attractor.papers.mirror_descent.figures import _protocols
from attractor.papers.mirror_descent.figures._protocols import Protocol, trained
from attractor.tokens import Tokens

EXACT, PUBLISHED = _protocols.EXACT.name, _protocols.PUBLISHED.name
"""Labels of runs."""
_EVERY_STEP_TO = 500
_LATER = 150


def joint_runs(request: Request) -> xr.Dataset:
    """Trains head and attention from zero with every exponent.

    Returns:
        Over (p, kernel, record): ``W`` and ``v``, ``softmax_probability``, the mean of the highest
        attention weights, ``logistic_probability``, the mean of ``sigmoid(y_i v^T x_i)`` of the
        tokens attended to, ``published_logistic_probability``, where these tokens are those of
        the step before, ``W_divergence`` and ``v_divergence`` from the solutions of the tokens
        that the run ends on, ``step``; over (p, kernel) those ``tokens``, the solutions
        ``W_solution`` and ``v_solution``, the ``label_margin`` of the tokens and the largest of
        any, ``best_label_margin``.
    """
    tokens = two_sequences()
    request.uses("two sequences", tokens)
    protocols = [_protocols.EXACT, _protocols.PUBLISHED][: 1 + request.as_published]
    found = [
        _run(request, tokens, p, protocol).expand_dims(p=[p], kernel=[protocol.name])
        for p in EXPONENTS
        for protocol in protocols
    ]
    return xr.combine_by_coords(found)  # pyright: ignore[reportReturnType]


def _run(request: Request, tokens: Tokens, p: float, protocol: Protocol) -> xr.Dataset:
    later = np.geomspace(_EVERY_STEP_TO, STEPS[p], _LATER + 1)[1:]
    steps = np.concatenate([np.arange(_EVERY_STEP_TO + 1), np.ceil(later).astype(int)])
    run = trained(
        request,
        protocol,
        tokens,
        LinearHead(np.zeros(2)),
        p,
        initial=np.zeros((2, 2)),
        parameterization="v, W",
        record=steps,
    ).data.isel(instance=0, seed=0)
    W, v = run["W"].values, run["head_weight"].values
    attended = run["attended"].values[..., 0]
    end = Selection.from_index(tokens, attended[-1])
    geometry = Lp(p)
    solution = solve(MarginProblem.from_selection(tokens, end), geometry).W
    label_solution = solve(label_problem(tokens, end), geometry).W
    of_head = divergences(v[None, ..., None], label_solution[None], geometry)[0]
    before = np.concatenate([attended[:1], attended[:-1]])
    return xr.Dataset(
        {
            "W": (("record", "row", "column"), W),
            "v": (("record", "coordinate"), v),
            "softmax_probability": ("record", run["attended_probability"].values[..., 0].mean(-1)),
            "logistic_probability": ("record", _logistic(tokens, v, attended)),
            "published_logistic_probability": ("record", _logistic(tokens, v, before)),
            "W_divergence": ("record", divergences(W[None], solution[None], geometry)[0]),
            "v_divergence": ("record", of_head),
            "step": ("record", steps),
            "tokens": ("sequence", attended[-1]),
            "W_solution": (("row", "column"), solution),
            "v_solution": ("coordinate", label_solution[:, 0]),
            "label_margin": _label_margin(tokens, end, p),
            "best_label_margin": _best_label_margin(tokens, p),
        }
    )


def _label_margin(tokens: Tokens, selection: Selection, p: float) -> float:
    return 1 / float(solve(label_problem(tokens, selection), Lp(p)).value)


def _best_label_margin(tokens: Tokens, p: float) -> float:
    every = itertools.product(range(tokens.length), repeat=len(tokens.keys))
    return max(_label_margin(tokens, Selection.from_index(tokens, each), p) for each in every)


def _logistic(tokens: Tokens, v: np.ndarray, attended: np.ndarray) -> np.ndarray:
    """Mean over sequences of ``sigmoid(y_i v^T x_i)`` at the tokens given, for every record."""
    assert tokens.labels is not None
    chosen = tokens.keys[np.arange(len(tokens.keys)), attended]
    margins = tokens.labels[:, 0] * np.einsum("rd,rnd->rn", v, chosen)
    return (1 / (1 + np.exp(-margins))).mean(-1)

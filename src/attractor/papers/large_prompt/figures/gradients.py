"""Gradients from finite prompts along training on infinite ones."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.large_prompt.regimes import (
    DIMENSION,
    REGIMES,
    TARGET,
    by_regime,
    covariances,
    infinite_gradient,
    prompts,
    risk_gradient,
)
from attractor.plots.bands import band
from attractor.plots.design.look import SERIES, panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.results.paper import LARGE_PROMPT

_STEPS, _RATE, _PROMPTS = 8, 0.12, 96
_LENGTHS = (16, 128, 1024)


def _compute(request: Request) -> xr.Dataset:
    found = np.empty((len(REGIMES), len(_LENGTHS), _STEPS, request.seeds))
    risk = np.empty((len(REGIMES), _STEPS))
    for place, covariance in enumerate(covariances()):
        request.uses(REGIMES[place], covariance=covariance)
        scores = np.zeros((DIMENSION, DIMENSION))
        for step in range(_STEPS):
            exact = infinite_gradient(scores, covariance)
            residual = covariance @ scores - TARGET * np.eye(DIMENSION)
            risk[place, step] = float(np.sum(residual**2))
            for row, length in enumerate(_LENGTHS):
                for number in range(request.seeds):
                    seed = request.seed + number
                    draws = np.random.default_rng([seed, place, step, length])
                    tokens, queries = prompts(draws, (_PROMPTS,), length, covariance)
                    off = risk_gradient(scores, tokens, queries) - exact
                    found[place, row, step, number] = np.linalg.norm(off)
            scores = scores - _RATE * exact
    return xr.Dataset(
        {
            "discrepancy": (("regime", "length", "step", "seed"), found),
            "risk": (("regime", "step"), risk),
        },
        {
            "regime": list(REGIMES),
            "length": list(_LENGTHS),
            "step": np.arange(_STEPS),
            "seed": np.arange(request.seed, request.seed + request.seeds),
        },
    )


def _readings(data: xr.Dataset) -> Readings:
    by_step = data["discrepancy"].mean("seed")
    nearer = by_step.sel(length=_LENGTHS[-1]) < by_step.sel(length=_LENGTHS[0])
    mean = data["discrepancy"].mean(["seed", "step"])
    ratio = mean.sel(length=_LENGTHS[-1]) / mean.sel(length=_LENGTHS[0])
    count = len(REGIMES) * _STEPS
    return Readings(
        at_least(f"of {count} steps, those where 1,024 tokens give the better gradient than 16",
                 nearer.sum(), count, "nearer"),
        at_most("largest mean discrepancy of 1,024 tokens over that of 16", ratio.max(), 0.7),
        prompts=_PROMPTS,
        steps=_STEPS,
        rate=_RATE,
        target=TARGET,
        count=count,
        means=by_regime(mean, ".3f"),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.6, 1, 3, sharey=True)
    for axes, regime in zip(panels, REGIMES, strict=True):
        axes.set(yscale="log", xlabel="step", title=f"{regime} covariance")
        for length, look in zip(_LENGTHS, SERIES, strict=False):
            curve = data["discrepancy"].sel(regime=regime, length=length)
            band(axes, curve, "step", center="mean", label=f"$L$ = {length:,}", look=look)
    panels[0].set_ylabel("distance of the gradients")
    panel_letters(panels)
    shared_legend(figure, panels[:1])
    return figure


GRADIENTS = Figures(LARGE_PROMPT).figure(
    "gradients",
    "gradients of finite prompts approach those of infinite ones at every step of training",
    statement="experiment: gradients along training",
    published="not seen; an independent replication finds the same at 24 of 24 steps",
    sizes=by_size(seeds=[6, 6, 24]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Distance of the gradient in U from {prompts} finite prompts to that of infinite ones, "
        "along {steps} steps of {rate:g} down the exact risk ||Gamma U - {target:g} I||^2 (means "
        "and standard deviations over {sizes[seed]} sets of prompts). Prompts of 1,024 tokens are "
        "nearer than those of 16 at {nearer:.0f} of {count} steps. Means over steps for 16, 128 "
        "and 1,024 tokens: {means}; what is left for long prompts is that prompts and queries are "
        "few."
    ),
)

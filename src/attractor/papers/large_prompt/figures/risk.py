"""The risk on finite prompts of the head that is exact on infinite ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_most, by_size
from attractor.papers.large_prompt.regimes import (
    DIMENSION,
    REGIMES,
    TARGET,
    by_regime,
    covariances,
    prompts,
    softmax_mean,
)
from attractor.plots.design.look import SERIES, panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.plots.design.roles import DOTTED
from attractor.prompts.finite_length import averaged_error_of_output
from attractor.prompts.regression import leading_order_without_labels
from attractor.results.paper import LARGE_PROMPT

_LENGTHS = (16, 64, 256, 1024, 4096)
_ELSEWHERE = {
    ("identity", 16): 0.29677,
    ("identity", 64): 0.07270,
    ("identity", 256): 0.01779,
    ("identity", 1024): 0.004658,
    ("identity", 4096): 0.001127,
    ("Toeplitz", 16): 0.29679,
    ("Toeplitz", 4096): 0.001279,
    ("rotated", 16): 0.30706,
    ("rotated", 4096): 0.001238,
}
"""Risks sampled by an independent program."""
_SAMPLING = 0.12


def _compute(request: Request) -> xr.Dataset:
    lengths, identity = np.array(_LENGTHS), np.eye(DIMENSION)
    exact, first = np.empty((2, len(REGIMES), len(lengths)))
    sampled = np.empty((len(REGIMES), len(lengths), request.seeds))
    draws = np.random.default_rng([request.seed, 31])
    for place, covariance in enumerate(covariances()):
        scores = TARGET * np.linalg.inv(covariance)
        request.uses(REGIMES[place], covariance=covariance, scores=scores)
        exact[place] = averaged_error_of_output(covariance, scores, identity, identity, lengths)
        order = leading_order_without_labels(
            covariance, identity, scores, identity, TARGET * identity
        )
        first[place] = [order.risk(length) for length in lengths]
        for column, length in enumerate(_LENGTHS):
            for number in range(request.seeds):
                tokens, queries = prompts(draws, (), length, covariance)
                mean, _ = softmax_mean(tokens, (queries @ scores.T)[None])
                sampled[place, column, number] = np.sum((mean[0] - TARGET * queries) ** 2)
    error = sampled.std(axis=-1, ddof=1) / np.sqrt(request.seeds)
    axes = ("regime", "length")
    return xr.Dataset(
        {
            "risk": (axes, exact),
            "leading_order": (axes, first),
            "sampled_risk": (axes, sampled.mean(axis=-1)),
            "standard_error": (axes, error),
        },
        {"regime": list(REGIMES), "length": lengths},
        {"prompts": request.seeds},
    )


def _readings(data: xr.Dataset) -> Readings:
    risk = data["risk"]
    off = (abs(data["sampled_risk"] - risk) / data["standard_error"]).max()
    ratio = abs(data["leading_order"] / risk - 1)
    found = [
        at_most("largest distance of sampled risks from the exact, in standard errors", off, 5.0),
        at_most("largest relative distance of the leading order at 4,096 tokens",
                ratio.sel(length=4096).max(), 2e-3),
    ]  # fmt: skip
    for (regime, length), value in _ELSEWHERE.items():
        here = float(risk.sel(regime=regime, length=length))
        found.append(
            at_most(f"{regime}, {length:,} tokens: relative distance of another program's sample",
                    abs(value / here - 1), _SAMPLING)
        )  # fmt: skip
    return Readings(*found, target=TARGET, risks=by_regime(risk, ".4g", " "))


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.8, 1, 2)
    lengths = data["length"].values
    for regime, look in zip(REGIMES, SERIES, strict=False):
        one, color = data.sel(regime=regime), look["color"]
        panels[0].plot(lengths, one["risk"], label=f"{regime}, exact", **look)
        panels[0].errorbar(
            lengths, one["sampled_risk"], 2 * one["standard_error"], fmt="o", markersize=3,
            color=color, linewidth=0.8, label=f"{regime}, sampled",
        )  # fmt: skip
        panels[1].plot(lengths, lengths * one["risk"], **look)
        dots: dict[str, Any] = {"linestyle": DOTTED, "color": color, "linewidth": 1}
        panels[1].plot(lengths, lengths * one["leading_order"], **dots)
    panels[0].set(xscale="log", yscale="log", ylabel="risk")
    panels[1].set(xscale="log", ylabel="$L$ times the risk")
    panels[1].set_title("dotted: leading order")
    for axes in panels:
        axes.set_xlabel("tokens in the prompt, $L$")
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
        axes.minorticks_off()
    panel_letters(panels)
    shared_legend(figure, panels[:1], columns=3)
    return figure


RISK = Figures(LARGE_PROMPT).figure(
    "risk",
    "risk on finite prompts of the head that is exact on infinite ones: it falls like 1/L",
    statement="experiment: risk of the optimal head on finite prompts",
    published="not seen; risks sampled by an independent replication are compared with the exact",
    sizes=by_size(seeds=[300, 1000, 4000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Risk E |output - {target:g} z|^2 of the head U = {target:g} Gamma^-1, V = I, which is "
        "exact on infinite prompts, on prompts of 16 to 4,096 tokens: exactly, by sampling "
        "({attrs[prompts]} prompts, bars of two standard errors), and (b, dotted) to leading order "
        "in 1/L. Exact risks: {risks}."
    ),
)
